//! What is wrong with the settings, for the person who has to mend them.

use std::fmt;
use std::path::{Path, PathBuf};

/// One thing that is wrong: where, what, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The config file, where it is about one.
    pub file: Option<PathBuf>,
    /// Its line, counted from 1, where known.
    pub line: Option<usize>,
    /// What is wrong, with the remedy.
    pub what: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}, line {line}: {}", file.display(), self.what),
            (Some(file), None) => write!(f, "{}: {}", file.display(), self.what),
            (None, _) => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for SettingsError {}

impl SettingsError {
    /// Something about the settings as a whole.
    pub fn new(what: impl Into<String>) -> Self {
        Self { file: None, line: None, what: what.into() }
    }

    /// The same, in this file; the line is that of `key` where the text has it.
    pub fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// About one key, named with its table (`policy.grace`).
    pub fn key(key: &str, what: impl fmt::Display) -> Self {
        Self::new(format!("`{key}`: {what}"))
    }

    /// Finds the line of the key that the message names, when the parser gave none.
    pub fn locate(mut self, text: &str) -> Self {
        if self.line.is_none() {
            let key = self.what.split('`').nth(1).and_then(|key| key.rsplit('.').next()).unwrap_or_default();
            let assigns = |line: &&str| {
                let code = line.split('#').next().unwrap_or_default();
                let mut words = code.split(|c: char| c.is_whitespace() || "{},[]=".contains(c));
                !key.is_empty() && code.contains('=') && words.any(|word| word == key)
            };
            self.line = text.lines().position(|line| assigns(&line)).map(|index| index + 1);
        }
        self
    }

    /// What the TOML parser refused. The text of the file is not repeated: it may hold a secret that
    /// stands in the wrong place.
    pub fn from_toml(error: &toml::de::Error, text: &str) -> Self {
        let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
            return Self::new(error.message().trim());
        };
        let what = match (suggest(error.message()), key_before(before)) {
            (Some(what), _) => what,
            (None, Some(key)) => format!("`{key}`: {}", error.message().trim()),
            (None, None) => error.message().trim().to_owned(),
        };
        Self { file: None, line: Some(before.matches('\n').count() + 1), what }
    }
}

/// The key whose value begins where `before` ends, with its table: `policy.grace`.
fn key_before(before: &str) -> Option<String> {
    let line = before.lines().last()?;
    let key = line.rsplit_once('=')?.0.trim().rsplit([' ', ',', '{']).next()?;
    let table = before.lines().rev().find(|line| line.trim_start().starts_with('['));
    let table = table.map(|line| line.trim().trim_matches(['[', ']']).to_owned());
    Some(table.into_iter().chain([key.to_owned()]).collect::<Vec<_>>().join("."))
}

/// Turns "unknown field" with its list of all fields into the one that was probably meant.
fn suggest(message: &str) -> Option<String> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    let written = quoted.next()?;
    let known: Vec<&str> = quoted.collect();
    let best = known.iter().max_by(|a, b| similarity(written, a).total_cmp(&similarity(written, b)))?;
    Some(if similarity(written, best) > 0.7 {
        format!("unknown key `{written}`; did you mean `{best}`?")
    } else {
        format!("unknown key `{written}`; known here: {}", known.join(", "))
    })
}

fn similarity(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(a, b)
}
