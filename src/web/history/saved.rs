//! The past as it is kept over a restart. What does not fit is left out: it only costs a part of a chart.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{FINEST, History, Past, Ring, SLOTS, Slot};
use crate::domain::{GpuId, ServerId};

/// One more than the highest share in thousandths, and one for none.
const SHARES: u32 = 1052;

#[derive(Serialize, Deserialize)]
struct Saved {
    /// Another form needs another number.
    charts: u32,
    sessions: Vec<SavedPast>,
}

/// A server, when it was started, and its cards.
type SavedPast = (ServerId, Option<Timestamp>, Vec<(GpuId, SavedRing)>);

#[derive(Serialize, Deserialize)]
struct SavedRing {
    width: i64,
    first: i64,
    slots: Vec<u32>,
}

const FORM: u32 = 1;

impl History {
    /// Everything, to be saved.
    pub fn to_bytes(&self) -> Vec<u8> {
        let ring = |ring: &Ring| SavedRing {
            width: ring.width,
            first: ring.first,
            slots: ring.slots.iter().map(packed).collect(),
        };
        let cards = |past: &Past| past.cards.iter().map(|(id, r)| (id.clone(), ring(r))).collect();
        let session = |(id, past): (&ServerId, &Past)| (id.clone(), past.started, cards(past));
        let saved = Saved { charts: FORM, sessions: self.0.iter().map(session).collect() };
        serde_json::to_vec(&saved).unwrap_or_default()
    }

    /// What was saved, as far as it can be made out and lies before `now`.
    pub fn from_bytes(bytes: &[u8], now: Timestamp) -> Option<Self> {
        let saved: Saved = serde_json::from_slice(bytes).ok()?;
        let card = |(id, ring): (GpuId, SavedRing)| Some((id, ring.checked(now)?));
        let past = |(id, started, cards): SavedPast| {
            let cards: BTreeMap<_, _> = cards.into_iter().filter_map(card).collect();
            (id, Past { started, cards })
        };
        (saved.charts == FORM).then(|| Self(saved.sessions.into_iter().map(past).collect()))
    }

    /// Whether nothing was seen yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl SavedRing {
    fn checked(self, now: Timestamp) -> Option<Ring> {
        const WIDEST: i64 = 86_400;
        let sound = (FINEST..=WIDEST).contains(&self.width) && self.slots.len() <= SLOTS;
        let slots: VecDeque<Slot> = self.slots.into_iter().map(unpacked).collect::<Option<_>>()?;
        let end = self.first.checked_add(i64::try_from(slots.len()).ok()?)?.checked_mul(self.width)?;
        // A clock that was set back meanwhile would keep the future on the chart.
        let passed = self.first >= 0 && end <= now.as_second().checked_add(self.width)?;
        (sound && passed).then_some(Ring { width: self.width, first: self.first, slots })
    }
}

/// A slot as one number, of which there are many.
fn packed(slot: &Slot) -> u32 {
    let share = |share: Option<u16>| share.map_or(0, |share| u32::from(share) + 1).min(SHARES - 1);
    (share(slot.sm) * SHARES + share(slot.dram)) * 2 + u32::from(slot.holes)
}

fn unpacked(number: u32) -> Option<Slot> {
    let share = |share: u32| share.checked_sub(1).and_then(|share| u16::try_from(share).ok());
    let (both, holes) = (number / 2, number % 2 == 1);
    (both < SHARES * SHARES).then(|| Slot { sm: share(both / SHARES), dram: share(both % SHARES), holes })
}
