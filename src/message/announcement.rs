//! What a chat is told after a cycle. The shape is the one that Slack's and Mattermost's incoming
//! webhooks share (`text`), with the same as data beside it (`events`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::foreign;
use crate::domain::ServerId;

/// More lines than this nobody reads; the data has them all.
const LINES: usize = 20;

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// When.
    pub at: Timestamp,
    /// To which server; absent for what concerns all.
    pub server: Option<&'a ServerId>,
    /// What, in the words of the trace format.
    pub event: &'a str,
    /// Why.
    pub reason: &'a str,
}

/// The announcement of what happened in one cycle; nothing where nothing did.
pub fn announcement(events: &[Event<'_>]) -> Option<Value> {
    if events.is_empty() {
        return None;
    }
    let mut lines: Vec<String> = events.iter().take(LINES).map(line).collect();
    if events.len() > LINES {
        lines.push(format!("… and {} more", events.len() - LINES));
    }
    let data = events.iter().map(|event| {
        json!({
            "at": event.at, "server": event.server.map(ToString::to_string),
            "event": event.event, "reason": event.reason,
        })
    });
    Some(json!({ "text": lines.join("\n"), "events": data.collect::<Vec<_>>() }))
}

fn line(event: &Event<'_>) -> String {
    let server = event.server.map(|id| format!(" {id}")).unwrap_or_default();
    harmless(&format!("{}{server}: {}", event.event, event.reason))
}

/// Foreign text must neither call people (`@channel`, `<!here>`) nor pretend a link.
fn harmless(text: &str) -> String {
    let plain = text.chars().map(|c| match c {
        '@' => '＠',
        '<' => '‹',
        '>' => '›',
        '`' | '[' | ']' => ' ',
        c => c,
    });
    foreign::line(&plain.collect::<String>())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    fn event<'a>(server: &'a ServerId, reason: &'a str) -> Event<'a> {
        Event { at: Timestamp::from_second(0).unwrap(), server: Some(server), event: "stopped", reason }
    }

    #[test]
    fn a_chat_gets_a_line_for_people_and_the_same_as_data() {
        let nora = ServerId::new("nora", "");
        let told = announcement(&[event(&nora, "nobody was there for 2 h")]).unwrap();
        assert_eq!(
            told,
            json!({
                "text": "stopped nora/: nobody was there for 2 h",
                "events": [{ "at": "1970-01-01T00:00:00Z", "server": "nora/", "event": "stopped",
                             "reason": "nobody was there for 2 h" }],
            })
        );
    }

    #[test]
    fn nothing_happened_nothing_is_told() {
        assert_eq!(announcement(&[]), None);
    }

    #[test]
    fn a_flood_is_cut_for_people_and_whole_as_data() {
        let nora = ServerId::new("nora", "");
        let many: Vec<_> = (0..25).map(|_| event(&nora, "idle")).collect();
        let told = announcement(&many).unwrap();
        let text = told["text"].as_str().unwrap();
        assert_eq!((text.lines().count(), text.lines().last()), (21, Some("… and 5 more")));
        assert_eq!(told["events"].as_array().unwrap().len(), 25);
    }

    #[test]
    fn foreign_names_call_nobody_and_add_no_line() {
        let hostile = ServerId::new("<!channel> @all\n\u{202e}", "");
        let text =
            announcement(&[event(&hostile, "see `x` [link](http://evil)")]).unwrap()["text"].to_string();
        for sign in ["<", ">", "@", "`", "[", "\\n", "\u{202e}"] {
            assert!(!text.contains(sign), "{sign}: {text}");
        }
    }
}
