//! Delivery against real mail servers, most of them with a fault (`tests/smtp_lab`).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should stop at once")]

mod smtp_lab;

use std::time::{Duration, Instant};

use gpu_culler::notify::{DeliveryError, MailSettings, Mailer, OutgoingMail, Receipt};
use secrecy::SecretString;
use smtp_lab::Lab;
use tokio::io::AsyncWriteExt;

const ALICE: &str = "alice@example.org";

#[derive(Debug, PartialEq)]
enum Outcome {
    Accepted,
    Retryable,
    Permanent,
}
use Outcome::{Accepted, Permanent, Retryable};

fn settings(lab: &Lab, url: &str) -> MailSettings {
    MailSettings {
        from: "GPU culler <gpu-culler@example.org>".parse().unwrap(),
        server: url.parse().unwrap(),
        username: None,
        password: None,
        ca_file: Some(lab.ca_file()),
        timeout: Duration::from_secs(5),
    }
}

fn plain(lab: &Lab, behaviour: &str) -> MailSettings {
    let port = lab.port(behaviour);
    settings(lab, &format!("smtp://127.0.0.1:{port}?tls=none"))
}

fn encrypted(lab: &Lab, scheme: &str, behaviour: &str) -> MailSettings {
    let port = lab.port(behaviour);
    MailSettings {
        username: Some("culler".to_owned()),
        password: Some(SecretString::from("s3cret")),
        ..settings(lab, &format!("{scheme}://localhost:{port}"))
    }
}

fn mail(to: &str) -> OutgoingMail {
    OutgoingMail {
        to: to.to_owned(),
        subject: "[gpu-culler] élise/שרה: idle GPU, stops Tue 1 Dec 11:10 UTC".to_owned(),
        text: "Hello élise,\n\n.a line that begins with a dot\n".to_owned(),
        html: format!("<p>Hello élise</p>\n<p>{}</p>\n", "long ".repeat(300)),
        message_id: "warning-1.alice@gpu-culler.example.org".to_owned(),
        in_reply_to: None,
    }
}

async fn deliver(settings: MailSettings, to: &str) -> (Outcome, String) {
    match Mailer::new(settings).unwrap().deliver(&mail(to)).await {
        Ok(Receipt { answer }) => (Accepted, answer),
        Err(DeliveryError::Retryable(why)) => (Retryable, why),
        Err(DeliveryError::Permanent(why)) => (Permanent, why),
    }
}

/// Delivers once a row: from these settings, to this address, with this outcome, telling this.
async fn outcomes<const N: usize>(table: [(MailSettings, &str, Outcome, &str); N]) {
    for (settings, to, outcome, told) in table {
        let case = format!("{} to {to}", settings.server);
        let (got, answer) = deliver(settings, to).await;
        assert_eq!(got, outcome, "{case}: {answer}");
        assert!(answer.contains(told), "{case}: {answer}");
        let secret = answer.contains("alice") || answer.contains("hunter2");
        assert!(!secret, "{case}: {answer}");
    }
}

#[tokio::test]
async fn each_behaviour_of_a_mail_server_has_its_outcome() {
    let lab = Lab::start();
    let refusing = plain(&lab, "refusing");
    let from_boom = MailSettings { from: "boom@example.org".parse().unwrap(), ..refusing.clone() };
    let greylist = plain(&lab, "greylist");
    let starttls = encrypted(&lab, "smtp", "starttls");
    let implicit = encrypted(&lab, "smtps", "implicit");
    let wrong_name = encrypted(&lab, "smtp", "othername");
    let queued = "250 2.0.0 queued as 1";
    outcomes([
        (plain(&lab, "plain"), ALICE, Accepted, queued),
        (starttls, ALICE, Accepted, queued),
        (implicit, ALICE, Accepted, queued),
        (greylist.clone(), ALICE, Retryable, "451 4.7.1 greylisted"),
        (greylist, ALICE, Accepted, queued),
        (plain(&lab, "slow"), ALICE, Accepted, queued),
        (plain(&lab, "dropping"), ALICE, Retryable, "handing over the mail: the connection was lost"),
        (refusing.clone(), "alice@bad.example", Permanent, "550 5.1.1 <a…@bad.example>: no such user"),
        (refusing.clone(), "alice@full.example", Retryable, "452 4.2.2 mailbox full"),
        (refusing, "spam@example.org", Permanent, "554 5.7.1 looks like spam"),
        (from_boom, ALICE, Retryable, "421 4.3.0 closing down"),
        (wrong_name, ALICE, Retryable, "must be one of the certificate's"),
        (plain(&lab, "plain"), "alice at example", Permanent, "is no mail address"),
    ])
    .await;
    assert_eq!(lab.accepted("dropping", "eml").len(), 0);
    assert_eq!(lab.accepted("refusing", "eml").len(), 0);
}

