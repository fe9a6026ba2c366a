//! Every page for every kind of user, as it is read.

use super::*;
use crate::domain::{Hold, ServerId};
use crate::message::as_read::as_read;
use crate::message::pages::session_path;
use crate::message::reader_cases::{Case, cases};
use crate::observer::Card;
use crate::policy::{Keep, LimitKind, Warning};
use crate::store::{Entry, Store};
use crate::telemetry::Unattributed;
use crate::web::status::Known;

fn at(time: &str) -> Timestamp {
    format!("2026-12-01T{time}Z").parse().unwrap()
}

impl Case {
    fn id(&self, server: &str) -> ServerId {
        ServerId::new(self.user.as_str(), server)
    }

    /// All their servers and one of Carl's that holds no card.
    fn line(&self) -> String {
        let of = |name: &&str| {
            let mut found = server(&self.user, "NVIDIA A100", "5e1f");
            found["server"] = (*name).into();
            found["gpus"][0]["id"] =
                format!("GPU-{}", self.servers.iter().position(|s| s == name).unwrap()).into();
            if self.notebook {
                found["jupyter"]["kernels"][0]["notebook"] = "work/analysis.ipynb".into();
            }
            found
        };
        let mut without_card = server("carl", "", "k");
        without_card["gpus"] = serde_json::json!([]);
        let servers: Vec<_> = self.servers.iter().map(of).chain([without_card]).collect();
        serde_json::json!({ "at": NOW, "hub": "ok", "telemetry": "ok", "servers": servers }).to_string()
    }

    /// What a night left: the first server is warned, the second kept; one card has a stranger on it.
    async fn service(&self) -> Service {
        let service = Service::start().await;
        service.looks_at(&self.line());
        service.board.write(|status| {
            status.shown.as_mut().unwrap().zone = self.zone();
            let last = status.last.as_mut().unwrap();
            last.cards = last.sessions.iter().map(card_of).chain([strange(&self.user)]).collect();
            last.cards[0].servers.insert(ServerId::new("bob", "x")); // by time-slicing
            let mut sessions = last.sessions.iter_mut();
            let first = sessions.next().unwrap().record.as_mut().unwrap();
            first.warning = Some(Box::new(warning()));
            if let Some(second) = sessions.next() {
                second.record.as_mut().unwrap().keep = Some(Box::new(keep(&self.user)));
            }
        });
        let mut store = Store::open(&service._folder.path().join("ledger.sqlite")).unwrap();
        let entry = |event: &str, reason: &str| Entry {
            at: at("10:00:00"),
            server: Some(self.id(self.servers[0])),
            event: event.to_owned(),
            reason: reason.to_owned(),
        };
        store
            .log(&[entry("warned", "nobody and nothing"), entry("kept", &format!("by {}", self.user))])
            .unwrap();
        service
    }

    async fn pages(&self) -> String {
        let service = self.service().await;
        let own = format!("/{}", session_path(&self.id(self.servers[0])));
        let mut text = String::new();
        for (who, user, path) in [
            ("owner", self.user.as_str(), "/"),
            ("owner", self.user.as_str(), own.as_str()),
            ("owner", self.user.as_str(), "/session/nobody/"),
            ("another", "bob", own.as_str()),
            ("another", "bob", "/"),
            ("another", "bob", "/admin"),
            ("admin", "admin", own.as_str()),
            ("admin", "admin", "/admin"),
            ("admin", "admin", "/admin?only=all&sort=server"),
            ("admin", "admin", "/admin/cards"),
            ("admin", "admin", "/admin/exemptions"),
            ("admin", "admin", "/admin/log"),
            ("admin", "admin", "/nowhere"),
        ] {
            let page = service.of(user).await.get(path).await;
            text += &format!("======== {who} at {path}: {} ========\n{}\n", page.status, as_read(&page.text));
        }
        text
    }
}

fn card_of(known: &Known) -> Card {
    let sample = known.session.gpus.as_ref().unwrap()[0].clone();
    let id = known.session.server.id.clone();
    let hold = Hold { gpu: sample.id.clone(), memory_used: None, kernel: None, notebook: None };
    Card {
        machine: None,
        sample,
        servers: [id.clone()].into(),
        holds: vec![(id, hold)],
        unattributed: Vec::new(),
        workloads: Vec::new(),
    }
}

fn strange(user: &str) -> Card {
    let (report, _) = look(&line(&["x"]));
    let sample = report.snapshot.sessions.unwrap()[0].gpus.as_ref().unwrap()[0].clone();
    let process = Unattributed {
        pid: 4711,
        name: "python3".to_owned(),
        uid: Some(1000),
        claims: Some(ServerId::new(user, "")),
    };
    Card {
        machine: None,
        sample,
        servers: Default::default(),
        holds: Vec::new(),
        unattributed: vec![process],
        workloads: Vec::new(),
    }
}

fn warning() -> Warning {
    Warning {
        accepted: at("10:05:00"),
        deadline: at("11:05:00"),
        limit: LimitKind::Nobody,
        stop_follows: true,
        message_id: "1@x".to_owned(),
        reminded: Vec::new(),
        kernels: None,
    }
}

fn keep(by: &str) -> Keep {
    let reason = Some("the night’s run".to_owned());
    Keep { until: at("18:30:00"), by: by.to_owned(), at: at("10:00:00"), reason, cost: Default::default() }
}

#[tokio::test]
async fn every_page_reads_well_for_everybody() {
    for case in cases() {
        insta::assert_snapshot!(format!("every_page_{}", case.name), case.pages().await);
    }
}
