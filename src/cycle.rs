//! One pass: observe, plan, execute, record.

use jiff::Timestamp;

use crate::executor::{Clock, Executor, Happening, Journal, Orphan};
use crate::message::{self, FrozenNotice, reasons};
use crate::observer::{Card, Observer};
use crate::policy::{Action, FreezeChange, HeldBack, Mode, Plan, Policy, Snapshot, Verdict, plan};
use crate::store::StoreError;
use crate::telemetry::ProcessTable;

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
    /// Processes left behind by earlier stops.
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
    /// What was decided.
    pub plan: Plan,
    /// What was done.
    pub happened: Vec<Happening>,
    /// What keeps the service from doing its work, in words for the admin.
    pub troubles: Vec<String>,
}

impl Cycle {
    /// Runs one pass. Whatever fails is in the report; nothing is stopped that could not be saved.
    pub async fn run(&mut self, clock: Clock) -> CycleReport {
        let now = clock();
        let seen = self.observer.observe(now).await;
        self.journal.observe(&seen.snapshot, &self.policy);
        let wishes = self.see_to_wishes(clock).await;
        let plan = plan(&seen.snapshot, self.journal.ledger(), &self.policy, now);
        let mut happened = wishes;
        happened.extend(self.noticed(&plan, now));
        let mut troubles = seen.troubles;
        if let Err(error) = self.execute(&plan, &seen.snapshot, clock, &mut happened).await {
            troubles.push(format!("nothing more is warned or stopped: {error}"));
        }
        if let Err(error) = self.journal.log(&happened) {
            troubles.push(error.to_string());
        }
        troubles.extend(self.orphaned());
        for trouble in happened.iter().filter_map(|happening| happening.trouble.as_ref()) {
            if !troubles.contains(trouble) {
                troubles.push(trouble.clone());
            }
        }
        CycleReport { at: now, snapshot: seen.snapshot, cards: seen.cards, plan, happened, troubles }
    }

    /// Answers what people asked for since the last time; what happened is not yet in the log.
    async fn see_to_wishes(&mut self, clock: Clock) -> Vec<Happening> {
        let Self { executor, journal, observer, policy, orphans, .. } = self;
        let done = executor.see_to_all(policy, journal, observer, clock).await;
        orphans.extend(done.orphans);
        done.happened
    }

    /// Answers what people ask for between two passes.
    pub async fn between(&mut self, clock: Clock) -> Vec<Happening> {
        let happened = self.see_to_wishes(clock).await;
        if let Err(error) = self.journal.log(&happened) {
            tracing::error!("what people asked for is done, but not in the log: {error}");
        }
        happened
    }

    /// What the plan found, before anything is done about it.
    fn noticed(&self, plan: &Plan, now: Timestamp) -> Vec<Happening> {
        let turned_idle = |id| !self.journal.record(id).is_some_and(|record| record.idle);
        let idle = plan.decisions.iter().filter(|d| matches!(d.judgement.verdict, Verdict::Idle(_)));
        idle.filter(|d| turned_idle(&d.server))
            .map(|d| Happening::to(&d.server, now, "idle", reasons::verdict(&d.judgement.verdict)))
            .collect()
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
        if let FreezeChange::Begins(_) = plan.freeze {
            happened.push(self.frozen(plan, clock()).await);
        }
        let Self { executor, journal, observer, policy, orphans, .. } = self;
        orphans.extend(executor.stop_all(plan, policy, journal, observer, clock, happened).await?);
        if let Some(post) = &executor.post {
            post.deliver_all(plan, seen, journal, observer, clock, happened).await?;
        }
        Ok(())
    }

    async fn frozen(&self, plan: &Plan, at: Timestamp) -> Happening {
        let FreezeChange::Begins(freeze) = &plan.freeze else {
            return Happening::to_all(at, "note", "stops are not frozen");
        };
        let what = format!("{} sessions turned idle at once; no server is stopped", freeze.flipped.len());
        let Some(post) = self.executor.post.as_ref().filter(|_| self.policy.mode == Mode::Enforce) else {
            return Happening::to_all(at, "frozen", what);
        };
        let held = plan.decisions.iter().filter(|d| matches!(d.held_back, Some(HeldBack::Frozen(_))));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share between 0 and 1 in percent"
        )]
        let limit_percent = (self.policy.safety.freeze_share * 100.0) as u8;
        let notice = FrozenNotice {
            turned_idle: freeze.flipped.len(),
            watched: plan.decisions.len(),
            limit_percent,
            held_back: held.map(|d| d.server.clone()).collect(),
            since: freeze.since,
            zone: post.zone.clone(),
            page: post.page.clone(),
        };
        let told = match message::frozen(&notice) {
            Ok(mail) => post.tell_admins(mail, post.id(&format!("frozen.{}", at.as_second()))).await,
            Err(error) => Err(crate::notify::DeliveryError::Retryable(error.to_string())),
        };
        match told {
            Ok(()) => Happening::to_all(at, "frozen", format!("{what}; the admins were told")),
            Err(error) => {
                Happening::to_all(at, "frozen", format!("{what}; the admins could not be told: {error}"))
            }
        }
    }

    /// Reports processes that outlived their server, for as long as they do.
    fn orphaned(&mut self) -> Vec<String> {
        if let (false, Ok(table)) = (self.orphans.is_empty(), ProcessTable::read()) {
            self.orphans.retain(|orphan| orphan.lives(&table));
        }
        let words = |orphan: &Orphan| {
            let pids: Vec<String> = orphan.processes.iter().map(|(pid, _, _)| pid.to_string()).collect();
            format!(
                "a server was stopped but its processes live on (pid {}): end them by hand",
                pids.join(", ")
            )
        };
        self.orphans.iter().map(words).collect()
    }
}
