//! What of the last cycle is kept for the pages. There may be thousands of servers without a card, so of
//! those only a line is.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::cycle::CycleReport;
use crate::domain::{Pod, Queue, Sentences, ServerId, UserName};
use crate::executor::AddressBook;
use crate::message::reasons;
use crate::observer::Card;
use crate::policy::{
    self, Decision, Freeze, FreezeChange, Giver, Grant, Keep, Ledger, Offers, Plan, Policy, Record, Session,
    Verdict,
};

/// The last cycle.
#[derive(Debug)]
pub struct Last {
    /// When it began.
    pub at: Timestamp,
    /// When the Hub's list last came.
    pub listed: Option<Timestamp>,
    /// When the cards could last be read.
    pub read: Option<Timestamp>,
    /// How many wait for a card, where a source tells.
    pub waiting: Option<Queue>,
    /// What keeps the service from doing its work.
    pub troubles: Vec<String>,
    /// The brake, when it is on.
    pub freeze: Option<Freeze>,
    /// Every card and who holds it.
    pub cards: Vec<Card>,
    /// Pods that hold cards and are no server's.
    pub pods: Vec<Arc<Pod>>,
    /// Where a cluster is watched: whether all of it is known.
    pub cluster_up: Option<bool>,
    /// When it last was.
    pub cluster: Option<Timestamp>,
    /// The sessions that hold a card, or about which there is something to do, by server.
    pub sessions: Vec<Known>,
    /// The other servers, by server.
    pub others: Vec<Other>,
    /// The keeps of the last days, which say what is left of an owner's budget.
    pub keeps: BTreeMap<UserName, Vec<Grant>>,
    /// How many servers were found busy, idle, unknown and protected.
    pub verdicts: BTreeMap<&'static str, usize>,
}

/// Everything about one session.
#[derive(Debug)]
pub struct Known {
    /// As it was seen.
    pub session: Session,
    /// What was decided.
    pub decision: Box<Decision>,
    /// What is remembered.
    pub record: Option<Record>,
    /// Whether it is idle and nobody could be told.
    pub no_address: bool,
}

/// A line about a server of which no card is known.
#[derive(Debug)]
pub struct Other {
    /// Which.
    pub server: ServerId,
    /// What it is taken for, in a word.
    pub verdict: &'static str,
    /// And why: mostly the same few sentences.
    pub why: Arc<str>,
    /// Whether it certainly holds no card.
    pub no_card: bool,
    /// Whether it computes on the CPU.
    pub computes: bool,
    /// Until when it was declared to be needed.
    pub declared_until: Option<Timestamp>,
}

impl Last {
    /// What a report leaves; without a list of servers the last ones are still shown.
    pub fn of(
        report: CycleReport,
        ledger: &Ledger,
        book: Option<&AddressBook>,
        cpu_cores: f64,
        before: Option<Self>,
    ) -> Self {
        let freeze = match &report.plan.freeze {
            FreezeChange::Begins(_) | FreezeChange::Holds(_) => ledger.freeze.clone(),
            FreezeChange::None | FreezeChange::Ends => None,
        };
        let was = before.as_ref().map(|last| (last.listed, last.read, last.cluster));
        let (listed, read, cluster) = was.unwrap_or_default();
        let telemetry_down = report.snapshot.telemetry_down.is_some();
        let mut last = Self {
            at: report.at,
            listed: if report.snapshot.sessions.is_ok() { Some(report.at) } else { listed },
            read: if telemetry_down { read } else { Some(report.at) },
            waiting: report.snapshot.waiting.clone(),
            troubles: report.troubles,
            freeze,
            cards: report.cards,
            pods: report.pods,
            cluster_up: report.cluster_up,
            cluster: if report.cluster_up == Some(true) { Some(report.at) } else { cluster },
            sessions: Vec::new(),
            others: Vec::new(),
            keeps: ledger.keeps.clone(),
            verdicts: BTreeMap::new(),
        };
        match (report.snapshot.sessions, before) {
            (Ok(sessions), before) => {
                drop(before); // there may be thousands, and here are as many new ones
                last.take(sessions, report.plan, ledger, book, cpu_cores);
            }
            (Err(_), Some(before)) => (last.sessions, last.others) = (before.sessions, before.others),
            (Err(_), None) => {}
        }
        last
    }