#[tokio::test]
async fn our_own_wrong_settings_are_no_recipients_fault_and_come_with_a_remedy() {
    let lab = Lab::start();
    let wrong_password =
        MailSettings { password: Some(SecretString::from("hunter2")), ..encrypted(&lab, "smtp", "starttls") };
    let no_password = MailSettings { username: None, password: None, ..encrypted(&lab, "smtps", "implicit") };
    let unknown_ca = MailSettings { ca_file: None, ..encrypted(&lab, "smtps", "implicit") };
    let closed = settings(&lab, "smtp://127.0.0.1:1?tls=none");
    let no_starttls = settings(&lab, &format!("smtp://127.0.0.1:{}", lab.port("plain")));
    let credentials = "check [mail] username and password_file";
    outcomes([
        (wrong_password, ALICE, Retryable, credentials),
        (no_password, ALICE, Retryable, credentials),
        (unknown_ca, ALICE, Retryable, "[mail] ca_file must hold its CA"),
        (no_starttls, ALICE, Retryable, "it offers no STARTTLS; use smtps://"),
        (closed, ALICE, Retryable, "connecting: Connection refused"),
    ])
    .await;
    for behaviour in ["starttls", "implicit", "plain"] {
        assert_eq!(lab.accepted(behaviour, "eml").len(), 0, "{behaviour}");
    }
}

#[tokio::test]
async fn a_mail_server_that_stays_silent_or_is_too_slow_is_left_in_time() {
    let lab = Lab::start();
    for (behaviour, limit) in [("silent", 300), ("slow", 100)] {
        let hasty = MailSettings { timeout: Duration::from_millis(limit), ..plain(&lab, behaviour) };
        let begun = Instant::now();
        let (outcome, why) = deliver(hasty, ALICE).await;
        assert_eq!(outcome, Retryable, "{behaviour}: {why}");
        assert!(why.contains(&format!("no answer within {limit}ms")), "{why}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{behaviour}");
    }
}

/// Whoever sits on the line can slip an answer in before the encryption begins. From then on each
/// answer belongs to the question before, and the last question has none.
#[tokio::test]
async fn an_answer_to_another_question_is_no_acceptance() {
    let answers = "220 here\r\n250 hello\r\n250 sender\r\n250 recipient\r\n250 one late\r\n354 go on\r\n";
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let (mut from, mut to) = client.split();
        to.write_all(answers.as_bytes()).await.unwrap();
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await
    });
    let settings = MailSettings {
        from: "gpu-culler@example.org".parse().unwrap(),
        server: format!("smtp://127.0.0.1:{port}?tls=none").parse().unwrap(),
        username: None,
        password: None,
        ca_file: None,
        timeout: Duration::from_secs(5),
    };
    let (outcome, why) = deliver(settings, ALICE).await;
    assert_eq!(outcome, Retryable, "{why}");
    assert!(why.contains("expected 354, got 250 one late"), "{why}");
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_password_travels_encrypted_and_the_mail_arrives_whole() {
    let lab = Lab::start();
    for (scheme, behaviour) in [("smtp", "starttls"), ("smtps", "implicit")] {
        deliver(encrypted(&lab, scheme, behaviour), ALICE).await;
        let told: serde_json::Value = serde_json::from_str(&lab.accepted(behaviour, "json")[0]).unwrap();
        let sent = mail(ALICE);
        let expected = serde_json::json!({
            "subject": sent.subject, "text": sent.text, "html": sent.html,
            "from": "gpu-culler@example.org", "to": [ALICE],
            "tls": true, "signed_in": true,
        });
        assert_eq!(told, expected, "{behaviour}");
        let eml = &lab.accepted(behaviour, "eml")[0];
        assert!(eml.is_ascii());
        assert!(eml.contains("Message-ID: <warning-1.alice@gpu-culler.example.org>\r\n"));
        assert!(eml.lines().all(|line| line.len() <= 998));
    }
}

