//! Sees to the wishes of people: through the journal, so that they count only once they are saved.

use jiff::{SignedDuration, Timestamp};

use super::inbox::{Waiting, What, Wish};
use super::verified::{Orphan, Stopped, send_and_verify};
use super::{Clock, Executor, Happening, Journal, StopOutcome};
use crate::domain::{Afterwards, KernelState, ServerId, UserName};
use crate::message::reasons;
use crate::observer::Observer;
use crate::policy::{self, Giver, Keep, KeepRefused, Mode, Policy, Session, is_active};

/// What came of a wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is kept, and that is saved.
    Kept(Keep),
    /// The server is stopped and gone.
    Stopped,
    /// The Hub is still stopping it.
    StillStopping,
    /// The Hub has forgotten the server, but processes of it live on.
    Orphaned,
    /// Stops are no longer frozen.
    Lifted,
    /// It was not done.
    Refused(Refusal),
}

/// Why a wish is not fulfilled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such server (any more).
    NoServer,
    /// It was started anew since the page was shown.
    Restarted,
    /// It may not be kept like this.
    Keep(KeepRefused),
    /// Nothing is frozen.
    NotFrozen,
    /// It is being stopped just now.
    TooLate,
    /// It computes: is that known?
    Computes(String),
    /// In this mode the service cannot stop anything.
    NoStopper(Mode),
    /// It did not work, in words for people.
    Failed(String),
    /// Too many wishes wait.
    Busy,
    /// The service does no work at present.
    NotWorking,
}

/// What seeing to some wishes came to.
#[derive(Debug, Default)]
pub struct Done {
    /// What happened.
    pub happened: Vec<Happening>,
    /// What stops left behind.
    pub orphans: Vec<Orphan>,
}

impl Executor {
    /// Sees to everything that waits.
    pub async fn see_to_all(
        &self,
        policy: &Policy,
        journal: &mut Journal,
        observer: &Observer,
        clock: Clock,
    ) -> Done {
        let mut done = Done::default();
        for asked in self.inbox.take_all() {
            match &asked.wish.what {
                What::StopNow { .. } => {
                    let answer =
                        self.stop_now(&asked.wish, policy, journal, observer, clock, &mut done).await;
                    asked.answer(answer);
                }
                What::Keep { .. } | What::LiftFreeze => {
                    done.happened.extend(quick(asked, policy, journal, clock()));
                }
            }
        }
        done
    }

    /// Sees to what needs no time, while stops are under way.
    pub fn see_to_quick(&self, policy: &Policy, journal: &mut Journal, now: Timestamp) -> Vec<Happening> {
        let waiting = self.inbox.take_quick();
        waiting.into_iter().filter_map(|asked| quick(asked, policy, journal, now)).collect()
    }

    /// Stops a server because its owner (or an admin) says so: no warning is needed, everything else is
    /// as in any other stop.
    async fn stop_now(
        &self,
        wish: &Wish,
        policy: &Policy,
        journal: &mut Journal,
        observer: &Observer,
        clock: Clock,
        done: &mut Done,
    ) -> Answer {
        let What::StopNow { server, started, even_if_busy } = &wish.what else {
            return Answer::Refused(Refusal::NoServer);
        };
        let Some(stopper) = &self.stopper else {
            return Answer::Refused(Refusal::NoStopper(policy.mode));
        };
        let session = match observer.look_again(server, clock()).await {
            Ok(Some(session)) => session,
            Ok(None) => return Answer::Refused(Refusal::NoServer),
            Err(error) => return Answer::Refused(Refusal::Failed(error)),
        };
        if started.is_some() && session.server.started != *started {
            return Answer::Refused(Refusal::Restarted);
        }
        if let Some(what) = computes(&session, policy).filter(|_| !even_if_busy) {
            return Answer::Refused(Refusal::Computes(what));
        }
        if !self.inbox.may_stop(server) {
            return Answer::Refused(Refusal::Failed("somebody asked to keep it at the same time".to_owned()));
        }
        let ended = send_and_verify(&session.server, Afterwards::Keep, stopper, observer, clock).await;
        self.inbox.stop_ended(server);
        let at = clock();
        let (event, what, answer) = match ended {
            Stopped::Gone => {
                done.orphans.extend(Orphan::to_be_seen(&session.server, observer, at));
                ("stopped", "the server is gone".to_owned(), Answer::Stopped)
            }
            Stopped::StillThere => {
                ("stopping", "the Hub is still stopping it".to_owned(), Answer::StillStopping)
            }
            Stopped::Orphaned(orphan) => {
                let what = format!("it was stopped, but these live on: {}", orphan.left);
                done.orphans.push(orphan);
                ("orphaned", what, Answer::Orphaned)
            }
            Stopped::Failed(error) => {
                ("held-back", format!("the stop failed: {error}"), Answer::Refused(Refusal::Failed(error)))
            }
        };
        let saved = match answer {
            Answer::Stopped | Answer::Orphaned => journal.stopped(server, at),
            _ => Ok(()),
        };
        let said = format!("{} asked for it{}: {what}", who(wish), because(wish));
        let outcome = match answer {
            Answer::Stopped => StopOutcome::Stopped,
            Answer::Orphaned => StopOutcome::Orphaned,
            Answer::StillStopping => StopOutcome::Slow,
            _ => StopOutcome::Failed,
        };
        done.happened.push(Happening::to(server, at, event, said).of_a_stop(outcome));
        done.happened.extend(saved.err().map(|error| Happening::to(server, at, "note", error.to_string())));
        answer
    }
}