    fn take(
        &mut self,
        mut sessions: Vec<Session>,
        Plan { mut decisions, .. }: Plan,
        ledger: &Ledger,
        book: Option<&AddressBook>,
        cpu_cores: f64,
    ) {
        for decision in &decisions {
            *self.verdicts.entry(reasons::verdict_word(&decision.judgement.verdict)).or_default() += 1;
        }
        // Each decision is about one of the sessions, so in the same order they meet.
        sessions.sort_unstable_by(|a, b| a.server.id.cmp(&b.server.id));
        decisions.sort_unstable_by(|a, b| a.server.cmp(&b.server));
        self.others.reserve_exact(decisions.len()); // what is too much goes back below
        let mut decisions = decisions.into_iter().peekable();
        let mut sentences = Sentences::default();
        for session in sessions {
            let Some(decision) = decisions.next_if(|decision| decision.server == session.server.id) else {
                continue;
            };
            let holds = session.gpus.as_ref().is_ok_and(|gpus| !gpus.is_empty());
            let record = ledger.records.get(&session.server.id);
            let kept = record.is_some_and(|record| record.keep.is_some() || record.warning.is_some());
            if holds || kept || decision.action.is_some() || decision.held_back.is_some() {
                let idle = matches!(decision.judgement.verdict, Verdict::Idle(_));
                let unknown_address =
                    |book: &AddressBook| !book.needs_auth_state() && book.find(&session.server).is_none();
                let told = record.is_some_and(|record| record.admins_told.is_some());
                let no_address = told || idle && book.is_some_and(unknown_address);
                self.sessions.push(Known { session, decision, record: record.cloned(), no_address });
            } else {
                self.others.push(Other::of(&session, &decision, cpu_cores, &mut sentences));
            }
        }
        self.sessions.shrink_to_fit();
        self.others.shrink_to_fit();
    }

    /// What is known of one session with cards.
    pub fn known(&self, server: &ServerId) -> Option<&Known> {
        let found = self.sessions.binary_search_by(|known| known.session.server.id.cmp(server));
        found.ok().map(|index| &self.sessions[index])
    }

    /// What `giver` may choose for a server now.
    pub fn offers(&self, known: &Known, policy: &Policy, giver: &Giver, now: Timestamp) -> Offers {
        let id = &known.session.server.id;
        policy::offers(&self.ledger_of(known), policy, id, giver, now)
    }

    /// Takes over a keep that was given since the last look.
    pub fn kept(&mut self, server: &ServerId, keep: Keep) {
        let Ok(index) = self.sessions.binary_search_by(|known| known.session.server.id.cmp(server)) else {
            return;
        };
        let mut ledger = self.ledger_of(&self.sessions[index]);
        ledger.kept(server, keep);
        self.sessions[index].record = ledger.records.remove(server);
        self.keeps.extend(ledger.keeps);
    }

    /// As much of the ledger as one session's keeps depend on.
    fn ledger_of(&self, known: &Known) -> Ledger {
        let id = &known.session.server.id;
        let mine = self.keeps.get(&id.user).map(|grants| (id.user.clone(), grants.clone()));
        Ledger {
            records: known.record.iter().map(|record| (id.clone(), record.clone())).collect(),
            keeps: mine.into_iter().collect(),
            ..Ledger::default()
        }
    }

    /// A server without a known card.
    pub fn other(&self, server: &ServerId) -> Option<&Other> {
        let found = self.others.binary_search_by(|other| other.server.cmp(server));
        found.ok().map(|index| &self.others[index])
    }
}

impl Known {
    /// The keep in force at `now`.
    pub fn kept(&self, now: Timestamp) -> Option<&Keep> {
        self.record.as_ref()?.keep.as_deref().filter(|keep| now < keep.until)
    }

    /// When it will be stopped, where that was promised and nothing has come in between.
    pub fn deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let warning = self.record.as_ref()?.warning.as_ref()?;
        (warning.stop_follows && self.kept(now).is_none()).then_some(warning.deadline)
    }

    /// How many cards it holds, as far as that is known.
    pub fn cards(&self) -> usize {
        self.session.gpus.as_ref().map_or(0, Vec::len)
    }
}

impl Other {
    fn of(session: &Session, decision: &Decision, cpu_cores: f64, sentences: &mut Sentences) -> Self {
        let sentence = reasons::verdict(&decision.judgement.verdict);
        let why = sentences.shared(&sentence);
        Self {
            server: session.server.id.clone(),
            verdict: reasons::verdict_word(&decision.judgement.verdict),
            why,
            no_card: session.gpus.as_ref().is_ok_and(Vec::is_empty),
            computes: session.cpu.is_some_and(|cores| cores >= cpu_cores),
            declared_until: decision.judgement.declared.map(|declared| declared.until),
        }
    }
}