#[tokio::test]
async fn a_check_goes_the_whole_way_and_sends_nothing() {
    let lab = Lab::start();
    let wrong_password = MailSettings {
        password: Some(SecretString::from("hunter2")),
        ..encrypted(&lab, "smtps", "implicit")
    };
    for (settings, fine) in [
        (plain(&lab, "plain"), true),
        (encrypted(&lab, "smtp", "starttls"), true),
        (encrypted(&lab, "smtps", "implicit"), true),
        (wrong_password, false),
        (encrypted(&lab, "smtp", "othername"), false),
    ] {
        let case = settings.server.to_string();
        let checked = Mailer::new(settings).unwrap().check().await;
        assert_eq!(checked.is_ok(), fine, "{case}: {checked:?}");
    }
    for behaviour in ["plain", "starttls", "implicit"] {
        assert_eq!(lab.accepted(behaviour, "eml").len(), 0, "{behaviour}");
    }
}

#[tokio::test]
async fn a_directory_gets_one_whole_file_for_each_message_id() {
    let lab = Lab::start();
    let room = tempfile::tempdir().unwrap();
    let into = settings(&lab, &format!("file://{}", room.path().display()));
    let mailer = Mailer::new(into).unwrap();
    mailer.check().await.unwrap();
    for _ in 0..2 {
        mailer.deliver(&mail(ALICE)).await.unwrap();
    }
    let files: Vec<_> = std::fs::read_dir(room.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, ["warning-1.alice@gpu-culler.example.org.eml"]);
    let content = std::fs::read_to_string(room.path().join(&files[0])).unwrap();
    assert!(content.starts_with("From: \"GPU culler\" <gpu-culler@example.org>\r\n"), "{content}");

    let gone = settings(&lab, &format!("file://{}/gone", room.path().display()));
    let mailer = Mailer::new(gone).unwrap();
    let refused = mailer.deliver(&mail(ALICE)).await;
    assert!(matches!(refused, Err(DeliveryError::Retryable(_))), "{refused:?}");
    assert!(mailer.check().await.is_err());
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_before_the_first_mail() {
    let lab = Lab::start();
    let remote = "smtp://mail.example.org:25?tls=none";
    let readable = MailSettings {
        username: Some("culler".to_owned()),
        password: Some(SecretString::from("s3cret")),
        ..settings(&lab, remote)
    };
    let half = MailSettings { password: None, ..encrypted(&lab, "smtps", "implicit") };
    let no_ca =
        MailSettings { ca_file: Some("/nowhere/ca.pem".into()), ..encrypted(&lab, "smtps", "implicit") };
    let not_pem = MailSettings {
        ca_file: Some(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into()),
        ..encrypted(&lab, "smtps", "implicit")
    };
    for (settings, told) in [
        (readable, "would be sent unencrypted"),
        (half, "password_file is missing"),
        (no_ca, "cannot read the certificates in /nowhere/ca.pem"),
        (not_pem, "holds no certificate"),
    ] {
        let error = Mailer::new(settings).err().unwrap().to_string();
        assert!(error.contains(told), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
