//! Servers without a card: none of our business, unless the admin asks for what jupyterhub-idle-culler
//! does. They are then judged by the Hub's activity and their CPU work.

use jiff::{SignedDuration, Timestamp};

use super::{
    BusyReason, Decision, Idle, IdleKind, LimitKind, Policy, ProtectedReason, Session, UnknownReason, Verdict,
};
use crate::domain::Afterwards;

/// Which servers without a card are stopped, and when. `None` means never.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuServers {
    /// No activity for this long.
    pub idle_after: SignedDuration,
    /// Older than this, used or not.
    pub max_age: Option<SignedDuration>,
    /// Admins' servers, too.
    pub admins: bool,
    /// Default servers.
    pub default_servers: bool,
    /// Named servers.
    pub named_servers: bool,
    /// Whether a stopped named server is removed as well.
    pub remove_named: bool,
}

impl CpuServers {
    /// Judges a server that holds no card.
    pub fn judge(&self, session: &Session, cpu_cores: f64, now: Timestamp) -> Verdict {
        let server = &session.server;
        let named = !server.id.name.0.is_empty();
        let meant = if named { self.named_servers } else { self.default_servers };
        if !meant || (server.admin && !self.admins) {
            return Verdict::Protected(ProtectedReason::NoCard);
        }
        if let Some(pending) = &server.pending {
            return Verdict::Unknown(UnknownReason::Pending(pending.clone()));
        }
        let (Some(started), true) = (server.started, server.ready) else {
            return Verdict::Unknown(UnknownReason::HubRecord("started"));
        };
        // A server that never reported has been inactive since its start, as far as the Hub can tell.
        let started = started.min(now);
        let active = server.last_activity.map_or(started, |stamp| stamp.min(now)).max(started);
        let idle = |since, limit| Verdict::Idle(Idle { since, kind: IdleKind::NoCard, limit });
        if self.max_age.is_some_and(|limit| now.duration_since(started) >= limit) {
            return idle(started, LimitKind::MaxAge);
        }
        if now.duration_since(active) < self.idle_after {
            return Verdict::Busy(BusyReason::Present(active));
        }
        match session.cpu.filter(|cores| *cores >= cpu_cores) {
            Some(cores) => Verdict::Busy(BusyReason::Cpu(cores)),
            None => idle(active, LimitKind::Inactive),
        }
    }
}

impl Policy {
    /// What becomes of a stopped server's record: named ones without a card are removed on demand.
    pub fn afterwards(&self, decision: &Decision) -> Afterwards {
        let wanted = self.cpu_servers.as_ref().is_some_and(|cpu| cpu.remove_named);
        if wanted && !decision.may_hold_cards && !decision.server.name.0.is_empty() {
            Afterwards::Remove
        } else {
            Afterwards::Keep
        }
    }
}
