//! Text that others chose: names of people, servers, notebooks, cards.

/// The longest name that a subject shows whole.
const IN_SUBJECT: usize = 60;
/// The longest name that a body shows whole.
const IN_BODY: usize = 200;

/// A name for a body.
pub(super) fn name(text: &str) -> String {
    shorten(&clean(text), IN_BODY)
}

/// A name for a subject.
pub(super) fn subject_name(text: &str) -> String {
    shorten(&clean(text), IN_SUBJECT)
}

/// Any text as one line.
pub(super) fn line(text: &str) -> String {
    shorten(&clean(text), 400)
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
            ("שרה", "שרה"),
            ("می\u{200C}خواهم", "می\u{200C}خواهم"),
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
}
