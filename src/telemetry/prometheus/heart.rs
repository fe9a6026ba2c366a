//! Whether a card's readings are fresh: its energy always grows and its power flickers, so a watch in which neither
//! changes hangs, and all that it says is old.

use super::fault::Fault;

/// The last beats of a card's pulse.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heart {
    /// The newest energy and power, as bits, and when they were read.
    pub last: [Option<(i64, u64)>; 2],
    /// When one of them last changed.
    pub changed: Option<i64>,
    /// The shortest time between two changes.
    pub step: Option<i64>,
}

impl Heart {
    /// Takes in a reading; one that is known already changes nothing.
    pub fn beat(&mut self, at: i64, bits: [Option<u64>; 2]) {
        for (known, bits) in self.last.iter_mut().zip(bits) {
            let Some(bits) = bits else { continue };
            match *known {
                Some((before, _)) if before >= at => {}
                Some((_, old)) => {
                    if old != bits {
                        let step = self.changed.map(|before| at - before).filter(|step| *step > 0);
                        self.step = self.step.into_iter().chain(step).min();
                        self.changed = Some(at);
                    }
                    *known = Some((at, bits));
                }
                None => *known = Some((at, bits)),
            }
        }
    }

    /// What is wrong with the pulse at `at`, if so.
    pub fn fault(&self, at: i64, patience: i64) -> Option<Fault> {
        if self.changed.is_some_and(|changed| at - changed <= patience) {
            return None;
        }
        let newest = self.last.iter().flatten().map(|(at, _)| *at).max();
        Some(match newest.is_some_and(|newest| at - newest <= patience) {
            false => Fault::NoPulse,
            true if self.changed.is_none() => Fault::TooYoung,
            true => Fault::Stalled,
        })
    }
}
