//! Mails as files in a directory, each complete or not there at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{DeliveryError, Receipt};

/// Writes `<message id>.eml`. The same id again replaces the file, so a repeated delivery leaves one.
pub(super) async fn write(
    directory: &Path,
    message_id: &str,
    content: Vec<u8>,
) -> Result<Receipt, DeliveryError> {
    let bare = message_id.trim_matches(['<', '>']).to_owned();
    let place = directory.to_owned();
    let written = blocking(move || write_now(&place, &bare, &content)).await;
    written
        .map(|file| Receipt { answer: format!("written to {}", file.display()) })
        .map_err(|reason| trouble(directory, &reason))
}

/// Whether a file can be made there.
pub(super) async fn check(directory: &Path) -> Result<(), DeliveryError> {
    let probe = directory.join(format!(".check-{}.tmp", std::process::id()));
    let tried = blocking(move || {
        File::create(&probe)?;
        fs::remove_file(&probe)
    });
    tried.await.map_err(|reason| trouble(directory, &reason))
}

fn write_now(directory: &Path, name: &str, content: &[u8]) -> io::Result<PathBuf> {
    let unfinished = directory.join(format!(".{name}.tmp"));
    let finished = directory.join(format!("{name}.eml"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&unfinished, &finished)?;
    // The new name, too, must survive a power cut before it counts as accepted.
    File::open(directory)?.sync_all()?;
    Ok(finished)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
}

fn trouble(directory: &Path, reason: &io::Error) -> DeliveryError {
    DeliveryError::Retryable(format!(
        "cannot write mails into {}: {reason}; the service's account needs the right to write there",
        directory.display()
    ))
}
