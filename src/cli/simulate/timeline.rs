//! A replay at one look: a strip for each server that anything happened to.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Event;
use crate::cli::say;
use crate::domain::ServerId;

/// Characters of a strip.
const WIDTH: usize = 60;
/// Servers that are shown.
const MOST: usize = 30;

/// Prints the strips of a replay between its first and last observation.
pub fn print(events: &[Event], from: Timestamp, to: Timestamp) {
    let strips = strips(events, from, to);
    if strips.is_empty() {
        return;
    }
    let widest = strips.keys().map(|id| id.to_string().chars().count()).max().unwrap_or_default();
    for (server, strip) in strips.iter().take(MOST) {
        say(&format!("  {:widest$}  {strip}", server.to_string()));
    }
    if strips.len() > MOST {
        say(&format!("  … and {} servers more", strips.len() - MOST));
    }
    say(&format!("  {:widest$}  · in use or not known, i idle, w warned, k kept, S stopped", ""));
}

fn strips(events: &[Event], from: Timestamp, to: Timestamp) -> BTreeMap<ServerId, String> {
    let mut strips: BTreeMap<ServerId, Vec<char>> = BTreeMap::new();
    for event in events {
        let (Some(server), Some(state)) = (&event.server, state_after(event.event)) else { continue };
        let strip = strips.entry(server.clone()).or_insert_with(|| vec!['·'; WIDTH]);
        strip[column(event.at, from, to)..].fill(state);
    }
    strips.into_iter().map(|(server, strip)| (server, strip.into_iter().collect())).collect()
}

fn state_after(event: &str) -> Option<char> {
    match event {
        "idle" => Some('i'),
        "warned" => Some('w'),
        "kept" => Some('k'),
        "stopped" => Some('S'),
        "unmarked" | "recovered" | "restarted" => Some('·'),
        _ => None,
    }
}

fn column(at: Timestamp, from: Timestamp, to: Timestamp) -> usize {
    let share = at.duration_since(from).as_secs_f64() / to.duration_since(from).as_secs_f64().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share between 0 and 1 of a few characters"
    )]
    let column = (share.clamp(0.0, 1.0) * WIDTH as f64) as usize;
    column.min(WIDTH - 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    #[test]
    fn a_strip_shows_what_became_of_a_server_and_when() {
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        let server = ServerId::new("alice", "");
        let event = |minute, event| Event {
            at: at(minute),
            server: Some(server.clone()),
            event,
            reason: String::new(),
            deadline: None,
        };
        let events = [
            event(10, "idle"),
            event(20, "warned"),
            event(30, "unmarked"),
            event(50, "idle"),
            event(60, "stopped"),
        ];
        let strip = &strips(&events, at(0), at(60))[&server];
        let expected = format!(
            "{}{}{}{}{}S",
            "·".repeat(10),
            "i".repeat(10),
            "w".repeat(10),
            "·".repeat(20),
            "i".repeat(9)
        );
        assert_eq!(*strip, expected);
    }

    #[test]
    fn a_trace_of_one_instant_or_with_clocks_set_back_has_a_strip_too() {
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        assert_eq!(column(at(5), at(5), at(5)), 0);
        assert_eq!(column(at(1), at(5), at(9)), 0);
        assert_eq!(column(at(9), at(5), at(9)), WIDTH - 1);
    }
}
