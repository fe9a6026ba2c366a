//! Asks servers for their kernels, and knows whether asking left a trace.

use url::Url;

use super::{Pods, address};
use crate::domain::{Jupyter, Server};
use crate::hub::{Dated, Prober};
use crate::telemetry::ProcessTable;

/// How kernels are asked.
#[derive(Debug)]
pub struct Kernels {
    /// The client; absent where kernels may not be asked.
    pub prober: Option<Prober>,
    /// The address people use, for servers whose own address is not known.
    pub public_url: Option<Url>,
    /// Whether servers whose card works are asked as well: what may be stopped at work has to be known.
    pub of_working: bool,
    /// How many servers are asked at once.
    pub concurrency: usize,
}

/// What came of asking one server.
#[derive(Debug)]
pub(super) struct Asked {
    /// Its answer, or why there is none.
    pub jupyter: Result<Jupyter, String>,
    /// Whether asking may have moved the Hub's stamp.
    pub left_trace: bool,
    /// When it answered, by its clock and by ours.
    pub dated: Option<Dated>,
}

impl Asked {
    /// It was not asked, and why.
    pub fn not(why: &str) -> Self {
        Self { jupyter: Err(why.to_owned()), left_trace: false, dated: None }
    }
}

impl Kernels {
    pub(super) async fn ask(&self, server: &Server, table: Option<&ProcessTable>, pods: &Pods) -> Asked {
        let Some(prober) = &self.prober else {
            return Asked::not("kernels are not asked (hub.probe_kernels, or the scope tokens)");
        };
        let Some(address) = address::of(server, table, pods, self.public_url.as_ref()) else {
            return Asked::not(
                "its own address is not known: set hub.public_url to the address people use for the Hub",
            );
        };
        let look = prober.look(&server.id, &address.base).await;
        // Of a look that failed, some of the answers may have come whole.
        let dated = look.as_ref().ok().and_then(|look| look.dated);
        let whole = look.as_ref().map_or(true, |look| look.left_trace);
        Asked {
            jupyter: look.map(|look| look.jupyter).map_err(|error| error.to_string()),
            left_trace: whole && address.through_proxy,
            dated,
        }
    }
}