/// Keeps a server, or lifts the freeze.
fn quick(asked: Waiting, policy: &Policy, journal: &mut Journal, now: Timestamp) -> Option<Happening> {
    let done = match &asked.wish.what {
        What::Keep { server, started, length } => {
            keep(&asked.wish, server, *started, *length, policy, journal, now)
        }
        What::LiftFreeze => lift(&asked.wish, journal, now),
        What::StopNow { .. } => Err(Refusal::NotWorking),
    };
    let (answer, happened) = match done {
        Ok((answer, happened)) => (answer, Some(happened)),
        Err(refusal) => (Answer::Refused(refusal), None),
    };
    asked.answer(answer);
    happened
}

fn keep(
    wish: &Wish,
    server: &ServerId,
    started: Option<Timestamp>,
    length: SignedDuration,
    policy: &Policy,
    journal: &mut Journal,
    now: Timestamp,
) -> Result<(Answer, Happening), Refusal> {
    let known = journal.record(server).map(|record| record.started);
    if started.is_some_and(|started| known.is_some_and(|known| known != started)) {
        return Err(Refusal::Restarted);
    }
    let giver = if wish.as_admin { Giver::Admin(UserName(wish.by.as_str().into())) } else { Giver::Owner };
    if wish.as_admin && wish.reason.is_none() {
        return Err(Refusal::Keep(KeepRefused::ReasonMissing));
    }
    let given = policy::keep(journal.ledger(), policy, server, &giver, length, wish.reason.as_deref(), now);
    let given = given.map_err(Refusal::Keep)?;
    let saved = journal.kept(server, given.clone());
    saved.map(|kept| (Answer::Kept(given), kept)).map_err(|error| Refusal::Failed(error.to_string()))
}

fn lift(wish: &Wish, journal: &mut Journal, now: Timestamp) -> Result<(Answer, Happening), Refusal> {
    if journal.ledger().freeze.is_some() && wish.reason.is_none() {
        return Err(Refusal::Keep(KeepRefused::ReasonMissing));
    }
    match journal.lift_freeze(&wish.by, now) {
        Ok(Some(mut lifted)) => {
            lifted.reason.push_str(&because(wish));
            Ok((Answer::Lifted, lifted))
        }
        Ok(None) => Err(Refusal::NotFrozen),
        Err(error) => Err(Refusal::Failed(error.to_string())),
    }
}

/// What shows that a session computes, where anything does or that cannot be told.
fn computes(session: &Session, policy: &Policy) -> Option<String> {
    let works = session.gpus.iter().flatten().any(|gpu| is_active(gpu, &policy.thresholds));
    if works {
        return Some("one of its cards is computing".to_owned());
    }
    match &session.jupyter {
        Ok(jupyter) => jupyter
            .kernels
            .iter()
            .any(|kernel| kernel.state == KernelState::Busy)
            .then(|| "a kernel is computing".to_owned()),
        Err(_) => Some("its kernels cannot be asked whether they compute".to_owned()),
    }
}

fn who(wish: &Wish) -> String {
    let name = reasons::name(&wish.by);
    if wish.as_admin { format!("{name} (on behalf of its owner)") } else { name }
}

fn because(wish: &Wish) -> String {
    wish.reason.as_ref().map(|reason| format!(" (\"{}\")", reasons::name(reason))).unwrap_or_default()
}
