//! Stops one server: looks again, asks the planner again, stops, and looks whether it is gone.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;

use super::notice::session_notice;
use super::{Clock, Executor, Happening, Inbox, Journal};
use crate::domain::{Afterwards, Server, ServerId};
use crate::hub::{StopAnswer, Stopper};
use crate::message::{SessionNotice, reasons};
use crate::observer::{Observer, Resident};
use crate::policy::{Action, Decision, Ledger, Plan, Policy, Session, Snapshot, Warning, plan};
use crate::store::StoreError;

/// How long a stop may take before it is reported as not done. The Hub itself waits ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether a server is gone.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Processes that outlived the stop of their server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Whose they were.
    pub server: ServerId,
    /// The processes, and where they run.
    pub processes: Vec<Resident>,
}

/// What became of one stop.
enum Ending {
    /// Something changed since it was decided.
    CalledOff(String),
    /// The Hub did not do it.
    Failed(String),
    /// The server is gone and so are its processes.
    Gone(Box<Told>),
    /// The Hub has forgotten the server, its processes live on.
    Orphaned(Orphan),
    /// The Hub still has it.
    StillThere,
}

/// What became of a stop that was sent.
pub(super) enum Stopped {
    /// The Hub did not do it.
    Failed(String),
    /// The server is gone and so are its processes.
    Gone,
    /// The Hub has forgotten the server, its processes live on.
    Orphaned(Orphan),
    /// The Hub still has it.
    StillThere,
}

/// What its owner is told.
struct Told {
    server: Box<Server>,
    notice: SessionNotice,
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
        let due = plan.decisions.iter().filter(|decision| decision.action == Some(Action::Stop));
        let due: Vec<_> =
            due.map(|decision| (decision, known_of(&decision.server, journal.ledger()))).collect();
        let inbox = &self.inbox;
        let stops = due.into_iter().map(|(decision, known)| async move {
            let ending = stop(decision, plan.waiting, policy, known, observer, stopper, inbox, clock).await;
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
            if matches!(ending, Ending::Gone(_) | Ending::Orphaned(_)) {
                saved = saved.and(journal.stopped(&decision.server, at));
            }
            match ending {
                Ending::Gone(told) => happened.extend(self.tell_owner(*told, at).await),
                Ending::Orphaned(orphan) => orphans.push(orphan),
                Ending::CalledOff(_) | Ending::Failed(_) | Ending::StillThere => {}
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
    fn told(&self, decision: &Decision, at: Timestamp) -> Happening {
        let why = || reasons::verdict(&decision.judgement.verdict);
        let to = |event, reason: String| Happening::to(&decision.server, at, event, reason);
        match self {
            Self::CalledOff(change) => to("held-back", format!("just before the stop: {change}")),
            Self::Failed(error) => to("held-back", format!("the stop failed: {error}"))
                .because_of(Some("a server could not be stopped; the log says which and why".to_owned())),
            Self::StillThere => to("stopping", format!("the Hub is still stopping it: {}", why())),
            Self::Orphaned(orphan) => {
                let names: Vec<String> =
                    orphan.processes.iter().map(|left| format!("{} ({})", left.pid, left.name)).collect();
                to("orphaned", format!("the Hub has forgotten it, but these live on: {}", names.join(", ")))
            }
            Self::Gone(_) => to("stopped", why()),
        }
    }
}

/// What is remembered of one server, and the brake.
fn known_of(id: &ServerId, ledger: &Ledger) -> Ledger {
    let record = ledger.records.get_key_value(id);
    let records = record.map(|(id, record)| (id.clone(), record.clone())).into_iter().collect();
    Ledger { records, freeze: ledger.freeze.clone(), began: ledger.began, ..Ledger::default() }
}

async fn stop(
    decision: &Decision,
    waiting: Option<u32>,
    policy: &Policy,
    known: Ledger,
    observer: &Observer,
    stopper: &Stopper,
    inbox: &Inbox,
    clock: Clock,
) -> Ending {
    let id = &decision.server;
    let session = match observer.look_again(id, clock()).await {
        Ok(Some(session)) => session,
        Ok(None) => return Ending::CalledOff("the server is no longer there".to_owned()),
        Err(error) => return Ending::CalledOff(format!("it could not be looked at again: {error}")),
    };
    if session.server.started != decision.started {
        return Ending::CalledOff("it was restarted".to_owned());
    }
    let told = match still_due(&session, waiting, policy, known, clock()) {
        Ok(told) => Box::new(told),
        Err(change) => return Ending::CalledOff(change),
    };
    if !inbox.may_stop(id) {
        return Ending::CalledOff("somebody asked to keep it".to_owned());
    }
    match send_and_verify(id, decision.started, policy.afterwards(decision), stopper, observer, clock).await {
        Stopped::Gone => Ending::Gone(told),
        Stopped::StillThere => Ending::StillThere,
        Stopped::Orphaned(orphan) => Ending::Orphaned(orphan),
        Stopped::Failed(error) => Ending::Failed(error),
    }
}

/// Sends the stop of one run of a server, and looks whether it is really gone.
pub(super) async fn send_and_verify(
    id: &ServerId,
    started: Option<Timestamp>,
    afterwards: Afterwards,
    stopper: &Stopper,
    observer: &Observer,
    clock: Clock,
) -> Stopped {
    let before = observer.processes(id, clock()).await;
    match stopper.stop(id, afterwards).await {
        Ok(StopAnswer::Gone | StopAnswer::Slow) => {
            wait_until_gone(id, started, &before, observer, clock).await
        }
        Err(error) => Stopped::Failed(error.to_string()),
    }
}

/// Asks the planner again, with what is known of this session now.
fn still_due(
    session: &Session,
    waiting: Option<u32>,
    policy: &Policy,
    mut ledger: Ledger,
    now: Timestamp,
) -> Result<Told, String> {
    let snapshot = Snapshot {
        at: now,
        sessions: Ok(vec![session.clone()]),
        complete: false,
        telemetry_down: None,
        waiting,
    };
    ledger.observe(&snapshot, policy);
    let again = plan(&snapshot, &ledger, policy, now);
    let decision = again.of(&session.server.id).ok_or("it is no longer judged")?;
    let changed = || reasons::verdict(&decision.judgement.verdict);
    if decision.action != Some(Action::Stop) {
        return Err(changed());
    }
    let record = ledger.records.get(&session.server.id).ok_or_else(changed)?;
    let warning = record.warning.clone();
    let deadline = warning.as_ref().map_or(now, |warning| warning.deadline);
    let notice = session_notice(session, decision, record, deadline, waiting).ok_or_else(changed)?;
    Ok(Told { server: session.server.clone(), notice, warning })
}

/// An answer of the Hub proves nothing: the server must be gone from it, and its processes too.
async fn wait_until_gone(
    id: &ServerId,
    started: Option<Timestamp>,
    before: &[Resident],
    observer: &Observer,
    clock: Clock,
) -> Stopped {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        look.tick().await;
        let listed = match observer.server(id).await {
            Ok(server) => server.is_some_and(|server| server.started == started),
            Err(_) => true,
        };
        let alive = if listed { before.to_vec() } else { observer.still_running(before, clock()).await };
        if !listed && alive.is_empty() {
            return Stopped::Gone;
        }
        if tokio::time::Instant::now() >= deadline {
            return if listed {
                Stopped::StillThere
            } else {
                Stopped::Orphaned(Orphan { server: id.clone(), processes: alive })
            };
        }
    }
}
