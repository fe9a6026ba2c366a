//! A single-user server's answers, turned into domain values.

use serde_json::value::RawValue;

use super::json::{self, Fields};
use crate::domain::{Jupyter, Kernel, KernelState, Terminal};

fn list<T>(value: &RawValue, read: fn(Fields<'_>) -> Result<T, String>) -> Result<Vec<T>, String> {
    json::list(value)?.into_iter().map(|item| json::object(item).and_then(read)).collect()
}

/// `GET api/kernels`.
pub(super) fn kernels(value: &RawValue) -> Result<Vec<Kernel>, String> {
    list(value, |kernel| {
        let state: Option<String> = kernel.optional("execution_state")?;
        Ok(Kernel {
            id: kernel.required("id")?,
            state: KernelState::from(state.unwrap_or_else(|| "unknown".to_owned())),
            last_activity: kernel.stamp("last_activity")?,
            connections: kernel.optional("connections")?.unwrap_or(0),
            notebook: None,
        })
    })
}

/// `GET api/terminals`.
pub(super) fn terminals(value: &RawValue) -> Result<Vec<Terminal>, String> {
    list(value, |terminal| {
        Ok(Terminal {
            name: terminal.optional("name")?.unwrap_or_default(),
            last_activity: terminal.stamp("last_activity")?,
        })
    })
}

/// `GET api/status`.
pub(super) fn status(value: &RawValue) -> Result<Jupyter, String> {
    let status = json::object(value)?;
    Ok(Jupyter {
        last_activity: status.stamp("last_activity")?,
        connections: status.optional("connections")?.unwrap_or(0),
        ..Jupyter::default()
    })
}

/// Kernel id and path of each session that has both.
pub(super) fn sessions(value: &RawValue) -> Result<Vec<(String, String)>, String> {
    let pairs = list(value, |session| {
        let kernel = session.get("kernel").and_then(|kernel| json::object(kernel).ok());
        let id = kernel.and_then(|kernel| json::text(kernel.get("id")?));
        Ok(id.zip(session.get("path").and_then(json::text)))
    })?;
    Ok(pairs.into_iter().flatten().collect())
}
