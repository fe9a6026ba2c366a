//! Why a card cannot be judged. Each of these is a way in which an exporter, or the way from it, is known to say
//! nothing while it seems to say zero.

use super::names::Role;

/// Why what was read proves neither work nor rest.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The driver's or DCGM's word for "no value", which is a huge number.
    Blank(Role, f64),
    /// NaN or infinite.
    NotANumber(Role),
    /// Beyond what can be measured.
    OutOfRange(Role, f64),
    /// It was exported a while ago and is no longer.
    Vanished(Role),
    /// The exporter was never told to export it.
    NotExported(Role),
    /// Nothing but the driver's utilization is exported.
    WeakOnly,
    /// All readings are repeated bit for bit: the exporter's watch hangs.
    Stalled,
    /// Nothing is exported that changes on a resting card, so a watch that hangs would look like rest.
    NoPulse,
    /// No sample for so many seconds.
    Silent(i64),
    /// Sample times are further apart than what one reading speaks for.
    TooYoung,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blank(role, value) => {
                write!(f, "its {} is blank ({value:e}): the driver gave no value", role.key())
            }
            Self::NotANumber(role) => write!(f, "its {} is no number", role.key()),
            Self::OutOfRange(role, value) => write!(f, "its {} of {value} cannot be", role.key()),
            Self::Vanished(role) => write!(
                f,
                "its {} is no longer exported: is profiling paused (Nsight), or the exporter out of rights?",
                role.key()
            ),
            Self::NotExported(role) => {
                write!(f, "its {} is not exported: add \"{}\" to the exporter's CSV file", role.key(), role.csv())
            }
            Self::WeakOnly => f.write_str(
                "only its utilization is exported, which misses most of the time: export the profiling metrics, \
                 or set telemetry.prometheus.weak_utilization",
            ),
            Self::Stalled => f.write_str("its readings are repeated bit for bit: the exporter hangs; restart it"),
            Self::NoPulse => write!(
                f,
                "neither its energy nor its power is exported, so a hanging exporter would look like rest: add \
                 \"{}\" to the exporter's CSV file",
                Role::Energy.csv()
            ),
            Self::Silent(seconds) => write!(f, "no sample of it for {seconds} s: look at the exporter of its node"),
            Self::TooYoung => f.write_str("its readings began only just now"),
        }
    }
}

/// Where DCGM's blanks begin: 32-bit, double and 64-bit ones, as a float parser leaves them.
const BLANKS: [(f64, f64); 3] = [
    (2_147_483_632.0, 2_147_483_647.0),
    (140_737_488_355_328.0, 140_737_488_355_391.0),
    (9.223_372_036_854e18, f64::INFINITY),
];

/// What a value of a metric means as a share of full activity.
///
/// On a MIG instance the engine's share is that of the whole card (a seventh at full work for the smallest
/// instance), which is made good here, and SM activity may come out at up to seven.
pub fn share(role: Role, value: f64, name: &str, on_instance: bool) -> Result<f64, Fault> {
    if BLANKS.iter().any(|(from, to)| value >= *from && value <= *to && value.is_finite()) {
        return Err(Fault::Blank(role, value));
    }
    if !value.is_finite() {
        return Err(Fault::NotANumber(role));
    }
    let (full, most, gain) = match role {
        Role::Engine if on_instance => (1.0, 1.05, SLICES),
        Role::Sm if on_instance => (1.0, 1.05 * SLICES, 1.0),
        Role::Engine | Role::Dram | Role::Sm | Role::Tensor => (1.0, 1.05, 1.0),
        // Nobody says whether this name is in percent; up to one it is taken for the whole.
        Role::Utilization if name.ends_with("_RATIO") && value <= 1.0 => (1.0, 1.0, 1.0),
        Role::Utilization | Role::MemoryUtilization | Role::Encoder | Role::Decoder => (100.0, 100.0, 1.0),
        Role::Energy | Role::Power | Role::MemoryUsed => (1.0, f64::MAX, 1.0),
    };
    if !(0.0..=most).contains(&value) {
        return Err(Fault::OutOfRange(role, value));
    }
    Ok(match role {
        Role::Energy | Role::Power | Role::MemoryUsed => value,
        _ => (value / full * gain).min(1.0),
    })
}

/// Into how many slices MIG divides a card's engines at most.
const SLICES: f64 = 7.0;
