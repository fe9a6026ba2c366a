//! Keeps what the pages' charts show over a restart, beside the ledger and never in the way of a decision.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::now;
use crate::store::beside;
use crate::web::{Board, History};

const NAME: &str = "charts";
/// How much is written, in the long run: a small Hub's charts each cycle, those of thousands of cards every few minutes.
const BYTES_PER_SECOND: usize = 20_000;

/// When to save next.
#[derive(Debug, Default)]
pub(super) struct Charts {
    under_way: Option<JoinHandle<Result<usize, String>>>,
    not_before: Option<Instant>,
    /// What went wrong is said once.
    failed: Option<String>,
}

impl Charts {
    /// Shows what was saved, where nothing was seen yet.
    pub fn take_up(board: &Board, ledger: &Path) {
        if board.read(|status| status.history.is_empty())
            && let Some(history) = beside::load(ledger, NAME).and_then(|b| History::from_bytes(&b, now()))
        {
            board.write(|status| status.history = history);
        }
    }

    /// Saves them beside the loop, not too often.
    pub async fn keep(&mut self, board: &Arc<Board>, ledger: &Path) {
        match self.under_way.take() {
            Some(task) if !task.is_finished() => {
                self.under_way = Some(task);
                return;
            }
            Some(task) => self.done(task.await.unwrap_or_else(|error| Err(error.to_string()))),
            None => {}
        }
        if self.not_before.is_none_or(|at| at <= Instant::now()) {
            let (board, ledger) = (Arc::clone(board), ledger.to_owned());
            self.under_way = Some(tokio::task::spawn_blocking(move || save(&board, &ledger)));
        }
    }

    /// Saves them once more when the service ends.
    pub async fn end(self, board: &Board, ledger: Option<&Path>) {
        if let Some(task) = self.under_way {
            task.await.ok();
        }
        if let Some(Err(error)) = ledger.map(|ledger| save(board, ledger)) {
            tracing::debug!("the charts' past could not be saved: {error}");
        }
    }

    fn done(&mut self, saved: Result<usize, String>) {
        let bytes = *saved.as_ref().unwrap_or(&BYTES_PER_SECOND);
        let pause = Duration::from_secs((bytes / BYTES_PER_SECOND) as u64);
        self.not_before = Some(Instant::now() + pause);
        let failed = saved.err();
        if let Some(error) = failed.as_ref().filter(|_| self.failed != failed) {
            tracing::warn!("the charts' past could not be saved, so a restart forgets it: {error}");
        }
        self.failed = failed;
    }
}

fn save(board: &Board, ledger: &Path) -> Result<usize, String> {
    let bytes = board.read(|status| status.history.to_bytes());
    beside::save(ledger, NAME, &bytes).map_err(|error| error.to_string())?;
    Ok(bytes.len())
}
