//! The Hub's models of users and servers, turned into domain values.
//!
//! Unknown fields are ignored; a field we decide by that has a wrong type spoils its entry only.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;
use url::Url;

use super::json::{self, Fields};
use super::spawner;
use crate::domain::{CHOSEN, IntentKeys, LONGEST_LABEL, Server, ServerId, ServerName, SpawnerState};

/// A user and what belongs to all of the user's servers.
pub(super) struct Owner {
    pub(super) name: String,
    /// `None` where the token may not see them, which is not "no groups".
    pub(super) groups: Option<Vec<String>>,
    admin: bool,
    contacts: Vec<(String, String)>,
}

/// A server, and whether its spawner's state was shown.
pub(super) struct Shown {
    pub(super) server: Server,
    pub(super) state_shown: bool,
}

/// The most options that are kept of one server: each may be spelled in a few ways.
const MOST_OPTIONS: usize = 20;

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
pub(super) fn owner(model: &RawValue) -> Result<(Owner, Fields<'_>), Skipped> {
    let named = json::object(model).and_then(|model| Ok((model.required::<String>("name")?, model)));
    let (name, model) = named.map_err(|reason| {
        let what = "a user without a readable name".to_owned();
        Skipped { what, reason }
    })?;
    let read = || {
        let owner = Owner {
            name: name.clone(),
            groups: model.optional("groups")?,
            admin: model.optional("admin")?.unwrap_or(false),
            contacts: contacts(&model),
        };
        Ok((owner, servers(&model)?))
    };
    read().map_err(|reason| Skipped { what: format!("user {name}"), reason })
}

/// The Hub leaves the field out, without an error, where the scope is missing.
fn servers<'a>(model: &Fields<'a>) -> Result<Fields<'a>, String> {
    if !model.has("servers") {
        return Err("`servers` is missing; the token needs the scope read:servers for this user".to_owned());
    }
    let servers = model.get("servers").ok_or("`servers` is null, not an object")?;
    json::object(servers).map_err(|why| format!("`servers` is {why}"))
}

/// Of `user_info` (Hub 6) every text that may be an address, and the time zone, both as OpenID Connect
/// names them; of `auth_state`, whose other texts are secrets, the mail.
fn contacts(model: &Fields<'_>) -> Vec<(String, String)> {
    let texts = |source: &'static str| {
        let fields = model.get(source).and_then(|value| json::object(value).ok());
        let found = |(key, value): (&str, &RawValue)| {
            let text = json::text(value).filter(|text| key == "zoneinfo" || text.contains('@'))?;
            Some((format!("{source}.{key}"), text))
        };
        fields.map(|fields| fields.iter().filter_map(found).collect::<Vec<_>>()).unwrap_or_default()
    };
    let mail = texts("auth_state").into_iter().filter(|(key, _)| key == "auth_state.email");
    texts("user_info").into_iter().chain(mail).collect()
}

impl Owner {
    /// The server `name`, or `None` where it is stopped.
    pub(super) fn server(
        &self,
        name: &str,
        model: &RawValue,
        chosen: Option<&IntentKeys>,
    ) -> Result<Option<Shown>, String> {
        let model = json::object(model)?;
        let ready: bool = model.required("ready")?;
        let pending: Option<String> = model.optional("pending")?;
        let active = ready || pending.is_some();
        if model.optional("stopped")?.unwrap_or(!active) {
            return Ok(None);
        }
        let state = model.get("state");
        let server = Server {
            id: ServerId::new(self.name.as_str(), name),
            groups: self.groups.clone().unwrap_or_default(),
            admin: self.admin,
            profile: profile(&model, state),
            labels: chosen.map(|keys| options(&model, keys)).unwrap_or_default(),
            started: model.stamp("started")?,
            last_activity: model.stamp("last_activity")?,
            pending,
            ready,
            contacts: self.contacts.clone(),
            spawner: state.map_or_else(SpawnerState::default, spawner::read),
            path: path(model.optional("url")?.unwrap_or_default()),
        };
        Ok(Some(Shown { server, state_shown: model.has("state") }))
    }
}

/// KubeSpawner's profile is an option of the user's; ProfilesSpawner keeps it in its state.
fn profile(model: &Fields<'_>, state: Option<&RawValue>) -> Option<String> {
    let of = |value: &RawValue| json::text(json::object(value).ok()?.get("profile")?);
    model.get("user_options").and_then(of).or_else(|| state.and_then(of))
}

/// What the user chose at the start, of the names that are asked for: any other may be a secret. Users write here
/// whatever they like, so that only as much of a text is kept as may be shown. A form that is not read by the
/// spawner's own code leaves a list of one.
fn options(model: &Fields<'_>, keys: &IntentKeys) -> BTreeMap<String, String> {
    let Some(fields) = model.get("user_options").and_then(|options| json::object(options).ok()) else {
        return BTreeMap::new();
    };
    let one = |value: &RawValue| match json::list(value).ok()?[..] {
        [only] => json::text(only),
        _ => None,
    };
    let wanted = fields.iter().filter(|(name, _)| keys.contain(name)).take(MOST_OPTIONS);
    let texts = wanted.filter_map(|(name, value)| Some((name, json::text(value).or_else(|| one(value))?)));
    texts
        .map(|(name, text)| (format!("{CHOSEN}{name}"), text.chars().take(LONGEST_LABEL).collect()))
        .collect()
}

/// A Hub with subdomains gives a whole address.
fn path(url: String) -> String {
    match Url::parse(&url) {
        Ok(whole) if whole.has_host() => whole.path().to_owned(),
        _ => url,
    }
}

/// The server `name` of the user whose model this is.
pub(super) fn one_server(
    model: &RawValue,
    name: &ServerName,
    chosen: Option<&IntentKeys>,
) -> Result<Option<Server>, String> {
    let (owner, servers) = owner(model).map_err(|skipped| skipped.to_string())?;
    let Some(model) = servers.get(&name.0) else {
        return Ok(None);
    };
    Ok(owner.server(&name.0, model, chosen)?.map(|shown| shown.server))
}
