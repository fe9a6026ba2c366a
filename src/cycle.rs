//! One pass: observe, plan, execute, record.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::domain::{Pod, ServerId};

use crate::executor::{Clock, Executor, Happening, Journal, Orphan};
use crate::message::{intent, reasons};
use crate::observer::{Card, Observation, Observer};
use crate::policy::{Action, Decision, FreezeChange, Plan, Policy, Snapshot, Verdict, plan};
use crate::store::StoreError;

/// Everything one pass needs.
#[derive(Debug)]
pub struct Cycle {
    /// The reading side.
    pub observer: Observer,
    /// The acting side.
    pub executor: Executor,
    /// What is remembered.
    pub journal: Journal,
    /// What is decided by.
    pub policy: Policy,
    /// What earlier stops left behind.
    pub orphans: Vec<Orphan>,
}

/// What one pass saw, decided and did.
#[derive(Debug)]
pub struct CycleReport {
    /// When it began.
    pub at: Timestamp,
    /// What was observed.
    pub snapshot: Snapshot,
    /// Every card and who holds it.
    pub cards: Vec<Card>,
    /// Pods that hold cards and are no server's.
    pub pods: Vec<Arc<Pod>>,
    /// Whether the cluster told anything, where one is watched.
    pub cluster_up: Option<bool>,
    /// What was decided.
    pub plan: Plan,
    /// What was done.
    pub happened: Vec<Happening>,
    /// What keeps the service from doing its work, in words for the admin.
    pub troubles: Vec<String>,
}

impl CycleReport {
    /// What was seen and decided, where nothing was done.
    pub fn of(seen: Observation, plan: Plan) -> Self {
        let Observation { snapshot, cards, pods, cluster_up, troubles, slow: _ } = seen;
        Self { at: snapshot.at, snapshot, cards, pods, cluster_up, plan, happened: Vec::new(), troubles }
    }
}

impl Cycle {
    /// Runs one pass. Whatever fails is in the report; nothing is stopped that could not be saved.
    pub async fn run(&mut self, clock: Clock) -> CycleReport {
        let now = clock();
        let looks = self.journal.take_looks();
        self.observer.also_looked(looks.as_deref().unwrap_or_default());
        let mut seen = self.observer.observe(now).await;
        self.journal.observe(&seen.snapshot, &self.policy);
        let mut happened = self.executor.see_to_quick(&self.policy, &mut self.journal, clock());
        let plan = plan(&seen.snapshot, self.journal.ledger(), &self.policy, now);
        happened.extend(self.noticed(&plan, now));
        let mut troubles = std::mem::take(&mut seen.troubles);
        troubles.extend(looks.err().map(|error| error.to_string()));
        if let Err(error) = self.execute(&plan, &seen.snapshot, clock, &mut happened).await {
            troubles.push(format!("nothing more is warned or stopped: {error}"));
        }
        if let Some(users) = &mut self.executor.users {
            let safety = &self.policy.safety;
            let (done, problems) = users.remove_absent(&plan, self.journal.ledger(), safety, clock).await;
            happened.extend(done);
            troubles.extend(problems);
        }
        name_purposes(&mut happened, &plan);
        if let Err(error) = self.journal.log(&happened) {
            troubles.push(error.to_string());
        }
        troubles.extend(self.orphaned(now).await);
        for trouble in happened.iter().filter_map(|happening| happening.trouble.as_ref()) {
            if !troubles.contains(trouble) {
                troubles.push(trouble.clone());
            }
        }
        CycleReport { happened, troubles, ..CycleReport::of(seen, plan) }
    }

    /// Sees to what people ask for between two passes; what could not be saved was not done.
    pub async fn see_to_wishes(&mut self, clock: Clock) -> Vec<Happening> {
        let Self { executor, journal, observer, policy, orphans, .. } = self;
        let done = executor.see_to_all(policy, journal, observer, clock).await;
        orphans.extend(done.orphans);
        if let Err(error) = journal.log(&done.happened) {
            tracing::error!("what people asked for is done, but is not in the log: {error}");
        }
        done.happened
    }

