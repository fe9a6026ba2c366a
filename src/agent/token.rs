//! The token that readers must show.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// A token in a file, read anew for each question so that it can be exchanged under us.
#[derive(Debug)]
pub struct Token {
    file: PathBuf,
    /// What the file held when it could last be read.
    last: Mutex<SecretString>,
}

impl Token {
    /// Reads the file for the first time.
    pub fn open(file: PathBuf) -> Result<Self, String> {
        let last = Mutex::new(read(&file)?);
        Ok(Self { file, last })
    }

    /// Whether the header `Authorization` holds the token.
    pub fn is_in(&self, header: Option<&HeaderValue>) -> bool {
        let given = header.and_then(|value| value.to_str().ok()).and_then(|text| text.split_once(' '));
        let Some((scheme, given)) = given else { return false };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match read(&self.file) {
            Ok(token) => *last = token,
            Err(why) => tracing::error!("{why}; the old token stays in force"),
        }
        let same = given.trim().as_bytes().ct_eq(last.expose_secret().as_bytes());
        scheme.eq_ignore_ascii_case("bearer") && bool::from(same)
    }
}

fn read(file: &PathBuf) -> Result<SecretString, String> {
    let text = fs::read_to_string(file);
    let text = text.map_err(|e| format!("the token cannot be read from {}: {e}", file.display()))?;
    match text.trim() {
        "" => Err(format!("{} is empty: write a long random token into it", file.display())),
        token => Ok(SecretString::from(token.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token_and_it_may_be_exchanged() {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        fs::write(&file, "abc123\n").unwrap();
        let token = Token::open(file.to_path_buf()).unwrap();
        let shown = |header: &str| token.is_in(Some(&HeaderValue::from_str(header).unwrap()));
        assert!(shown("Bearer abc123") && shown("bearer abc123"));
        for wrong in ["Bearer abc12", "Bearer abc1234", "Bearer ", "Bearer", "abc123", "token abc123", ""] {
            assert!(!shown(wrong), "{wrong}");
        }
        assert!(!token.is_in(None));
        fs::write(&file, "next").unwrap();
        assert!(shown("Bearer next") && !shown("Bearer abc123"));
        fs::write(&file, "\n").unwrap();
        assert!(shown("Bearer next") && !shown("Bearer "), "an empty file is no token");
        assert!(Token::open(file.to_path_buf()).unwrap_err().contains("is empty"));
    }
}
