//! A card and one reading of it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A card's (or MIG instance's) UUID: `GPU-…` or `MIG-…`. The index is not stable, this is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GpuId(pub String);

impl fmt::Display for GpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A share of full activity that passed for a reading: finite and within 0..=1.05.
///
/// The slack above one is for sources that divide two counters read at slightly different instants;
/// anything beyond it is a blank of the driver or garbage, never a number to decide by.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ratio(f64);

impl Ratio {
    const MAX: f64 = 1.05;

    /// A reading, or nothing when `value` cannot be one (NaN, infinite, negative, out of range).
    pub fn reading(value: f64) -> Option<Self> {
        (0.0..=Self::MAX).contains(&value).then_some(Self(value))
    }

    /// A reading given in percent, as NVML gives it.
    pub fn percent(value: f64) -> Option<Self> {
        Self::reading(value / 100.0)
    }

    /// The share, 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The larger of two readings.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other.0 > self.0 { other } else { self }
    }
}

/// The parts of a card that may work while its SMs rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Tensor cores.
    Tensor,
    /// Copy engines.
    Copy,
    /// Video encoder.
    Encode,
    /// Video decoder.
    Decode,
}

impl Engine {
    /// All of them, each at the place of its number.
    pub const ALL: [Self; 4] = [Self::Tensor, Self::Copy, Self::Encode, Self::Decode];
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tensor => "tensor",
            Self::Copy => "copy",
            Self::Encode => "encode",
            Self::Decode => "decode",
        })
    }
}

/// What one card did since it was last asked. `None` means "could not be read" and is never a zero.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuSample {
    /// Which card.
    pub id: GpuId,
    /// The product's name, for people and rules ("NVIDIA A100-SXM4-80GB").
    pub model: String,
    /// Peak SM activity.
    pub sm: Option<Ratio>,
    /// Peak memory-bandwidth activity.
    pub dram: Option<Ratio>,
    /// Peaks of the other engines that the source offers; an engine it does not offer is absent.
    pub engines: BTreeMap<Engine, Option<Ratio>>,
    /// Device memory held, in bytes.
    pub memory_used: Option<u64>,
    /// How many processes hold a context.
    pub processes: Option<u32>,
    /// How much of the time since the last sample was really watched.
    pub covered: Duration,
    /// The longest time without a reading inside the covered part.
    pub largest_gap: Duration,
    /// Why `sm` or `dram` could not be read, in words for the admin.
    pub unreadable: Option<String>,
    /// What it drew since the last sample, where the source tells. Whoever reads cards takes a rest that draws as
    /// work for unreadable; it decides nothing else.
    pub power: Option<Power>,
    /// What its source remembers beyond the last look; a source that keeps no history has none.
    pub past: Option<Past>,
}

/// What a card drew over some time, in watts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// On average.
    pub mean: f64,
    /// At most, over the shortest time that was read.
    pub peak: f64,
    /// The limit that is in force.
    pub limit: Option<f64>,
}

impl Power {
    /// Whether it can be what a card draws.
    pub fn is_sound(&self) -> bool {
        const MOST: f64 = 3000.0;
        [Some(self.mean), Some(self.peak), self.limit]
            .into_iter()
            .flatten()
            .all(|w| (0.0..=MOST).contains(&w))
    }
}

impl GpuSample {
    /// A card of which nothing but its id is known.
    pub fn unread(id: impl Into<String>) -> Self {
        Self {
            id: GpuId(id.into()),
            model: String::new(),
            sm: None,
            dram: None,
            engines: BTreeMap::new(),
            memory_used: None,
            processes: None,
            covered: Duration::ZERO,
            largest_gap: Duration::ZERO,
            unreadable: None,
            power: None,
            past: None,
        }
    }
}

/// What a source that keeps a history knows of a card's rest, whoever looked meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// The card has certainly rested since then.
    pub since: Timestamp,
    /// Whether a time that could not be watched ends there; else work does, or the source's memory begins.
    pub after_gap: bool,
    /// The last instant at which it was seen at work, as far back as the source remembers.
    pub last_active: Option<Timestamp>,
    /// How much of the time since `since` was not watched.
    pub unwatched: Duration,
    /// How old the newest reading is.
    pub lag: Duration,
}

/// A process that holds memory on a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Process id in the host's pid namespace.
    pub pid: u32,
    /// Device memory it holds, in bytes, where the driver says so.
    pub memory_used: Option<u64>,
}

/// A process of a session that holds memory on one of its cards, told to people and never decided by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Which card.
    pub gpu: GpuId,
    /// Device memory it holds, in bytes, where the driver says so.
    pub memory_used: Option<u64>,
    /// The kernel that it is or belongs to, where its command line tells.
    pub kernel: Option<String>,
    /// That kernel's notebook, where known.
    pub notebook: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_share_of_activity_is_no_reading() {
        let blanks = [
            9.223_372_036_854_776e18, // DCGM's INT64 blank after a float parser
            2_147_483_632.0,          // INT32 blank
            140_737_488_355_328.0,    // FP64 blank
            4_294_967_295.0,
            808_334_905.0,
        ];
        for value in [f64::NAN, f64::INFINITY, -0.01, 1.06].into_iter().chain(blanks) {
            assert_eq!(Ratio::reading(value), None, "{value}");
        }
    }

    #[test]
    fn shares_and_percents_are_read() {
        assert_eq!(Ratio::reading(0.0).map(Ratio::get), Some(0.0));
        assert_eq!(Ratio::percent(100.0).map(Ratio::get), Some(1.0));
    }
}