    /// What the plan found, before anything is done about it.
    fn noticed(&self, plan: &Plan, now: Timestamp) -> Vec<Happening> {
        let was_idle = |d: &Decision| self.journal.record(&d.server).filter(|record| record.idle);
        let what = |d: &Decision| match &d.judgement.verdict {
            Verdict::Idle(_) => was_idle(d).is_none().then_some("idle"),
            // Whoever was warned has an "unmarked".
            Verdict::Busy(_) | Verdict::Protected(_) => {
                was_idle(d).is_some_and(|record| record.warning.is_none()).then_some("recovered")
            }
            Verdict::Unknown(_) => None,
        };
        let told = |d: &Decision| {
            Some(Happening::to(&d.server, now, what(d)?, reasons::verdict(&d.judgement.verdict)))
        };
        plan.decisions.iter().map(Box::as_ref).filter_map(told).collect()
    }

    async fn execute(
        &mut self,
        plan: &Plan,
        seen: &Snapshot,
        clock: Clock,
        happened: &mut Vec<Happening>,
    ) -> Result<(), StoreError> {
        self.journal.settled(plan)?;
        for decision in plan.decisions.iter().filter(|d| d.action == Some(Action::Unmark)) {
            self.journal.unmarked(&decision.server)?;
            let why = reasons::verdict(&decision.judgement.verdict);
            happened.push(Happening::to(&decision.server, clock(), "unmarked", why));
        }
        happened.extend(freeze_changed(plan, clock()));
        let Self { executor, journal, observer, policy, orphans, .. } = self;
        orphans.extend(executor.stop_all(plan, policy, journal, observer, clock, happened).await?);
        if let Some(post) = &executor.post {
            happened.extend(post.tell_of_freeze(plan, policy, journal, clock()).await?);
            happened.extend(post.tell_of_endings(plan, seen, policy, journal, observer, clock()).await?);
            post.deliver_all(plan, seen, journal, observer, clock, happened).await?;
            post.deliver_news(plan, seen, journal, observer, clock, happened).await?;
        }
        Ok(())
    }

    /// Reports what outlived its server, for as long as it does.
    async fn orphaned(&mut self, now: Timestamp) -> Vec<String> {
        for orphan in &mut self.orphans {
            *orphan.left = self.observer.left_of(&orphan.left, now).await;
        }
        self.orphans.retain(|orphan| !orphan.left.is_empty());
        let words = |orphan: &Orphan| {
            format!("a server was stopped, but this of it lives on: {}; see to it by hand", orphan.left)
        };
        self.orphans.iter().filter(|orphan| !orphan.left.lives_not_on()).map(words).collect()
    }
}

/// Whose budget and work it was belongs to the record of what was done.
fn name_purposes(happened: &mut [Happening], plan: &Plan) {
    let said = |d: &Decision| Some((d.server.clone(), intent::purpose(d.judgement.intent.as_deref())?));
    let purposes: BTreeMap<ServerId, String> =
        plan.decisions.iter().map(Box::as_ref).filter_map(said).collect();
    for happening in happened {
        if let Some(purpose) = happening.server.as_ref().and_then(|server| purposes.get(server)) {
            happening.reason = format!("{} ({purpose})", happening.reason);
        }
    }
}

/// That stops froze in this cycle, or that they no longer are.
fn freeze_changed(plan: &Plan, at: Timestamp) -> Option<Happening> {
    match &plan.freeze {
        FreezeChange::Begins(freeze) => {
            let what = format!("{} sessions turned idle at once; no server is stopped", freeze.flipped.len());
            Some(Happening::to_all(at, "frozen", what))
        }
        FreezeChange::Ends => Some(Happening::to_all(at, "lifted", reasons::THAWED)),
        FreezeChange::Holds(_) | FreezeChange::None => None,
    }
}
