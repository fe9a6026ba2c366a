//! The Hub's models of users and servers, turned into domain values.
//!
//! Unknown fields are ignored; a field we decide by that has a wrong type spoils its entry only.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use url::Url;

use super::{json, spawner};
use crate::domain::{Server, ServerId, ServerName, SpawnerState, UserName};

/// A user and what belongs to all of the user's servers.
pub(super) struct Owner {
    pub(super) name: String,
    /// `None` where the token may not see them, which is not "no groups".
    pub(super) groups: Option<Vec<String>>,
    admin: bool,
    addresses: BTreeMap<String, String>,
}

/// A server, and whether its spawner's state was shown.
pub(super) struct Shown {
    pub(super) server: Server,
    pub(super) state_shown: bool,
}

/// An entry that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Which one.
    pub what: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)
    }
}

/// Splits a user's model into the owner and the models of the servers by name.
pub(super) fn owner(model: Value) -> Result<(Owner, Map<String, Value>), Skipped> {
    let named = json::object(model).and_then(|mut model| {
        let name: String = json::required(&mut model, "name")?;
        Ok((name, model))
    });
    let (name, mut model) = named.map_err(|reason| {
        let what = "a user without a readable name".to_owned();
        Skipped { what, reason }
    })?;
    let mut read = || {
        let servers = servers(&mut model)?;
        let owner = Owner {
            name: name.clone(),
            groups: json::optional(&mut model, "groups")?,
            admin: json::optional(&mut model, "admin")?.unwrap_or(false),
            addresses: addresses(&model),
        };
        Ok((owner, servers))
    };
    read().map_err(|reason| Skipped { what: format!("user {name}"), reason })
}

/// The Hub leaves the field out, without an error, where the scope is missing.
fn servers(model: &mut Map<String, Value>) -> Result<Map<String, Value>, String> {
    let servers = model
        .remove("servers")
        .ok_or("`servers` is missing; the token needs the scope read:servers for this user")?;
    json::object(servers).map_err(|why| format!("`servers` is {why}"))
}

/// Every text of `user_info` (Hub 6) and the mail of `auth_state`, whose other texts are secrets.
fn addresses(model: &Map<String, Value>) -> BTreeMap<String, String> {
    let texts = |source: &'static str| {
        let fields = model.get(source).and_then(Value::as_object).into_iter().flatten();
        fields.filter_map(move |(key, value)| {
            let text = value.as_str().filter(|text| !text.is_empty())?;
            Some((format!("{source}.{key}"), text.to_owned()))
        })
    };
    let mail = texts("auth_state").filter(|(key, _)| key == "auth_state.email");
    texts("user_info").chain(mail).collect()
}

impl Owner {
    /// The server `name`, or `None` where it is stopped.
    pub(super) fn server(&self, name: &str, model: Value) -> Result<Option<Shown>, String> {
        let mut model = json::object(model)?;
        let ready: bool = json::required(&mut model, "ready")?;
        let pending: Option<String> = json::optional(&mut model, "pending")?;
        let active = ready || pending.is_some();
        if json::optional(&mut model, "stopped")?.unwrap_or(!active) {
            return Ok(None);
        }
        let state = model.remove("state");
        let server = Server {
            id: ServerId { user: UserName(self.name.clone()), name: ServerName(name.to_owned()) },
            groups: self.groups.clone().unwrap_or_default(),
            admin: self.admin,
            profile: profile(&model, state.as_ref()),
            labels: BTreeMap::new(),
            started: json::stamp(&mut model, "started")?,
            last_activity: json::stamp(&mut model, "last_activity")?,
            pending,
            ready,
            addresses: self.addresses.clone(),
            spawner: state.as_ref().map_or_else(SpawnerState::default, spawner::read),
            path: path(json::optional(&mut model, "url")?.unwrap_or_default()),
        };
        Ok(Some(Shown { server, state_shown: state.is_some() }))
    }
}

/// KubeSpawner's profile is an option of the user's; ProfilesSpawner keeps it in its state.
fn profile(model: &Map<String, Value>, state: Option<&Value>) -> Option<String> {
    let chosen = model.get("user_options").and_then(|options| options.get("profile"));
    let wrapped = || state?.get("profile")?.as_str();
    chosen.and_then(Value::as_str).or_else(wrapped).map(str::to_owned)
}

/// A Hub with subdomains gives a whole address.
fn path(url: String) -> String {
    match Url::parse(&url) {
        Ok(whole) if whole.has_host() => whole.path().to_owned(),
        _ => url,
    }
}

/// The server `name` of the user whose model this is.
pub(super) fn one_server(model: Value, name: &ServerName) -> Result<Option<Server>, String> {
    let (owner, mut servers) = owner(model).map_err(|skipped| skipped.to_string())?;
    let Some(model) = servers.remove(&name.0) else {
        return Ok(None);
    };
    Ok(owner.server(&name.0, model)?.map(|shown| shown.server))
}
