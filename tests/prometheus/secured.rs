//! A real Prometheus behind TLS that lets nobody in without a certificate and a password.

use std::path::Path;
use std::time::{Duration, Instant};

use gpu_culler::telemetry::prometheus::{Client, Login};

use crate::certificates::certificates;
use crate::{now, servers, settings};

struct Visitor<'a> {
    room: &'a Path,
    url: &'a str,
}

impl Visitor<'_> {
    /// What it is told with this authority, certificate and password.
    async fn asks(&self, ca: Option<&str>, identity: Option<&str>, password: &str) -> Result<usize, String> {
        let file = |name: &str| self.room.join(name);
        std::fs::write(file("password"), password).unwrap();
        let mut settings = settings(self.url, 2);
        settings.ca_file = ca.map(file);
        settings.identity = identity.map(|name| (file(&format!("{name}.pem")), file(&format!("{name}.key"))));
        settings.login = Login::Password("culler".to_owned(), file("password"));
        let client = Client::new(settings).map_err(|error| error.to_string())?;
        let answer = client.values("vector(1)", now()).await.map_err(|error| error.to_string())?;
        Ok(answer.series.len())
    }
}

#[tokio::test]
async fn a_certificate_a_password_and_an_authority_of_ones_own_open_the_door_and_nothing_less_does() {
    let room = tempfile::tempdir().unwrap();
    certificates(room.path());
    let Some(server) = servers::secured(room.path()) else { return };
    let visitor = Visitor { room: room.path(), url: &server.url };
    let begun = Instant::now();
    while let Err(why) = visitor.asks(Some("ca.pem"), Some("other"), "test").await {
        assert!(begun.elapsed() < Duration::from_secs(30), "{why}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for (what, ca, identity, password, words) in [
        (
            "a stranger's authority",
            None,
            Some("other"),
            "test",
            "UnknownIssuer; check [telemetry.prometheus] url",
        ),
        ("no certificate", Some("ca.pem"), None, "test", "cert_file with key_file"),
        ("a wrong password", Some("ca.pem"), Some("other"), "guess", "401"),
    ] {
        let said = visitor.asks(ca, identity, password).await.unwrap_err();
        assert!(said.contains(words) && !said.contains("guess"), "{what}: {said}");
    }
}
