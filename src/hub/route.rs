//! Addresses below the API's, made of names that may hold anything.

use std::fmt::Write;

use url::Url;

/// `base` with each of `segments` as exactly one path segment.
///
/// Names are encoded here and not by `Url`, which drops tabs and line ends and resolves `..`:
/// a stop must never reach another address than the one meant. For the same reason a name that is
/// a dot segment is refused, since no encoding of it survives on the way.
pub(super) fn below(base: &Url, segments: &[&str]) -> Result<Url, String> {
    let mut path = base.path().trim_end_matches('/').to_owned();
    for segment in segments {
        if matches!(*segment, "." | "..") {
            return Err((*segment).to_owned());
        }
        path.push('/');
        encode(segment, &mut path);
    }
    let mut url = base.clone();
    url.set_path(&path);
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

fn encode(segment: &str, path: &mut String) {
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}"); // writing to a String cannot fail
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    fn path(name: &str) -> Result<String, String> {
        let base = Url::parse("http://127.0.0.1:8081/hub/api/").unwrap();
        below(&base, &["users", name, "server"]).map(|url| url.path().to_owned())
    }

    #[test]
    fn a_name_stays_one_segment_whatever_it_holds() {
        for (name, expected) in [
            ("alice", "alice"),
            ("a b", "a%20b"),
            ("a/b", "a%2Fb"),
            ("a\\b", "a%5Cb"),
            ("a@example.org", "a@example.org"),
            ("%2e%2e", "%252e%252e"),
            ("x?y#z", "x%3Fy%23z"),
            ("é", "%C3%A9"),
            ("a\tb\n", "a%09b%0A"),
            ("...", "..."),
        ] {
            assert_eq!(path(name), Ok(format!("/hub/api/users/{expected}/server")));
        }
    }

    #[test]
    fn a_name_that_would_climb_to_another_address_is_refused() {
        assert!(path("..").is_err());
        assert!(path(".").is_err());
    }
}
