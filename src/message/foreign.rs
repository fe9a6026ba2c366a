//! Text that others chose: names of people, servers, notebooks, cards.

use crate::domain::ServerId;

/// The longest name that a subject shows whole.
const IN_SUBJECT: usize = 60;
/// The longest name that a body shows whole.
const IN_BODY: usize = 200;

/// A name for a body.
pub(super) fn name(text: &str) -> String {
    isolated(shorten(&clean(text), IN_BODY))
}

/// A name for a subject.
pub(super) fn subject_name(text: &str) -> String {
    isolated(shorten(&clean(text), IN_SUBJECT))
}

/// `alice` for the default server, which has no name, and `alice/training` for a named one.
pub(super) fn server(id: &ServerId) -> String {
    of_both(id, IN_BODY)
}

/// The same for a subject.
pub(super) fn subject_server(id: &ServerId) -> String {
    of_both(id, IN_SUBJECT)
}

/// However long the owner's name is, the server's own is what tells it from others, so each is cut by itself.
fn of_both(id: &ServerId, most: usize) -> String {
    let (user, server) = (clean(&id.user.0), clean(&id.name.0));
    if id.name.0.is_empty() {
        return isolated(shorten(&user, most));
    }
    let half = (most - 1) / 2;
    let for_user = half.max((most - 1).saturating_sub(server.chars().count()));
    let user = shorten(&user, for_user);
    let server = shorten(&server, most - 1 - user.chars().count());
    format!("{}/{}", isolated(user), isolated(server))
}

/// Any text as one line.
pub(super) fn line(text: &str) -> String {
    shorten(&clean(text), 400)
}

/// Any text as one line of at most so many characters, for storing.
pub(super) fn cut(text: &str, most: usize) -> String {
    clean(text).chars().take(most).collect()
}

/// A name that is written from right to left would otherwise draw the number or sign behind it to its other side.
fn isolated(name: String) -> String {
    const FIRST_STRONG_ISOLATE: char = '\u{2068}';
    const POP_ISOLATE: char = '\u{2069}';
    let right_to_left = |c| {
        matches!(c, '\u{0590}'..='\u{08FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFE}'
            | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
    };
    if name.chars().any(right_to_left) { format!("{FIRST_STRONG_ISOLATE}{name}{POP_ISOLATE}") } else { name }
}

/// Enough of a card's UUID to find it in a list of a node's cards: `GPU-5d1f0a2b`.
pub(super) fn card(id: &str) -> String {
    name(&id.chars().take(12).collect::<String>())
}

/// One line of visible characters in the order in which they were written.
fn clean(text: &str) -> String {
    let visible: String =
        text.chars().map(|c| if is_break(c) { ' ' } else { c }).filter(|c| !is_invisible(*c)).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Characters that reorder or hide their neighbours. The joiners U+200C and U+200D stay: Persian
/// and emoji need them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{061C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{FEFF}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E007F}')
}

fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_of_visible_characters() {
        for (foreign, shown) in [
            ("alice", "alice"),
            ("a\r\nBcc: everybody@example.org", "a Bcc: everybody@example.org"),
            ("a\u{2028}b\u{85}c\td", "a b c d"),
            ("gpj\u{202E}exe.\u{202C}txt", "gpjexe.txt"),
            ("\u{2067}x\u{2069}\u{200F}\u{061C}y\u{200B}", "xy"),
            ("\0\u{1b}[31mred", "[31mred"),
            ("שרה", "\u{2068}שרה\u{2069}"),
            ("می\u{200C}خواهم", "\u{2068}می\u{200C}خواهم\u{2069}"),
            (" \n ", ""),
        ] {
            assert_eq!(name(foreign), shown, "{foreign:?}");
        }
    }

    #[test]
    fn a_long_name_is_cut_and_says_so() {
        let long = "é".repeat(300);
        assert_eq!(subject_name(&long), format!("{}…", "é".repeat(59)));
        assert_eq!(name(&long).chars().count(), 200);
        assert_eq!(subject_name(&"x".repeat(60)), "x".repeat(60));
    }

    #[test]
    fn of_a_long_user_and_a_long_server_both_are_seen() {
        let shown = |user: &str, name: &str| server(&ServerId::new(user, name));
        assert_eq!(shown("alice", ""), "alice");
        assert_eq!(shown("alice", "training"), "alice/training");
        assert_eq!(shown(&"u".repeat(300), "training"), format!("{}…/training", "u".repeat(190)));
        assert_eq!(shown("alice", &"s".repeat(300)), format!("alice/{}…", "s".repeat(193)));
        let both = shown(&"u".repeat(300), &"s".repeat(300));
        assert_eq!(both, format!("{}…/{}…", "u".repeat(98), "s".repeat(99)));
        assert_eq!(shown("שרה", "a"), "\u{2068}שרה\u{2069}/a");
        assert_eq!(subject_server(&ServerId::new("u".repeat(99), "b")).chars().count(), 60);
    }
}
