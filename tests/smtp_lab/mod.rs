//! Starts the mail servers of `server.py`; they end with the value.

#[path = "../certificates/mod.rs"]
mod certificates;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use certificates::certificates;

pub struct Lab {
    servers: Child,
    ports: BTreeMap<String, u16>,
    room: TempDir,
}

impl Lab {
    pub fn start() -> Self {
        let room = tempfile::tempdir().unwrap();
        certificates(room.path());
        std::fs::create_dir(room.path().join("mails")).unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = std::env::var_os("GPU_CULLER_TEST_PYTHON")
            .map_or_else(|| here.join("target/venv/bin/python"), PathBuf::from);
        let mut servers = Command::new(&python)
            .arg(here.join("tests/smtp_lab/server.py"))
            .args([room.path(), &room.path().join("mails")])
            .stdin(Stdio::piped()) // closed with this process, however it ends: then they end, too
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {}: {e}; run make test-env", python.display()));
        let mut line = String::new();
        let stdout = servers.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let ports = serde_json::from_str(&line).unwrap_or_else(|_| {
            panic!(
                "the mail servers did not start (see above); is aiosmtpd there for {}? run make test-env",
                python.display()
            )
        });
        Self { servers, ports, room }
    }

    pub fn port(&self, behaviour: &str) -> u16 {
        self.ports[behaviour]
    }

    pub fn ca_file(&self) -> PathBuf {
        self.room.path().join("ca.pem")
    }

    /// What a behaviour accepted: mails as they came (`eml`), or how they came and read (`json`).
    pub fn accepted(&self, behaviour: &str, extension: &str) -> Vec<String> {
        (1..)
            .map(|n| self.room.path().join(format!("mails/{behaviour}-{n}.{extension}")))
            .map_while(|file| std::fs::read_to_string(file).ok())
            .collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.servers.kill();
        let _ = self.servers.wait();
    }
}
