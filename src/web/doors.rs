//! Who is let in: logins through the Hub, kept here under a name that cannot be guessed, and tokens.
//!
//! What the Hub says of a visitor is asked again each minute, and again for each change; a Hub that does
//! not answer is believed for at most five minutes. Logins live in memory: after a restart of the service
//! the Hub lets everybody in again without a question.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::visitor::Visitor;
use crate::hub::{Holder, HubError, Login, unguessable};

/// How long the Hub's word is good for looking at pages.
const FRESH: Duration = Duration::from_secs(60);
/// How long it is good when the Hub does not answer.
const OLDEST: Duration = Duration::from_secs(300);
/// A login that nobody uses ends after this long.
const UNUSED: Duration = Duration::from_secs(12 * 3600);
/// Logins and tokens remembered at once, at most.
const ROOM: usize = 10_000;

/// Why somebody is not let in.
#[derive(Debug)]
pub enum Outside {
    /// Not logged in, or no longer.
    NoLogin,
    /// The Hub knows them and does not grant access.
    NoAccess,
    /// The Hub cannot be asked.
    HubSilent(HubError),
}

/// What a visitor shows at the door.
#[derive(Debug)]
pub enum Pass {
    /// The cookie of a login, and the Hub's own session cookie beside it: it changes at a logout.
    Cookie {
        /// The login's name.
        login: String,
        /// `jupyterhub-session-id`.
        hub_session: Option<String>,
    },
    /// A token of the Hub.
    Token(SecretString),
}

/// Whether the Hub's last word is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To look at something.
    IfOld,
    /// To change something.
    Anew,
}

/// The doors.
#[derive(Debug)]
pub struct Doors {
    /// Speaks with the Hub about visitors.
    pub login: Login,
    logins: Mutex<HashMap<String, Entry>>,
    tokens: Mutex<HashMap<[u8; 32], Word>>,
}

/// One login.
#[derive(Clone, Debug)]
struct Entry {
    token: SecretString,
    csrf: String,
    hub_session: Option<String>,
    used: Instant,
    word: Word,
    flash: Option<String>,
}

/// What the Hub said, and when.
#[derive(Clone, Debug)]
struct Word {
    holder: Holder,
    at: Instant,
}

impl Doors {
    /// Nobody is in yet.
    pub fn new(login: Login) -> Self {
        Self { login, logins: Mutex::default(), tokens: Mutex::default() }
    }

    /// Lets somebody in who brought a code from the Hub; the name of the login, for the cookie.
    pub async fn enter(
        &self,
        code: String,
        verifier: String,
        hub_session: Option<String>,
        now: Instant,
    ) -> Result<String, Outside> {
        let token = self.login.finish(code, verifier).await.map_err(Outside::HubSilent)?;
        let token = token.ok_or(Outside::NoLogin)?;
        let holder = self.ask(&token).await?;
        let name = unguessable();
        let word = Word { holder, at: now };
        let entry = Entry { token, csrf: unguessable(), hub_session, used: now, word, flash: None };
        let mut logins = self.logins();
        logins.retain(|_, entry| now.duration_since(entry.used) < UNUSED);
        make_room(&mut logins, |entry| entry.used);
        logins.insert(name.clone(), entry);
        Ok(name)
    }

    /// Who shows this pass.
    pub async fn visitor(&self, pass: &Pass, ask: Ask, now: Instant) -> Result<Visitor, Outside> {
        match pass {
            Pass::Cookie { login, hub_session } => {
                self.by_cookie(login, hub_session.as_ref(), ask, now).await
            }
            Pass::Token(token) => self.by_token(token, ask, now).await,
        }
    }

    async fn by_cookie(
        &self,
        name: &str,
        hub_session: Option<&String>,
        ask: Ask,
        now: Instant,
    ) -> Result<Visitor, Outside> {
        let entry = self.logins().get(name).cloned().ok_or(Outside::NoLogin)?;
        if now.duration_since(entry.used) >= UNUSED {
            self.logins().remove(name);
            return Err(Outside::NoLogin);
        }
        let same_session = entry.hub_session.as_ref() == hub_session;
        let age = now.duration_since(entry.word.at);
        let word = if ask == Ask::IfOld && same_session && age < FRESH {
            entry.word
        } else {
            match self.ask(&entry.token).await {
                Ok(holder) => Word { holder, at: now },
                Err(Outside::HubSilent(_)) if ask == Ask::IfOld && same_session && age < OLDEST => entry.word,
                Err(Outside::HubSilent(error)) => return Err(Outside::HubSilent(error)),
                Err(out) => {
                    self.logins().remove(name);
                    return Err(out);
                }
            }
        };
        let visitor = Visitor::by_login(&word.holder, entry.csrf);
        if let Some(entry) = self.logins().get_mut(name) {
            entry.used = now;
            entry.word = word;
            entry.hub_session = hub_session.cloned();
        }
        Ok(visitor)
    }

    async fn by_token(&self, token: &SecretString, ask: Ask, now: Instant) -> Result<Visitor, Outside> {
        let digest: [u8; 32] = Sha256::digest(token.expose_secret()).into();
        let known = self.tokens().get(&digest).cloned();
        if let Some(word) = known.filter(|word| ask == Ask::IfOld && now.duration_since(word.at) < FRESH) {
            return Ok(Visitor::by_token(&word.holder));
        }
        let holder = self.ask(token).await.inspect_err(|_| {
            self.tokens().remove(&digest);
        })?;
        let visitor = Visitor::by_token(&holder);
        let mut tokens = self.tokens();
        make_room(&mut tokens, |word| word.at);
        tokens.insert(digest, Word { holder, at: now });
        Ok(visitor)
    }

    async fn ask(&self, token: &SecretString) -> Result<Holder, Outside> {
        match self.login.holder(token).await {
            Ok(Some(holder)) if self.login.lets_in(&holder) => Ok(holder),
            Ok(Some(_)) => Err(Outside::NoAccess),
            Ok(None) => Err(Outside::NoLogin),
            Err(error) => Err(Outside::HubSilent(error)),
        }
    }

    /// Something to tell a visitor on the next page.
    pub fn leave_word(&self, pass: &Pass, words: String) {
        if let Pass::Cookie { login, .. } = pass
            && let Some(entry) = self.logins().get_mut(login)
        {
            entry.flash = Some(words);
        }
    }

    /// What was to be told, once.
    pub fn take_word(&self, pass: &Pass) -> Option<String> {
        match pass {
            Pass::Cookie { login, .. } => self.logins().get_mut(login)?.flash.take(),
            Pass::Token(_) => None,
        }
    }

    fn logins(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tokens(&self) -> MutexGuard<'_, HashMap<[u8; 32], Word>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the one that was longest not seen, where there are too many.
fn make_room<K: Clone + Eq + std::hash::Hash, V>(map: &mut HashMap<K, V>, seen: impl Fn(&V) -> Instant) {
    if map.len() >= ROOM
        && let Some(oldest) = map.iter().min_by_key(|(_, value)| seen(value)).map(|(key, _)| key.clone())
    {
        map.remove(&oldest);
    }
}

/// Whether two secrets are equal, in a time that tells nothing about them.
pub fn same_secret(given: &str, expected: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(expected)
}
