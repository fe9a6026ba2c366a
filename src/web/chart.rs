//! A card's last day as a drawing: numbers only, so that the template writes every word.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::history::{Ring, Stretch};
use crate::message::pages;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// A shorter time looks odd as a chart.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);
/// The plot inside the drawing of 560 × 190.
const LEFT: f64 = 52.0;
const WIDTH: f64 = 492.0;
const TOP: f64 = 38.0;
const HEIGHT: f64 = 120.0;
/// Activity is visible however little it is.
const LEAST: f64 = 2.0;

/// An instant worth a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// The card last computed.
    Card,
    /// A kernel or terminal was last used.
    Used,
    /// Somebody was last there.
    Present,
    /// The owner was warned.
    Warned,
    /// The stop.
    Deadline,
}

/// A drawing.
#[derive(Debug, Serialize)]
pub struct Chart {
    sm: Vec<Bar>,
    dram: Vec<Bar>,
    holes: Vec<Bar>,
    ticks: Vec<Tick>,
    lines: Vec<Line>,
    now: f64,
    /// The same in words, for who cannot see it.
    summary: String,
}

#[derive(Debug, Serialize)]
struct Bar {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

#[derive(Debug, Serialize)]
struct Tick {
    x: f64,
    label: String,
}

#[derive(Debug, Serialize)]
struct Line {
    mark: Mark,
    x: f64,
    /// Where its letter stands, so that two of them do not cover each other.
    y: f64,
    words: String,
}

impl Chart {
    /// Draws a card's past in one session, from its start or a day ago up to now, or to the deadline.
    pub fn of(
        ring: &Ring,
        started: Option<Timestamp>,
        marks: &[(Mark, Timestamp)],
        now: Timestamp,
        zone: &TimeZone,
    ) -> Self {
        let a_day_ago = now.checked_sub(DAY).unwrap_or(now);
        let from = started.unwrap_or(a_day_ago).clamp(a_day_ago, now);
        let shortest = from.checked_add(SHORTEST).unwrap_or(now);
        let ahead = now.checked_add(DAY).unwrap_or(now);
        let end = marks.iter().filter(|(mark, at)| *mark == Mark::Deadline && *at < ahead).map(|(_, at)| *at);
        let scale = Scale { from, to: end.fold(now.max(shortest), Timestamp::max) };
        let past = with_ends(ring.since(from), from, now);
        Self {
            sm: past.iter().filter_map(|s| scale.bar(s, s.sm?)).collect(),
            dram: past.iter().filter_map(|s| scale.bar(s, s.dram?)).collect(),
            holes: past.iter().filter(|s| s.holes).filter_map(|s| scale.bar(s, 1.0)).collect(),
            ticks: scale.ticks(zone),
            lines: scale.lines(marks, zone),
            now: scale.x(now),
            summary: summary(&past, zone),
        }
    }
}

/// What lies before the first and behind the last slot was not watched. The newest slot is in progress.
fn with_ends(mut past: Vec<Stretch>, from: Timestamp, now: Timestamp) -> Vec<Stretch> {
    let hole = |from, to| Stretch { from, to, sm: None, dram: None, holes: true };
    match (past.first().copied(), past.last().copied()) {
        (Some(first), Some(last)) => {
            let width = last.to.duration_since(last.from);
            if first.from > from {
                past.insert(0, hole(from, first.from));
            }
            // A look is due once in a slot or two; only beyond that nobody was looking.
            if now.duration_since(last.to) > width * 4 + SignedDuration::from_mins(2) {
                past.push(hole(last.to, now));
            }
        }
        _ => past.push(hole(from, now)),
    }
    past
}

struct Scale {
    from: Timestamp,
    to: Timestamp,
}

impl Scale {
    fn x(&self, at: Timestamp) -> f64 {
        let whole = self.to.duration_since(self.from).as_secs_f64().max(1.0);
        let part = at.duration_since(self.from).as_secs_f64() / whole;
        rounded(LEFT + WIDTH * part.clamp(0.0, 1.0))
    }

    fn bar(&self, stretch: &Stretch, share: f64) -> Option<Bar> {
        let (x, end) = (self.x(stretch.from), self.x(stretch.to));
        let height = match share {
            none if none <= 0.0 => 0.0,
            some => rounded((some.min(1.0) * HEIGHT).max(LEAST)),
        };
        let width = rounded((end - x).max(0.5));
        (height > 0.0).then(|| Bar { x, y: rounded(TOP + HEIGHT - height), width, height })
    }

    fn ticks(&self, zone: &TimeZone) -> Vec<Tick> {
        let span = self.to.duration_since(self.from).as_secs();
        let steps = [60, 300, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600];
        let step = steps.into_iter().find(|step| span / step <= 8).unwrap_or(86400);
        let offset = i64::from(zone.to_offset(self.from).seconds());
        let first = (self.from.as_second() + offset).div_euclid(step) + 1;
        let all = (first..).map(|n| n * step - offset).take_while(|second| *second <= self.to.as_second());
        all.filter_map(|second| Timestamp::from_second(second).ok())
            .map(|at| Tick {
                x: self.x(at),
                label: at.to_zoned_datetime(zone.clone()).strftime("%H:%M").to_string(),
            })
            .collect()
    }

    fn lines(&self, marks: &[(Mark, Timestamp)], zone: &TimeZone) -> Vec<Line> {
        let shown = marks.iter().filter(|(_, at)| (self.from..=self.to).contains(at));
        let mut lines: Vec<Line> = shown
            .map(|(mark, at)| Line { mark: *mark, x: self.x(*at), y: 0.0, words: pages::instant(*at, zone) })
            .collect();
        lines.sort_by(|a, b| a.x.total_cmp(&b.x));
        for index in 0..lines.len() {
            let taken = |y: f64| lines[..index].iter().any(|l| l.y == y && lines[index].x - l.x < 14.0);
            let free = [12.0, 24.0, 36.0].into_iter().find(|y| !taken(*y)).unwrap_or(36.0);
            lines[index].y = free;
        }
        lines
    }
}

fn summary(past: &[Stretch], zone: &TimeZone) -> String {
    let peak = |of: fn(&Stretch) -> Option<f64>| {
        past.iter().filter_map(|s| Some((of(s)?, s.from))).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let words = |what: &str, peak: Option<(f64, Timestamp)>| match peak {
        None => format!("{what}: never readable."),
        Some((share, _)) if share <= 0.0 => format!("{what}: nothing."),
        Some((share, at)) => {
            format!("{what}: peak {:.0} % at {}.", (share * 100.0).ceil(), pages::instant(at, zone))
        }
    };
    let holes = past.iter().filter(|s| s.holes).map(|s| s.to.duration_since(s.from).as_secs()).sum::<i64>();
    let holes = match holes {
        0 => String::new(),
        seconds => format!(" Not watched: {} in all.", pages::length(SignedDuration::from_secs(seconds))),
    };
    format!("{} {}{holes}", words("SM", peak(|s| s.sm)), words("Memory bandwidth", peak(|s| s.dram)))
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
