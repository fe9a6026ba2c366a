//! File, environment and flags → validated settings.

mod error;
mod policy;
mod raw;
mod values;

use std::path::Path;

pub use error::SettingsError;
pub use values::length;
use values::{Limit, Pattern, Share};

use crate::policy::Policy;

/// The policy of a config file, or the defaults where there is none.
pub fn policy_of(file: Option<&Path>) -> Result<Policy, SettingsError> {
    read(file).and_then(|raw| policy::policy(&raw))
}

fn read(file: Option<&Path>) -> Result<raw::File, SettingsError> {
    let Some(path) = file else {
        return Ok(raw::File::default());
    };
    let text = std::fs::read_to_string(path).map_err(|e| {
        SettingsError::new(format!("the config file cannot be read ({e}); check the path and its rights"))
            .in_file(path)
    })?;
    toml::from_str(&text).map_err(|e| SettingsError::from_toml(&e, &text).in_file(path))
}
