//! The users without a running server, page by page, and how one of them is deleted.

use serde_json::value::RawValue;

use super::client::{Call, Client};
use super::json;
use super::listing;
use super::{HubError, HubSettings};
use crate::domain::{Account, UserName};

/// What a list of accounts came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Those that were wanted.
    pub wanted: Vec<Account>,
    /// How many there are.
    pub seen: usize,
    /// What could not be read.
    pub troubles: Vec<String>,
}

/// Lists the users without a running server; of thousands only those that are `wanted` stay in memory.
pub(super) async fn inactive(
    client: &Client,
    page_size: Option<u32>,
    wanted: impl Fn(&Account) -> bool,
) -> Result<Accounts, HubError> {
    let (mut accounts, mut incomplete, mut unreadable) = (Accounts::default(), Vec::new(), 0);
    let take = |users: &[&RawValue], _: Option<u64>| {
        accounts.seen += users.len();
        for user in users {
            match account(user) {
                Ok(account) if wanted(&account) => accounts.wanted.push(account),
                Ok(_) => {}
                Err(_) => unreadable += 1,
            }
        }
    };
    listing::each_page(client, "inactive", page_size, &mut incomplete, take).await?;
    accounts.troubles = incomplete;
    if unreadable > 0 {
        accounts.troubles.push(format!(
            "{unreadable} users could not be read, or the token lacks read:users:activity or read:servers for them"
        ));
    }
    Ok(accounts)
}

/// One account as it is now; `None` where the Hub knows none such.
pub(super) async fn one(client: &Client, name: &UserName) -> Result<Option<Account>, HubError> {
    let call =
        Call::get(client.route(&["users", &name.0])?, "list:users, read:users:activity and read:servers");
    let answer = match client.get(&call).await {
        Ok(answer) => answer,
        Err(HubError::Status { status: 404, said: Some(_), .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let account = json::parse(&answer).and_then(account).map_err(|why| call.unparsable(why))?;
    // The Hub may spell the name otherwise; another user must not be taken for this one.
    if account.name == *name {
        Ok(Some(account))
    } else {
        Err(call.unparsable("it is about another user".to_owned()))
    }
}

/// A field that the token may not see is left out, and then nothing is known of this user.
fn account(model: &RawValue) -> Result<Account, String> {
    let model = json::object(model)?;
    for field in ["servers", "last_activity"] {
        if !model.has(field) {
            return Err(format!("`{field}` is missing"));
        }
    }
    let servers = json::object(model.required("servers")?)?;
    let pending: Option<&RawValue> = model.get("pending");
    let server: Option<&RawValue> = model.get("server");
    Ok(Account {
        name: UserName(model.required("name")?),
        admin: model.required("admin")?,
        last_activity: model.stamp("last_activity")?,
        created: model.stamp("created")?,
        active: servers.iter().next().is_some() || pending.is_some() || server.is_some(),
    })
}

/// Deletes users and can do nothing else. It exists only where users are to be deleted.
#[derive(Debug)]
pub struct UserRemover {
    client: Client,
}

impl UserRemover {
    /// A client that can delete users; nothing is sent yet.
    pub fn new(settings: &HubSettings) -> Result<Self, HubError> {
        Ok(Self { client: Client::new(settings)? })
    }

    /// Deletes a user, once. What it came to must be looked at.
    pub async fn remove(&self, name: &UserName) -> Result<(), HubError> {
        if name.0.is_empty() {
            return Err(HubError::BadName(name.to_string()));
        }
        let call = Call::delete(self.client.route(&["users", &name.0])?, None, "delete:users");
        match self.client.once(&call).await?.status {
            204 => Ok(()),
            other => Err(call.unparsable(format!("{other} instead of 204"))),
        }
    }
}
