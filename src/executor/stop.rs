//! Stops one server: looks again, asks the planner again, stops, and looks whether it is gone.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;

use super::notice::session_notice;
use super::{Clock, Executor, Happening, Journal};
use crate::domain::{Server, ServerId};
use crate::hub::{StopAnswer, Stopper};
use crate::message::{SessionNotice, reasons};
use crate::observer::Observer;
use crate::policy::{Action, Decision, Ledger, Plan, Policy, Session, Snapshot, Warning, plan};
use crate::store::StoreError;
use crate::telemetry::{Process, ProcessTable};

/// How long a stop may take before it is reported as not done. The Hub itself waits ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether a server is gone.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Processes that outlived the stop of their server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Whose they were.
    pub server: ServerId,
    /// Process id, start (in ticks since boot) and name of each.
    pub processes: Vec<(u32, u64, String)>,
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
        let stops = due.into_iter().map(|(decision, known)| async move {
            (decision, stop(decision, plan.waiting, policy, known, observer, stopper, clock).await)
        });
        let mut stops = futures::stream::iter(stops).buffer_unordered(Stopper::AT_ONCE);
        let (mut orphans, mut saved) = (Vec::new(), Ok(()));
        while let Some((decision, ending)) = stops.next().await {
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
                    orphan.processes.iter().map(|(pid, _, name)| format!("{pid} ({name})")).collect();
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
    let before = observer.processes(id);
    match stopper.stop(id, policy.afterwards(decision)).await {
        Ok(StopAnswer::Gone | StopAnswer::Slow) => {}
        Err(error) => return Ending::Failed(error.to_string()),
    }
    wait_until_gone(decision, &before, observer, told).await
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
    let warning = record.warning.as_deref().cloned();
    let deadline = warning.as_ref().map_or(now, |warning| warning.deadline);
    let notice = session_notice(session, decision, record, deadline, waiting).ok_or_else(changed)?;
    Ok(Told { server: session.server.clone(), notice, warning })
}

/// An answer of the Hub proves nothing: the server must be gone from it, and its processes too.
async fn wait_until_gone(
    decision: &Decision,
    before: &[Process],
    observer: &Observer,
    told: Box<Told>,
) -> Ending {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        look.tick().await;
        let listed = match observer.server(&decision.server).await {
            Ok(server) => server.is_some_and(|server| server.started == decision.started),
            Err(_) => true,
        };
        let alive = alive(before);
        if !listed && alive.is_empty() {
            return Ending::Gone(told);
        }
        if tokio::time::Instant::now() >= deadline {
            return if listed {
                Ending::StillThere
            } else {
                Ending::Orphaned(Orphan { server: decision.server.clone(), processes: alive })
            };
        }
    }
}

/// Those of `before` that still run: the start tells a reused pid apart.
fn alive(before: &[Process]) -> Vec<(u32, u64, String)> {
    let Ok(table) = ProcessTable::read() else {
        return before.iter().map(|p| (p.pid, p.start_ticks, p.name.clone())).collect();
    };
    let lives = before.iter().filter(|p| table.still_has(p.pid, p.start_ticks));
    lives.map(|p| (p.pid, p.start_ticks, p.name.clone())).collect()
}

impl Orphan {
    /// Whether any of its processes still runs.
    pub fn lives(&self, table: &ProcessTable) -> bool {
        self.processes.iter().any(|(pid, start, _)| table.still_has(*pid, *start))
    }
}
