//! Stops one server: looks again, asks the planner again, stops, and looks whether it is gone.

use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;

use super::notice::session_notice;
use super::{Clock, Executor, Happening, Journal, kernels};
use crate::domain::{Server, ServerId};
use crate::hub::{KernelStopper, StopAnswer, Stopper};
use crate::message::{SessionNotice, reasons};
use crate::observer::Observer;
use crate::policy::{
    Action, Decision, KernelName, Ledger, Plan, Policy, Session, Snapshot, Target, Warning, plan,
    to_interrupt, without_interrupt,
};
use crate::store::StoreError;
use crate::telemetry::{Process, ProcessTable};

/// How long a stop may take before it is reported as not done. The Hub itself waits ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is looked whether a stop happened that the Hub did not answer.
const DOUBT: Duration = Duration::from_secs(5);
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
    /// The kernels are gone from the card; the server stays.
    KernelsGone(Box<Told>),
    /// They are not, and why.
    KernelsLeft(String),
}

/// What its owner is told.
#[derive(Clone)]
pub(super) struct Told {
    pub server: Server,
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
        let waiting = plan.waiting;
        let means = Means { waiting, policy, observer, stopper, kernels: self.kernels.as_ref(), clock };
        let means = &means;
        let due = plan.decisions.iter().filter(|decision| decision.action == Some(Action::Stop));
        let due: Vec<_> =
            due.map(|decision| (decision, known_of(&decision.server, journal.ledger()))).collect();
        let stops = due
            .into_iter()
            .map(|(decision, known)| async move { (decision, stop(decision, known, means).await) });
        let mut stops = futures::stream::iter(stops).buffer_unordered(Stopper::AT_ONCE);
        let (mut orphans, mut saved) = (Vec::new(), Ok(()));
        while let Some((decision, ending)) = stops.next().await {
            let at = clock();
            happened.push(ending.told(decision, at));
            saved = saved.and(ending.save(&decision.server, at, journal));
            match ending {
                Ending::Gone(told) | Ending::KernelsGone(told) => {
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
    fn save(&self, id: &ServerId, at: Timestamp, journal: &mut Journal) -> Result<(), StoreError> {
        match self {
            Self::Gone(_) | Self::Orphaned(_) => journal.stopped(id, at),
            Self::KernelsGone(_) => journal.kernels_stopped(id),
            Self::CalledOff(_) | Self::Failed(_) | Self::StillThere | Self::KernelsLeft(_) => Ok(()),
        }
    }

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
    Ledger { records, freeze: ledger.freeze.clone(), ..Ledger::default() }
}

/// What one stop is decided by, and with what it is done.
struct Means<'a> {
    waiting: Option<u32>,
    policy: &'a Policy,
    observer: &'a Observer,
    stopper: &'a Stopper,
    kernels: Option<&'a KernelStopper>,
    clock: Clock,
}

async fn stop(decision: &Decision, known: Ledger, means: &Means<'_>) -> Ending {
    let told = match last_look(decision, &known, means).await {
        Ok(told) => Box::new(told),
        Err(change) => return Ending::CalledOff(change),
    };
    match &told.target {
        Target::Server => stop_server(decision, told, means).await,
        Target::Kernels(kernels) => stop_kernels(&told, kernels, means).await,
    }
}

async fn stop_server(decision: &Decision, told: Box<Told>, means: &Means<'_>) -> Ending {
    let before = means.observer.processes(&decision.server);
    match means.stopper.stop(&decision.server, means.policy.afterwards(decision)).await {
        Ok(StopAnswer::Gone | StopAnswer::Slow) => {
            wait_until_gone(decision, &before, means.observer, told, PATIENCE).await
        }
        // Nobody knows whether the Hub did it before it failed.
        Err(error) if error.is_transient() => {
            match wait_until_gone(decision, &before, means.observer, told, DOUBT).await {
                Ending::StillThere => Ending::Failed(error.to_string()),
                ending => ending,
            }
        }
        Err(error) => Ending::Failed(error.to_string()),
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
    let target = decision.target.clone().ok_or_else(changed)?;
    Ok(Told { server: session.server.clone(), notice, warning, target })
}

/// An answer of the Hub proves nothing: the server must be gone from it, and its processes too.
async fn wait_until_gone(
    decision: &Decision,
    before: &[Process],
    observer: &Observer,
    told: Box<Told>,
    patience: Duration,
) -> Ending {
    let deadline = tokio::time::Instant::now() + patience;
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
pub(super) fn alive(before: &[Process]) -> Vec<(u32, u64, String)> {
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
