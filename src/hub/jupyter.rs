//! A single-user server's answers, turned into domain values.

use serde_json::{Map, Value};

use super::json;
use crate::domain::{Jupyter, Kernel, KernelState, Terminal};

fn list<T>(value: Value, read: fn(Map<String, Value>) -> Result<T, String>) -> Result<Vec<T>, String> {
    let Value::Array(items) = value else {
        return Err("not a list".to_owned());
    };
    items.into_iter().map(|item| json::object(item).and_then(read)).collect()
}

/// `GET api/kernels`.
pub(super) fn kernels(value: Value) -> Result<Vec<Kernel>, String> {
    list(value, |mut kernel| {
        let state: Option<String> = json::optional(&mut kernel, "execution_state")?;
        Ok(Kernel {
            id: json::required(&mut kernel, "id")?,
            state: KernelState::from(state.unwrap_or_else(|| "unknown".to_owned())),
            last_activity: json::stamp(&mut kernel, "last_activity")?,
            connections: json::optional(&mut kernel, "connections")?.unwrap_or(0),
            notebook: None,
        })
    })
}

/// `GET api/terminals`.
pub(super) fn terminals(value: Value) -> Result<Vec<Terminal>, String> {
    list(value, |mut terminal| {
        Ok(Terminal {
            name: json::optional(&mut terminal, "name")?.unwrap_or_default(),
            last_activity: json::stamp(&mut terminal, "last_activity")?,
        })
    })
}

/// `GET api/status`.
pub(super) fn status(value: Value) -> Result<Jupyter, String> {
    let mut status = json::object(value)?;
    Ok(Jupyter {
        last_activity: json::stamp(&mut status, "last_activity")?,
        connections: json::optional(&mut status, "connections")?.unwrap_or(0),
        ..Jupyter::default()
    })
}

/// Kernel id and path of each session that has both.
pub(super) fn sessions(value: Value) -> Result<Vec<(String, String)>, String> {
    let pairs = list(value, |mut session| {
        let kernel: Option<Value> = json::optional(&mut session, "kernel")?;
        let id = kernel.as_ref().and_then(|kernel| kernel.get("id")?.as_str());
        let path = session.get("path").and_then(Value::as_str);
        Ok(id.zip(path).map(|(id, path)| (id.to_owned(), path.to_owned())))
    })?;
    Ok(pairs.into_iter().flatten().collect())
}
