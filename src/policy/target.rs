//! What of a session is stopped: the server, or only the kernels that hold its cards.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::waits::is_busy;
use super::{IdleKind, KernelSource, LimitKind, Policy, Session, Verdict, Warning};
use crate::domain::Kernel;

/// How a session is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Only the kernels that hold its cards.
    pub kernels_only: bool,
    /// Whether running kernels are interrupted before, where a stop may hit work.
    pub interrupt: bool,
    /// How long an interrupted kernel may take to save what it has.
    pub save_wait: SignedDuration,
}

/// What is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The server, with everything in it.
    Server,
    /// These kernels; the server stays.
    Kernels(Vec<KernelName>),
}

/// A kernel, for the server and for people.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelName {
    /// Its id.
    pub id: String,
    /// Its notebook's path, where known.
    pub notebook: Option<String>,
}

/// Why it is not certain which kernels may be shut down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelDoubt {
    /// Kernels are not asked, or did not answer.
    NotAsked,
    /// It is not known which process holds the card.
    NoHolder,
    /// A process holds the card that is of no kernel.
    NoKernel,
    /// A process holds the card that says it is of a kernel the server does not know.
    NotListed(String),
    /// A kernel that holds the card is busy.
    Busy(KernelName),
}

impl Target {
    /// Whether a warning that named what `warning` did announces this as well: the whole is more than a part.
    pub fn is_announced_by(&self, warning: &Warning) -> bool {
        match (&warning.kernels, self) {
            (None, _) => true,
            (Some(_), Self::Server) => false,
            (Some(named), Self::Kernels(kernels)) => kernels.iter().all(|kernel| named.contains(&kernel.id)),
        }
    }

    /// The ids of the kernels; `None` where it is the server.
    pub fn kernels(&self) -> Option<Vec<String>> {
        match self {
            Self::Server => None,
            Self::Kernels(kernels) => Some(kernels.iter().map(|kernel| kernel.id.clone()).collect()),
        }
    }
}

impl Policy {
    /// Whether some session would be stopped by the API of its own server.
    pub fn needs_kernels(&self) -> bool {
        let of_rules = self.rules.iter().map(|rule| rule.overrides.manner_over(self.limits.manner));
        std::iter::once(self.limits.manner)
            .chain(of_rules)
            .any(|manner| manner.kernels_only || manner.interrupt)
    }
}

/// What would be stopped of a session that is judged so.
pub fn target(
    session: &Session,
    manner: Manner,
    verdict: &Verdict,
    policy: &Policy,
) -> Result<Target, KernelDoubt> {
    if !manner.kernels_only || !session.may_hold_cards() {
        return Ok(Target::Server);
    }
    let jupyter = match &session.jupyter {
        Ok(jupyter) if policy.kernels == KernelSource::Probed => jupyter,
        _ => return Err(KernelDoubt::NotAsked),
    };
    let holders: Option<BTreeSet<&String>> = session.holds.iter().map(|hold| hold.kernel.as_ref()).collect();
    let holders = holders.ok_or(KernelDoubt::NoKernel)?;
    if holders.is_empty() {
        return Err(KernelDoubt::NoHolder);
    }
    let listed = |id: &String| jupyter.kernels.iter().find(|kernel| kernel.id == *id);
    let mut kernels = Vec::with_capacity(holders.len());
    for id in holders {
        let kernel = listed(id).ok_or_else(|| KernelDoubt::NotListed(id.clone()))?;
        if is_busy(kernel) && !stops_work(verdict) {
            return Err(KernelDoubt::Busy(name(kernel)));
        }
        kernels.push(name(kernel));
    }
    Ok(Target::Kernels(kernels))
}

fn name(kernel: &Kernel) -> KernelName {
    KernelName { id: kernel.id.clone(), notebook: kernel.notebook.clone() }
}

/// Whether the admin asked for a stop although a kernel is busy.
fn stops_work(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Idle(idle) => idle.limit == LimitKind::BusyKernel || idle.kind == IdleKind::AtWork,
        Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) => false,
    }
}

/// How long running kernels get to save what they have, where they are interrupted before such a stop.
pub fn save_wait(session: &Session, manner: Manner, verdict: &Verdict) -> Option<SignedDuration> {
    let Verdict::Idle(idle) = verdict else { return None };
    let may_hit_work = matches!(idle.limit, LimitKind::MaxAge | LimitKind::BusyKernel);
    (manner.interrupt && may_hit_work && session.jupyter.is_ok()).then_some(manner.save_wait)
}

/// The busy kernels that an interrupt before the stop concerns.
pub fn to_interrupt(session: &Session, target: &Target) -> Vec<KernelName> {
    let meant = |kernel: &&Kernel| match target {
        Target::Server => true,
        Target::Kernels(kernels) => kernels.iter().any(|name| name.id == kernel.id),
    };
    let kernels = session.jupyter.iter().flat_map(|jupyter| &jupyter.kernels);
    kernels.filter(|kernel| is_busy(kernel)).filter(meant).map(name).collect()
}

/// A session as it would be had these kernels not been interrupted: that they rest now, what they wrote to the
/// card to save it, and the stamps of both are our own doing and nobody's use. Everything else is as it is now.
pub fn without_interrupt(after: Session, before: &Session, interrupted: &[KernelName]) -> Session {
    let mut session = Session { gpus: before.gpus.clone(), ..after };
    session.server.last_activity = before.server.last_activity;
    if let (Ok(now), Ok(then)) = (&mut session.jupyter, &before.jupyter) {
        now.last_activity = then.last_activity;
        for kernel in &mut now.kernels {
            let was = then.kernels.iter().find(|was| was.id == kernel.id);
            if let Some(was) = was.filter(|was| interrupted.iter().any(|name| name.id == was.id)) {
                *kernel = Kernel { connections: kernel.connections, ..was.clone() };
            }
        }
    }
    session
}
