//! Stops one server: looks again, asks the planner again, and stops.

use futures::StreamExt;
use jiff::Timestamp;

use super::notice::session_notice;
use super::verified::{Orphan, Stopped, send_and_verify};
use super::{Clock, Executor, Happening, Inbox, Journal, StopOutcome, kernels};
use crate::domain::{Queue, Server, ServerId};
use crate::hub::{KernelStopper, Stopper};
use crate::message::{SessionNotice, reasons};
use crate::observer::Observer;
use crate::policy::{
    Action, Decision, KernelName, Ledger, Plan, Policy, Session, Snapshot, Target, Warning, plan,
    to_interrupt, without_interrupt,
};
use crate::store::StoreError;

/// What became of one stop.
enum Ending {
    /// Something changed since it was decided.
    CalledOff(String),
    /// The Hub did not do it.
    Failed(String),
    /// The server is gone, and so are its processes and its pod.
    Gone(Box<Told>),
    /// The Hub has forgotten the server, its processes live on.
    Orphaned(Orphan),
    /// The Hub still has it.
    StillThere,
    /// The kernels are gone from the card; the server stays.
    KernelsGone(Box<Told>),
    /// They are not, and why.
    KernelsLeft(String),
}

/// What its owner is told.
#[derive(Clone)]
pub(super) struct Told {
    pub server: Box<Server>,
    notice: SessionNotice,
    /// What is stopped.
    target: Target,
    /// Absent only for a server without a card, where nobody can be warned.
    warning: Option<Warning>,
}

impl Executor {
    /// Carries out every stop of a plan, and returns what was left behind. What happened is told even
    /// where it can no longer be saved.
    pub async fn stop_all(
        &self,
        plan: &Plan,
        policy: &Policy,
        journal: &mut Journal,
        observer: &Observer,
        clock: Clock,
        happened: &mut Vec<Happening>,
    ) -> Result<Vec<Orphan>, StoreError> {
        let Some(stopper) = &self.stopper else {
            return Ok(Vec::new());
        };
        let waiting = plan.waiting.as_ref();
        let (kernels, inbox) = (self.kernels.as_ref(), &self.inbox);
        let means = Means { waiting, policy, observer, stopper, kernels, inbox, clock };
        let means = &means;
        let due = plan.decisions.iter().filter(|decision| decision.action == Some(Action::Stop));
        let due: Vec<_> =
            due.map(|decision| (decision, known_of(&decision.server, journal.ledger()))).collect();
        let stops = due.into_iter().map(|(decision, known)| async move {
            let ending = stop(decision, known, means).await;
            inbox.stop_ended(&decision.server);
            (decision, ending)
        });
        let mut stops = futures::stream::iter(stops).buffer_unordered(Stopper::AT_ONCE);
        let (mut orphans, mut saved) = (Vec::new(), Ok(()));
        loop {
            let (decision, ending) = tokio::select! {
                next = stops.next() => match next {
                    Some(ended) => ended,
                    None => break,
                },
                () = inbox.arrived() => {
                    happened.extend(self.see_to_quick(policy, journal, clock()));
                    continue;
                }
            };
            let at = clock();
            happened.push(ending.told(decision, at));
            saved = saved.and(ending.save(&decision.server, at, journal));
            match ending {
                Ending::Gone(told) => {
                    orphans.extend(Orphan::to_be_seen(&told.server, observer, at));
                    happened.extend(self.tell_owner(*told, at).await);
                }
                Ending::KernelsGone(told) => {
                    happened.extend(self.tell_owner(*told, at).await);
                }
                Ending::Orphaned(orphan) => orphans.push(orphan),
                Ending::CalledOff(_) | Ending::Failed(_) | Ending::StillThere | Ending::KernelsLeft(_) => {}
            }
        }
        saved.map(|()| orphans)
    }

    async fn tell_owner(&self, told: Told, at: Timestamp) -> Option<Happening> {
        let (post, warning) = self.post.as_ref().zip(told.warning)?;
        Some(post.stopped(&told.server, told.notice, &warning, at).await)
    }
}

impl Ending {
    fn outcome(&self) -> StopOutcome {
        match self {
            Self::CalledOff(_) => StopOutcome::CalledOff,
            Self::Failed(_) | Self::KernelsLeft(_) => StopOutcome::Failed,
            Self::StillThere => StopOutcome::Slow,
            Self::Orphaned(_) => StopOutcome::Orphaned,
            Self::Gone(_) | Self::KernelsGone(_) => StopOutcome::Stopped,
        }
    }

    fn save(&self, id: &ServerId, at: Timestamp, journal: &mut Journal) -> Result<(), StoreError> {
        match self {
            Self::Gone(_) | Self::Orphaned(_) => journal.stopped(id, at),
            Self::KernelsGone(_) => journal.kernels_stopped(id),
            Self::CalledOff(_) | Self::Failed(_) | Self::StillThere | Self::KernelsLeft(_) => Ok(()),
        }
    }

