//! All servers, page by page. What fails costs its page or its entry, never the rest.

use serde_json::value::RawValue;

use super::client::{Call, Client};
use super::error::HubError;
use super::json::{self, Fields};
use super::wire::{self, Owner, Skipped};
use crate::domain::{IntentKeys, Server};

/// The Hub cuts a list without pages here, silently.
const BARE_LIST_CUT: usize = 200;
/// The Hub's own default limit of a page's size: it gives less, silently, where it is set so.
const LARGEST_PAGE: u64 = 200;
/// The room that is made for servers at the Hub's word alone.
const MOST_EXPECTED: usize = 50_000;
/// After so many pages in a row the Hub is taken to be gone; each has been asked for thrice.
const FAILED_PAGES: u32 = 2;

/// The servers that run, start or stop, and what could not be learned of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// By owner and name.
    // Large values that move on one by one: all of them at once would be a copy of everything.
    pub servers: Vec<Box<Server>>,
    /// Entries that could not be read.
    pub skipped: Vec<Skipped>,
    /// Parts of the list that did not come.
    pub incomplete: Vec<String>,
    /// What the token may not see.
    pub hidden: Hidden,
}

impl Listing {
    /// Whether a server that is absent here is known to be absent.
    pub fn is_complete(&self) -> bool {
        self.skipped.is_empty() && self.incomplete.is_empty()
    }
}

/// How many servers lack a part that the token may not see. Hidden is not the same as empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// No `state`: the scope admin:server_state is missing.
    pub state: usize,
    /// No owner's groups: the scope read:users:groups is missing.
    pub groups: usize,
}

/// Where the next page starts. Only numbers are taken from the Hub: the address it offers for the
/// next page is made of the request's Host header, and the token must not follow it.
struct Cursor {
    state: &'static str,
    offset: u64,
    limit: Option<u64>,
    total: Option<u64>,
    failures: u32,
}

/// One page as the Hub sent it.
struct Page<'a> {
    users: Vec<&'a RawValue>,
    /// Absent for a list without pages.
    position: Option<Position>,
}

struct Position {
    limit: u64,
    total: u64,
    next: Option<u64>,
}

pub(super) async fn read(
    client: &Client,
    page_size: Option<u32>,
    chosen: Option<&IntentKeys>,
) -> Result<Listing, HubError> {
    let (mut listing, mut incomplete) = (Listing::default(), Vec::new());
    let take = |users: &[&RawValue], total: Option<u64>| listing.take(users, total, chosen);
    // Pending servers must be seen too, so the filter is `active` and not `ready`.
    each_page(client, "active", page_size, &mut incomplete, take).await?;
    listing.incomplete = incomplete;
    // A start between two pages shifts the list, and its seam then comes twice.
    listing.servers.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    listing.servers.dedup_by(|a, b| a.id == b.id);
    Ok(listing)
}

/// Hands the users of each page in this state on, and the total the Hub tells. Fails only where not even the
/// first page came.
pub(super) async fn each_page(
    client: &Client,
    state: &'static str,
    page_size: Option<u32>,
    incomplete: &mut Vec<String>,
    mut take: impl FnMut(&[&RawValue], Option<u64>),
) -> Result<(), HubError> {
    let limit = Some(page_size.map_or(LARGEST_PAGE, u64::from));
    let mut cursor = Cursor { state, offset: 0, limit, total: None, failures: 0 };
    loop {
        let call = cursor.call(client)?;
        let page = client.get(&call).await.and_then(|body| {
            let page = json::parse(&body).and_then(page).map_err(|why| call.unparsable(why))?;
            let more = cursor.advance(&page, incomplete);
            take(&page.users, cursor.total);
            Ok(more)
        });
        let more = match page {
            Ok(more) => more,
            Err(error) if cursor.total.is_none() => return Err(error),
            Err(error) => cursor.step_over(&error, incomplete),
        };
        if !more {
            return Ok(());
        }
    }
}

