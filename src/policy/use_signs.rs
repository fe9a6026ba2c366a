//! What shows that somebody uses a session, or is there.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{Jupyter, KernelState};

/// A sign of use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UseSign {
    /// A kernel, by its notebook where that is known, else by its id.
    Kernel(String),
    /// A terminal, by its name.
    Terminal(String),
    /// The session's processes computed.
    Cpu,
    /// The Hub's stamp, where kernels may not be asked.
    Hub,
}

/// The last use of each kernel and terminal. A stamp from the future is a wrong clock somewhere and
/// counts as just now, which can only delay a stop.
pub(super) fn uses(jupyter: &Jupyter, at: Timestamp) -> impl Iterator<Item = (Timestamp, UseSign)> {
    let kernels = jupyter.kernels.iter().filter_map(move |kernel| {
        let stamp = match kernel.state {
            KernelState::Busy => at,
            KernelState::Idle | KernelState::Starting | KernelState::Other(_) => {
                kernel.last_activity?.min(at)
            }
        };
        let name = kernel.notebook.as_ref().unwrap_or(&kernel.id);
        Some((stamp, UseSign::Kernel(name.clone())))
    });
    let terminals = jupyter.terminals.iter().filter_map(move |terminal| {
        Some((terminal.last_activity?.min(at), UseSign::Terminal(terminal.name.clone())))
    });
    kernels.chain(terminals)
}

pub(super) fn last_presence(jupyter: &Jupyter, at: Timestamp) -> Option<Timestamp> {
    let connected = jupyter.connections > 0 || jupyter.kernels.iter().any(|kernel| kernel.connections > 0);
    if connected { Some(at) } else { jupyter.last_activity.map(|stamp| stamp.min(at)) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;
    use crate::domain::{Kernel, Terminal};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn kernel(id: &str, state: KernelState, last: i64) -> Kernel {
        Kernel { id: id.to_owned(), state, last_activity: Some(at(last)), connections: 0, notebook: None }
    }

    #[test]
    fn a_sign_of_use_has_its_name_and_no_instant_after_now() {
        let named = Kernel { notebook: Some("a.ipynb".to_owned()), ..kernel("k1", KernelState::Idle, 50) };
        let jupyter = Jupyter {
            kernels: vec![named, kernel("k2", KernelState::Busy, 10), kernel("k3", KernelState::Idle, 900)],
            terminals: vec![
                Terminal { name: "1".to_owned(), last_activity: Some(at(70)) },
                Terminal { name: "2".to_owned(), last_activity: None },
            ],
            ..Jupyter::default()
        };
        let seen: Vec<_> = uses(&jupyter, at(100)).collect();
        let kernel = |name: &str| UseSign::Kernel(name.to_owned());
        assert_eq!(
            seen,
            [
                (at(50), kernel("a.ipynb")),
                (at(100), kernel("k2")),
                (at(100), kernel("k3")),
                (at(70), UseSign::Terminal("1".to_owned())),
            ]
        );
    }
}