    fn told(&self, decision: &Decision, at: Timestamp) -> Happening {
        let why = || reasons::verdict(&decision.judgement.verdict);
        let outcome = self.outcome();
        let to =
            |event, reason: String| Happening::to(&decision.server, at, event, reason).of_a_stop(outcome);
        match self {
            Self::CalledOff(change) => to("held-back", format!("just before the stop: {change}")),
            Self::Failed(error) => to("held-back", format!("the stop failed: {error}"))
                .because_of(Some("a server could not be stopped; the log says which and why".to_owned())),
            Self::StillThere => to("stopping", format!("the Hub is still stopping it: {}", why())),
            Self::Orphaned(orphan) => {
                to("orphaned", format!("it was stopped, but these live on: {}", orphan.left))
            }
            Self::Gone(_) => to("stopped", why()),
            Self::KernelsGone(told) => {
                to("stopped", format!("{}: {}", reasons::shut_down(&told.target), why()))
            }
            Self::KernelsLeft(left) => to("held-back", format!("kernels were shut down, but {left}"))
                .because_of(Some(
                    "kernels do not give their card back; the log says which and why".to_owned(),
                )),
        }
    }
}

/// What is remembered of one server, and the brake.
fn known_of(id: &ServerId, ledger: &Ledger) -> Ledger {
    let record = ledger.records.get_key_value(id);
    let records = record.map(|(id, record)| (id.clone(), record.clone())).into_iter().collect();
    Ledger { records, freeze: ledger.freeze.clone(), began: ledger.began, ..Ledger::default() }
}

/// What one stop is decided by, and with what it is done.
struct Means<'a> {
    waiting: Option<&'a Queue>,
    policy: &'a Policy,
    observer: &'a Observer,
    stopper: &'a Stopper,
    kernels: Option<&'a KernelStopper>,
    inbox: &'a Inbox,
    clock: Clock,
}

async fn stop(decision: &Decision, known: Ledger, means: &Means<'_>) -> Ending {
    let told = match last_look(decision, &known, means).await {
        Ok(told) => Box::new(told),
        Err(change) => return Ending::CalledOff(change),
    };
    if !means.inbox.may_stop(&decision.server) {
        return Ending::CalledOff("somebody asked to keep it".to_owned());
    }
    match &told.target {
        Target::Server => stop_server(decision, told, means).await,
        Target::Kernels(kernels) => stop_kernels(&told, kernels, means).await,
    }
}

async fn stop_server(decision: &Decision, told: Box<Told>, means: &Means<'_>) -> Ending {
    let afterwards = means.policy.afterwards(decision);
    let Means { stopper, observer, clock, .. } = *means;
    match send_and_verify(&told.server, afterwards, stopper, observer, clock).await {
        Stopped::Gone => Ending::Gone(told),
        Stopped::StillThere => Ending::StillThere,
        Stopped::Orphaned(orphan) => Ending::Orphaned(orphan),
        Stopped::Failed(error) => Ending::Failed(error),
    }
}

async fn stop_kernels(told: &Told, names: &[KernelName], means: &Means<'_>) -> Ending {
    let Some(stopper) = means.kernels else {
        return Ending::CalledOff("kernels may not be asked, so that none can be shut down".to_owned());
    };
    match kernels::shut_down(told, names, stopper, means.observer, means.clock).await {
        Ok(()) => Ending::KernelsGone(Box::new(told.clone())),
        Err(left) => Ending::KernelsLeft(left),
    }
}

/// Looks at the session again and asks the planner again; then interrupts what runs, where that is asked for, and
/// looks once more. `Err` says what changed.
async fn last_look(decision: &Decision, known: &Ledger, means: &Means<'_>) -> Result<Told, String> {
    let looked = (means.clock)();
    let session = same_session(decision, means).await?;
    let told = still_due(&session, known.clone(), means, looked)?;
    let running = to_interrupt(&session, &told.target);
    let Some(save_wait) = told.notice.save_wait.filter(|_| !running.is_empty()) else { return Ok(told) };
    let stopper = means.kernels.ok_or("kernels may not be asked, so that none can be interrupted")?;
    let Means { observer, clock, .. } = *means;
    kernels::interrupt(&session.server, &running, save_wait, stopper, observer, clock).await?;
    let after = without_interrupt(same_session(decision, means).await?, &session, &running);
    still_due(&after, known.clone(), means, looked)
}

/// The session as it is now, where it is still the one that was decided about.
async fn same_session(decision: &Decision, means: &Means<'_>) -> Result<Session, String> {
    match means.observer.look_again(&decision.server, (means.clock)()).await {
        Ok(Some(session)) if session.server.started == decision.started => Ok(session),
        Ok(Some(_)) => Err("it was restarted".to_owned()),
        Ok(None) => Err("the server is no longer there".to_owned()),
        Err(error) => Err(format!("it could not be looked at again: {error}")),
    }
}

/// Asks the planner again, with what is known of this session now.
fn still_due(
    session: &Session,
    mut ledger: Ledger,
    means: &Means<'_>,
    now: Timestamp,
) -> Result<Told, String> {
    let Means { waiting, policy, .. } = *means;
    let snapshot = Snapshot {
        at: now,
        sessions: Ok(vec![session.clone()]),
        complete: false,
        telemetry_down: None,
        waiting: waiting.cloned(),
    };
    ledger.observe(&snapshot, policy);
    let again = plan(&snapshot, &ledger, policy, now);
    let decision = again.of(&session.server.id).ok_or("it is no longer judged")?;
    let changed = || reasons::verdict(&decision.judgement.verdict);
    if decision.action != Some(Action::Stop) {
        return Err(changed());
    }
    let record = ledger.records.get(&session.server.id).ok_or_else(changed)?;
    let warning = record.warning.as_deref().cloned();
    let deadline = warning.as_ref().map_or(now, |warning| warning.deadline);
    let notice = session_notice(session, decision, record, deadline, waiting).ok_or_else(changed)?;
    let target = decision.target.clone().ok_or_else(changed)?;
    Ok(Told { server: session.server.clone(), notice, warning, target })
}