fn page(value: &RawValue) -> Result<Page<'_>, String> {
    if let Ok(users) = json::list(value) {
        return Ok(Page { users, position: None });
    }
    let model = json::object(value)?;
    let position =
        json::object(model.required("_pagination")?).map_err(|why| format!("`_pagination` is {why}"))?;
    if !position.has("next") {
        return Err("`next` is missing".to_owned());
    }
    let next = position.get("next").map(|next| json::object(next)?.required("offset")).transpose()?;
    let position = Position { limit: position.required("limit")?, total: position.required("total")?, next };
    Ok(Page { users: model.required("items")?, position: Some(position) })
}

impl Cursor {
    fn call(&self, client: &Client) -> Result<Call, HubError> {
        let scopes = "list:users and read:servers";
        let call = Call::get(client.route(&["users"])?, scopes);
        let (offset, limit) = (self.offset.to_string(), self.limit.map(|n| n.to_string()));
        let mut query = vec![("state", self.state), ("offset", &offset)];
        query.extend(limit.as_deref().map(|limit| ("limit", limit)));
        Ok(call.with_query(&query))
    }

    /// Takes in a page; whether there is another.
    fn advance(&mut self, page: &Page<'_>, incomplete: &mut Vec<String>) -> bool {
        self.failures = 0;
        let Some(position) = &page.position else {
            if page.users.len() >= BARE_LIST_CUT {
                let n = page.users.len();
                incomplete.push(format!("the Hub sent {n} users without pages and may hold more"));
            }
            return false;
        };
        if self.total.is_some_and(|before| position.total < before) {
            // A stop between two pages moves an unseen user onto a page already read.
            incomplete.push("the list shrank while it was read; a user may be left out".to_owned());
        }
        self.limit = Some(position.limit.max(1));
        self.total = Some(position.total);
        match position.next {
            Some(next) if next > self.offset => {
                self.offset = next;
                true
            }
            Some(next) => {
                let here = self.offset;
                incomplete.push(format!("after offset {here} the Hub sent us back to {next}"));
                false
            }
            None => false,
        }
    }

    /// Leaves a failed page out; whether there is another.
    fn step_over(&mut self, error: &HubError, incomplete: &mut Vec<String>) -> bool {
        let limit = self.limit.unwrap_or(1);
        let last = self.offset.saturating_add(limit);
        incomplete.push(format!("users {} to {last}: {error}", self.offset));
        self.failures += 1;
        self.offset = last;
        let more = self.total.is_some_and(|total| last < total);
        if more && self.failures >= FAILED_PAGES {
            incomplete.push(format!("users from {last} on were not asked for: the Hub is out"));
            return false;
        }
        more
    }
}

impl Listing {
    /// Takes in a page.
    fn take(&mut self, users: &[&RawValue], total: Option<u64>, chosen: Option<&IntentKeys>) {
        if self.servers.is_empty() {
            let expected = total.and_then(|total| usize::try_from(total).ok()).unwrap_or_default();
            self.servers.reserve_exact(expected.min(MOST_EXPECTED));
        }
        for user in users {
            match wire::owner(user) {
                Ok((owner, servers)) => self.add_servers(&owner, &servers, chosen),
                Err(skipped) => self.skipped.push(skipped),
            }
        }
    }

    fn add_servers(&mut self, owner: &Owner, servers: &Fields<'_>, chosen: Option<&IntentKeys>) {
        for (name, model) in servers.iter() {
            match owner.server(name, model, chosen) {
                Ok(Some(shown)) => {
                    self.hidden.state += usize::from(!shown.state_shown);
                    self.hidden.groups += usize::from(owner.groups.is_none());
                    self.servers.push(Box::new(shown.server));
                }
                Ok(None) => {}
                Err(reason) => {
                    let what = format!("server {}/{name}", owner.name);
                    self.skipped.push(Skipped { what, reason });
                }
            }
        }
    }
}
