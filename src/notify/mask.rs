//! Addresses as logs and errors may show them.

/// `alice@example.org` becomes `a…@example.org`: enough to recognise, too little to write to.
pub fn mask(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) => {
            let first: String = local.chars().take(1).collect();
            format!("{first}…@{domain}")
        }
        None => "…".to_owned(),
    }
}

/// Masks every address in what a mail server said, and keeps it on one line.
pub(super) fn mask_all(text: &str) -> String {
    let masked = text.split_whitespace().map(|word| {
        let is_address = |c: char| !matches!(c, '<' | '>' | '(' | ')' | ',' | ';' | ':' | '"');
        let mut out = String::new();
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let inside = is_address(first);
            let end = rest.find(|c| is_address(c) != inside).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            if inside && piece.contains('@') {
                out.push_str(&mask(piece));
            } else {
                out.extend(piece.chars().filter(|c| !c.is_control()));
            }
            rest = after;
        }
        out
    });
    masked.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_first_letter_and_its_domain() {
        for (address, masked) in [
            ("alice@example.org", "a…@example.org"),
            ("é@example.org", "é…@example.org"),
            ("@example.org", "…@example.org"),
            ("\"a@b\"@example.org", "\"…@example.org"),
            ("not an address", "…"),
            ("", "…"),
        ] {
            assert_eq!(mask(address), masked);
        }
    }

    #[test]
    fn what_a_server_says_is_kept_but_for_addresses() {
        for (said, shown) in [
            ("5.1.1 <alice@bad.example>: no such user", "5.1.1 <a…@bad.example>: no such user"),
            ("RCPT TO:<a.b+c@x.org> refused", "RCPT TO:<a…@x.org> refused"),
            ("two\r\nlines\u{1b}[31m", "two lines[31m"),
            ("a@x.org,b@y.org", "a…@x.org,b…@y.org"),
            ("no mail today", "no mail today"),
        ] {
            assert_eq!(mask_all(said), shown);
        }
    }
}
