//! Reads the log of what happened, beside the one process that writes it.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Row, params_from_iter};

use super::{Entry, StoreError, file};
use crate::domain::ServerId;

/// Which entries are wanted; an absent condition is always met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Those of one owner.
    pub user: Option<String>,
    /// Those of one server of the owner.
    pub server: Option<String>,
    /// One kind of event.
    pub event: Option<String>,
    /// Those before this entry, for the next page.
    pub before: Option<i64>,
    /// How many at most.
    pub limit: u32,
}

/// An entry with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Its number, which only grows.
    pub number: i64,
    /// What happened.
    pub entry: Entry,
}

/// The newest entries first; none where there is no file yet.
pub fn read_log(path: &Path, wanted: &Wanted) -> Result<Vec<Logged>, StoreError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let connection = file::read_only(path)?;
    let (mut sql, mut values) =
        ("SELECT id, at, user, server, event, reason FROM event WHERE 1".to_owned(), Vec::new());
    let texts = [("user", &wanted.user), ("server", &wanted.server), ("event", &wanted.event)];
    for (column, text) in texts {
        if let Some(text) = text {
            values.push(rusqlite::types::Value::from(text.clone()));
            sql.push_str(&format!(" AND {column} = ?{}", values.len()));
        }
    }
    if let Some(before) = wanted.before {
        values.push(before.into());
        sql.push_str(&format!(" AND id < ?{}", values.len()));
    }
    sql.push_str(&format!(" ORDER BY id DESC LIMIT {}", wanted.limit));
    let read = || -> rusqlite::Result<Vec<Logged>> {
        let mut statement = connection.prepare(&sql)?;
        statement.query_map(params_from_iter(values), logged)?.collect()
    };
    read().map_err(|source| StoreError::Sqlite { what: "read the log of", path: path.to_owned(), source })
}

fn logged(row: &Row<'_>) -> rusqlite::Result<Logged> {
    let user: Option<String> = row.get(2)?;
    let server: Option<String> = row.get(3)?;
    let at: String = row.get(1)?;
    let entry = Entry {
        at: at.parse().unwrap_or(Timestamp::UNIX_EPOCH),
        server: user.map(|user| ServerId::new(user, server.unwrap_or_default())),
        event: row.get(4)?,
        reason: row.get(5)?,
    };
    Ok(Logged { number: row.get(0)?, entry })
}
