//! What a card did over a stretch of time, as the driver would count it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::scene::{Device, Load, Process};

/// The driver keeps 72 samples over 10 seconds.
pub const RING: u64 = 72;
const PERIOD_US: u64 = 139_000;

/// One figure of a load.
pub type Engine = fn(&Load) -> f64;

#[expect(clippy::disallowed_methods, reason = "the driver has a clock of its own")]
pub fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
}

/// Every load of a card: its own and those of the processes that still exist.
pub fn loads(device: &Device) -> Vec<&Load> {
    let of_processes = living(device).flat_map(|p| &p.load);
    device.load.iter().chain(of_processes).collect()
}

pub fn living(device: &Device) -> impl Iterator<Item = &Process> {
    device.processes.iter().filter(|p| p.exists())
}

/// [`mean`], truncated as the driver's integers are.
pub fn percent(loads: &[&Load], engine: Engine, from_us: u64, to_us: u64) -> u32 {
    // The small addition undoes the rounding of a share that is exactly a whole percent.
    (mean(loads, engine, from_us, to_us) + 1e-6) as u32
}

/// Mean percent between two instants (µs), where overlapping loads count by their maximum.
pub fn mean(loads: &[&Load], engine: Engine, from_us: u64, to_us: u64) -> f64 {
    let (from, to) = (seconds(from_us), seconds(to_us));
    let mut edges = vec![from, to];
    for load in loads {
        let ends = [load.from, load.to.unwrap_or(to)];
        edges.extend(ends.into_iter().filter(|t| (from..to).contains(t)));
    }
    edges.sort_by(f64::total_cmp);
    let work: f64 = edges
        .windows(2)
        .map(|edge| (edge[1] - edge[0]) * at(loads, engine, f64::midpoint(edge[0], edge[1])))
        .sum();
    if to > from { work / (to - from) } else { 0.0 }
}

fn at(loads: &[&Load], engine: Engine, instant: f64) -> f64 {
    loads
        .iter()
        .filter(|l| l.from <= instant && l.to.is_none_or(|to| instant < to))
        .map(|l| engine(l))
        .fold(0.0, f64::max)
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

/// The ring's instants newer than `last_seen`, oldest first: in Unix time, and as the driver stamps them.
pub fn ring(device: &Device, now_us: u64, last_seen: u64) -> impl Iterator<Item = (u64, u64)> {
    let newest = now_us / PERIOD_US;
    let offset = (device.clock * 1e6) as i64;
    (newest.saturating_sub(RING - 1)..=newest)
        .map(|k| k * PERIOD_US)
        .map(move |t| (t, t.saturating_add_signed(offset)))
        .filter(move |&(_, stamp)| stamp > last_seen)
}

/// When the sample taken at `t` begins.
pub fn begin(t: u64) -> u64 {
    t.saturating_sub(PERIOD_US)
}

/// The driver's sample taken at `t`.
pub fn sample(loads: &[&Load], engine: Engine, t: u64) -> u32 {
    percent(loads, engine, begin(t), t)
}
