//! Hands mails to the local sendmail, or to what stands in its place.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::compose::Letter;
use super::mask::mask_all;
use super::{DeliveryError, Receipt};

/// Exit codes of sysexits.h that a second try cannot change: bad data, no such user, no such host.
const FOR_GOOD: [i32; 3] = [65, 67, 68];

/// The program, and how long it may take.
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) timeout: Duration,
}

impl Program {
    pub(super) async fn deliver(&self, letter: &Letter) -> Result<Receipt, DeliveryError> {
        match tokio::time::timeout(self.timeout, self.hand_over(letter)).await {
            Ok(Ok(output)) => self.judge(&output),
            Ok(Err(error)) => Err(self.trouble(&error.to_string())),
            Err(_) => {
                let limit = humantime::format_duration(self.timeout);
                Err(self.trouble(&format!("not done within {limit}, so it was ended")))
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), DeliveryError> {
        let metadata = std::fs::metadata(&self.path).map_err(|error| self.trouble(&error.to_string()))?;
        if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
            Ok(())
        } else {
            Err(self.trouble("it is no program"))
        }
    }

    /// `-i`: a line with a single dot ends nothing. The recipient is an argument, never a header.
    async fn hand_over(&self, letter: &Letter) -> io::Result<Output> {
        let mut child = Command::new(&self.path)
            .args(["-i", "-f", letter.from.as_ref(), "--", letter.to.as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // A program that reads no further says why by its exit code.
            match input.write_all(&letter.content).await {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        child.wait_with_output().await
    }

    fn judge(&self, output: &Output) -> Result<Receipt, DeliveryError> {
        if output.status.success() {
            return Ok(Receipt { answer: format!("taken by {}", self.path.display()) });
        }
        let said =
            String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
        let said: String = mask_all(said.trim()).chars().filter(|c| !c.is_control()).take(300).collect();
        let text = self.tell(&format!("{}{}{said}", output.status, if said.is_empty() { "" } else { ": " }));
        match output.status.code() {
            Some(code) if FOR_GOOD.contains(&code) => Err(DeliveryError::Permanent(text)),
            _ => Err(DeliveryError::Retryable(text)),
        }
    }

    fn trouble(&self, what: &str) -> DeliveryError {
        DeliveryError::Retryable(self.tell(&format!("{what}; check [mail] server")))
    }

    fn tell(&self, what: &str) -> String {
        format!("sendmail {}: {what}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    /// The program itself is never written here: one that another thread's fork still holds open for
    /// writing cannot be run.
    fn program(directory: &tempfile::TempDir, behaviour: &str) -> Program {
        let path = directory.path().join("sendmail");
        if !path.exists() {
            let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/src/notify/testdata/sendmail");
            std::os::unix::fs::symlink(stand_in, &path).unwrap();
        }
        std::fs::write(directory.path().join("behaviour"), behaviour).unwrap();
        Program { path, timeout: Duration::from_secs(20) }
    }

    fn letter() -> Letter {
        Letter {
            from: "gpu-culler@example.org".parse().unwrap(),
            to: "nora@example.org".parse().unwrap(),
            content: b"Subject: idle\r\n\r\nbody\r\n.\r\nmore\r\n".to_vec(),
        }
    }

    #[tokio::test]
    async fn the_whole_mail_and_its_recipient_arrive() {
        let directory = tempfile::tempdir().unwrap();
        let taken = program(&directory, "echo \"$@\" > arguments; cat > mail").deliver(&letter()).await;
        assert!(taken.unwrap().answer.starts_with("taken by "));
        let read = |name| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(read("arguments"), "-i -f gpu-culler@example.org -- nora@example.org\n");
        assert_eq!(read("mail").as_bytes(), letter().content);
    }

    #[tokio::test]
    async fn what_it_refuses_for_good_is_not_tried_again_and_everything_else_is() {
        let directory = tempfile::tempdir().unwrap();
        for (code, for_good) in [(67, true), (65, true), (68, true), (75, false), (1, false), (71, false)] {
            let script = format!("echo 'no mailbox nora@example.org' >&2; exit {code}");
            let text = match program(&directory, &script).deliver(&letter()).await {
                Err(DeliveryError::Permanent(text)) if for_good => text,
                Err(DeliveryError::Retryable(text)) if !for_good => text,
                other => panic!("exit code {code}: {other:?}"),
            };
            assert!(text.contains("no mailbox") && !text.contains("nora@example.org"), "{text}");
        }
    }

    #[tokio::test]
    async fn one_that_hangs_is_ended_and_tried_again_later() {
        let directory = tempfile::tempdir().unwrap();
        let hanging = Program { timeout: Duration::from_millis(50), ..program(&directory, "exec sleep 60") };
        let error = hanging.deliver(&letter()).await.unwrap_err();
        assert!(
            matches!(&error, DeliveryError::Retryable(text) if text.contains("not done within 50ms")),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let missing = Program { path: "/nowhere/sendmail".into(), timeout: Duration::from_secs(1) };
        for error in [missing.check().unwrap_err(), missing.deliver(&letter()).await.unwrap_err()] {
            let text = error.to_string();
            assert!(text.contains("/nowhere/sendmail") && text.contains("[mail] server"), "{text}");
        }
    }
}
