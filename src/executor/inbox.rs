//! Wishes of people, on their way from the pages to the loop that may fulfil them.
//!
//! Who asks waits for the answer. A wish to keep a server counts against a stop from the instant it
//! arrives, however long it waits to be answered: [`Inbox::may_stop`] is asked just before each stop.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, oneshot};

use super::desk::{Answer, Refusal};
use crate::domain::ServerId;

/// Wishes waiting at once, at most: beyond that somebody plays.
const ROOM: usize = 1000;

/// What somebody wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Who wants it.
    pub by: String,
    /// Whether this is said on behalf of the owner by somebody with the right to.
    pub as_admin: bool,
    /// Why, in their words.
    pub reason: Option<String>,
    /// What.
    pub what: What,
}

/// The kinds of wishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A session is still needed for this long.
    Keep {
        /// Which server.
        server: ServerId,
        /// Which run of it was looked at.
        started: Option<Timestamp>,
        /// How long.
        length: SignedDuration,
    },
    /// A server is no longer needed.
    StopNow {
        /// Which server.
        server: ServerId,
        /// Which run of it was looked at.
        started: Option<Timestamp>,
        /// That it still computes is known.
        even_if_busy: bool,
    },
    /// The freeze was looked into.
    LiftFreeze,
}

impl What {
    fn keeps(&self) -> Option<&ServerId> {
        match self {
            Self::Keep { server, .. } => Some(server),
            Self::StopNow { .. } | Self::LiftFreeze => None,
        }
    }
}

/// A wish, and where its answer goes.
#[derive(Debug)]
pub struct Waiting {
    /// What is wanted.
    pub wish: Wish,
    answer: oneshot::Sender<Answer>,
}

impl Waiting {
    /// Tells whoever waits; somebody who has gone away misses it.
    pub fn answer(self, answer: Answer) {
        let _ = self.answer.send(answer);
    }
}

/// The way in, shared by the pages and the loop.
#[derive(Clone, Debug, Default)]
pub struct Inbox(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Servers that somebody asked to keep since the last plan was made.
    wanted: BTreeSet<ServerId>,
    /// Servers that are being stopped.
    stopping: BTreeSet<ServerId>,
}

impl Inbox {
    /// Leaves a wish; the answer comes when the loop has seen to it.
    pub fn leave(&self, wish: Wish) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        let asked = Waiting { wish, answer };
        let mut state = self.state();
        let too_late = asked.wish.what.keeps().is_some_and(|server| state.stopping.contains(server));
        if too_late {
            asked.answer(Answer::Refused(Refusal::TooLate));
        } else if state.waiting.len() >= ROOM {
            asked.answer(Answer::Refused(Refusal::Busy));
        } else {
            state.wanted.extend(asked.wish.what.keeps().cloned());
            state.waiting.push_back(asked);
            self.0.arrived.notify_one();
        }
        receiver
    }

    /// Returns when there may be something to take.
    pub async fn arrived(&self) {
        self.0.arrived.notified().await;
    }

    /// Everything that waits, to be seen to before a plan is made.
    pub fn take_all(&self) -> VecDeque<Waiting> {
        let mut state = self.state();
        state.wanted.clear();
        std::mem::take(&mut state.waiting)
    }

    /// What can be answered while stops are under way: everything but another stop.
    pub fn take_quick(&self) -> VecDeque<Waiting> {
        let mut state = self.state();
        let all = std::mem::take(&mut state.waiting);
        let (slow, quick) = all.into_iter().partition(|a| matches!(a.wish.what, What::StopNow { .. }));
        state.waiting = slow;
        quick
    }

    /// Waiting just before a stop: `false` where somebody wants the server kept. After `true` a wish to
    /// keep it comes too late.
    pub fn may_stop(&self, server: &ServerId) -> bool {
        let mut state = self.state();
        !state.wanted.contains(server) && {
            state.stopping.insert(server.clone());
            true
        }
    }

    /// A stop has ended, in whatever way.
    pub fn stop_ended(&self, server: &ServerId) {
        self.state().stopping.remove(server);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    fn keep(server: &str) -> Wish {
        let server: ServerId = server.parse().unwrap();
        let what = What::Keep { server, started: None, length: SignedDuration::from_hours(2) };
        Wish { by: "alice".to_owned(), as_admin: false, reason: None, what }
    }

    #[test]
    fn a_keep_that_arrives_before_the_stop_wins_and_one_after_it_is_told_so() {
        let inbox = Inbox::default();
        let alice = "alice".parse().unwrap();
        let bob = "bob".parse().unwrap();
        let _waits = inbox.leave(keep("alice"));
        assert!(!inbox.may_stop(&alice));
        assert!(inbox.may_stop(&bob));
        let mut too_late = inbox.leave(keep("bob"));
        assert_eq!(too_late.try_recv().unwrap(), Answer::Refused(Refusal::TooLate));
        inbox.stop_ended(&bob);
        assert!(inbox.leave(keep("bob")).try_recv().is_err(), "it waits for its answer");
    }

    #[test]
    fn a_keep_answered_while_stops_are_under_way_still_holds_until_the_next_plan() {
        let inbox = Inbox::default();
        let alice = "alice".parse().unwrap();
        let _waits = inbox.leave(keep("alice"));
        assert_eq!(inbox.take_quick().len(), 1);
        assert!(!inbox.may_stop(&alice));
        inbox.take_all();
        assert!(inbox.may_stop(&alice));
    }

    #[test]
    fn there_is_an_end_to_what_waits() {
        let inbox = Inbox::default();
        let _waiting: Vec<_> = (0..ROOM).map(|_| inbox.leave(keep("alice"))).collect();
        let mut refused = inbox.leave(keep("alice"));
        assert_eq!(refused.try_recv().unwrap(), Answer::Refused(Refusal::Busy));
    }
}
