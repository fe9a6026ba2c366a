//! Every mail for every kind of owner.

use super::super::as_read::as_read;
use super::super::reader_cases::{Case, cases};
use super::*;

impl Case {
    fn ids(&self) -> Vec<ServerId> {
        self.servers.iter().map(|server| ServerId::new(self.user.as_str(), *server)).collect()
    }

    fn sessions(&self) -> Vec<SessionNotice> {
        let mut sessions: Vec<_> = self.ids().into_iter().map(session).collect();
        for session in sessions.iter_mut().filter(|_| !self.notebook) {
            session.notebooks.clear();
            session.used_by = None;
            session.holds[0].notebook = None;
            session.holds[0].kernel = None;
        }
        sessions
    }

    fn owner(&self) -> OwnerNotice {
        OwnerNotice { zone: self.zone(), ..notice(self.sessions()) }
    }

    fn mails(&self) -> Vec<(&'static str, Result<Mail, WordingError>)> {
        let (words, zone, page) = (Wording::default(), self.zone(), self.owner().page);
        let owner = || UserName(self.user.as_str().into());
        let kernel = |server| WaitingKernel {
            server,
            kernel: "5e1f".to_owned(),
            notebook: self.notebook.then(|| "work/analysis.ipynb".to_owned()),
            since: at("01:10:00"),
        };
        let withdrawn = |server| WithdrawnSession { server, deadline: at("11:10:37"), why: Recovery::Used };
        let stopped = StoppedNotice {
            owner: owner(),
            session: self.sessions()[0].clone(),
            warned_at: at("10:10:02"),
            stopped_at: at("11:12:00"),
            zone: zone.clone(),
            page: page.clone(),
        };
        let withdrawn = WithdrawnNotice {
            owner: owner(),
            sessions: self.ids().into_iter().map(withdrawn).collect(),
            zone: zone.clone(),
            page: page.clone(),
        };
        let waiting = WaitingNotice {
            owner: owner(),
            kernels: self.ids().into_iter().map(kernel).collect(),
            zone: zone.clone(),
            page: page.clone(),
            now: at("10:10:00"),
        };
        let unreachable = UnreachableNotice {
            sessions: self.sessions(),
            why: Unreachable::NoAddress(vec!["user_info.email".to_owned()]),
            zone: zone.clone(),
            page: page.clone(),
            now: at("10:10:00"),
        };
        let frozen = FrozenNotice {
            turned_idle: 14,
            watched: 20,
            limit_percent: 50,
            held_back: self.ids(),
            since: at("10:10:00"),
            zone: zone.clone(),
            page,
        };
        let ending = EndingNotice { owner: self.user.clone(), servers: self.ids(), zone, ..ending() };
        vec![
            ("warning", words.warning(&self.owner())),
            ("notice", words.warning(&OwnerNotice { stops_follow: false, ..self.owner() })),
            ("reminder", words.reminder(&self.owner())),
            ("stopped", words.stopped(&stopped)),
            ("withdrawn", words.withdrawn(&withdrawn)),
            ("waiting", words.waiting(&waiting)),
            ("exemption", words.exemption_ends(&ending)),
            ("unreachable", words.unreachable(&unreachable)),
            ("frozen", words.frozen(&frozen)),
        ]
    }
}

#[test]
fn every_mail_reads_well_for_every_owner() {
    for case in cases() {
        let mut text = String::new();
        for (kind, mail) in case.mails() {
            let mail = mail.unwrap();
            let (subject, body, html) = (&mail.subject, &mail.text, as_read(&mail.html));
            text += &format!(
                "======== {kind} ========\nSubject: {subject}\n\n{body}\n---- as HTML ----\n{html}\n"
            );
        }
        insta::assert_snapshot!(format!("every_mail_{}", case.name), text);
    }
}
