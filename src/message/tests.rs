#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

mod every_mail;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::*;
use crate::domain::{GpuId, Hold, Intent, Queue, QueueLine, ServerId, Unreadable, UserName};
use crate::policy::{Declared, IdleKind, Keep, KeepRefused, Lifted, LimitKind, RuleOddity, UseSign};

fn at(time: &str) -> Timestamp {
    format!("2026-12-01T{time}Z").parse().unwrap()
}

fn session(server: ServerId) -> SessionNotice {
    SessionNotice {
        server,
        cards: vec![CardNotice {
            model: "NVIDIA A100-SXM4-80GB".to_owned(),
            memory_used: Some(41_000_000_000),
            id: "GPU-5d1f0a2b-77aa-4f2b-9c01-000000000001".to_owned(),
        }],
        holds: vec![Hold {
            gpu: GpuId("GPU-5d1f0a2b-77aa-4f2b-9c01-000000000001".to_owned()),
            memory_used: Some(38_000_000_000),
            kernel: Some("5e1f".to_owned()),
            notebook: Some("work/analysis.ipynb".to_owned()),
        }],
        notebooks: vec!["work/analysis.ipynb".to_owned()],
        idle_since: at("09:05:00"),
        card_active: Some(at("08:10:00")),
        used: Some(at("09:05:00")),
        used_by: Some(UseSign::Kernel("work/analysis.ipynb".to_owned())),
        present: Some(at("09:00:00")),
        started: Some(at("08:00:00")),
        kind: IdleKind::Held,
        limit: LimitKind::Nobody,
        deadline: at("11:10:37"),
        waiting: None,
        intent: None,
        declared: None,
        kernels: None,
        save_wait: None,
    }
}

fn notice(sessions: Vec<SessionNotice>) -> OwnerNotice {
    OwnerNotice {
        owner: sessions[0].server.user.clone(),
        sessions,
        zone: TimeZone::UTC,
        page: Some("https://hub.example.org/services/gpu-culler/".to_owned()),
        now: at("10:10:00"),
        stops_follow: true,
    }
}

fn one() -> OwnerNotice {
    notice(vec![session(ServerId::new("alice", "training"))])
}

/// The whole mail, as one text to look at.
fn shown(mail: Result<Mail, WordingError>) -> String {
    let mail = mail.unwrap();
    format!("Subject: {}\n\n{}\n{}", mail.subject, mail.text, mail.html)
}

#[test]
fn one_server() {
    insta::assert_snapshot!(shown(Wording::default().warning(&one())));
}

#[test]
fn where_only_mail_is_sent_nothing_is_threatened() {
    let mail = Wording::default().warning(&OwnerNotice { stops_follow: false, ..one() }).unwrap();
    assert_eq!(mail.subject, "[gpu-culler] alice/training: idle GPU, please have a look");
    for body in [&mail.text, &mail.html] {
        assert!(body.contains("Nothing is stopped automatically"), "{body}");
        assert!(!body.contains("going to be stopped") && !body.contains("Will be stopped"), "{body}");
    }
}

#[test]
fn several_servers_share_one_mail_and_the_first_deadline_leads() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let connected = SessionNotice {
        limit: LimitKind::Connected,
        present: Some(at("10:09:50")),
        deadline: at("11:00:00"),
        ..session(ServerId::new("alice", ""))
    };
    let card = |id: &str, memory_used| CardNotice {
        model: "NVIDIA H100 80GB HBM3".to_owned(),
        memory_used,
        id: format!("GPU-{id}"),
    };
    let unused = SessionNotice {
        limit: LimitKind::CardUnused,
        kind: IdleKind::Reserved,
        cards: vec![card("aaaaaaaa-1", Some(0)), card("bbbbbbbb-2", Some(0)), card("cccccccc-3", None)],
        notebooks: (1..=7).map(|n| format!("n{n}.ipynb")).collect(),
        idle_since: "2026-11-30T08:00:00Z".parse().unwrap(),
        card_active: Some("2026-11-30T08:00:00Z".parse().unwrap()),
        ..session(ServerId::new("alice", "vscode"))
    };
    let several = OwnerNotice {
        zone: berlin,
        ..notice(vec![session(ServerId::new("alice", "training")), connected, unused])
    };
    insta::assert_snapshot!(shown(Wording::default().warning(&several)));
}

#[test]
fn a_server_without_known_notebook_and_page() {
    let mut bare = one();
    bare.page = None;
    bare.sessions[0].notebooks.clear();
    bare.sessions[0].server = ServerId::new("alice", "");
    insta::assert_snapshot!(shown(Wording::default().warning(&bare)));
}

#[test]
fn a_card_that_was_never_used() {
    let mut unused = one();
    unused.sessions[0] = SessionNotice {
        kind: IdleKind::NeverUsed,
        card_active: None,
        used: None,
        present: None,
        ..unused.sessions[0].clone()
    };
    insta::assert_snapshot!(shown(Wording::default().warning(&unused)));
}

#[test]
fn long_names_are_cut_in_the_subject() {
    let long = notice(vec![session(ServerId::new("anna-maria-".repeat(8), "x".repeat(300)))]);
    insta::assert_snapshot!(shown(Wording::default().warning(&long)));
}

#[test]
fn names_can_neither_reorder_the_mail_nor_become_markup() {
    let mut hostile = notice(vec![session(ServerId::new(
        "\u{202E}שרה<script>alert(1)</script>",
        "a\r\nBcc: everybody@example.org",
    ))]);
    hostile.sessions[0].notebooks = vec!["\u{2067}x\u{2069}\"><img src=x>.ipynb".to_owned()];
    hostile.page = Some("javascript:alert(1)".to_owned());
    insta::assert_snapshot!(shown(Wording::default().warning(&hostile)));
}

#[test]
fn kernels_that_are_shut_down_are_named_and_the_server_stays() {
    let mut kernels = one();
    kernels.sessions[0].kernels = Some(vec!["work/analysis.ipynb".to_owned(), "b.ipynb".to_owned()]);
    insta::assert_snapshot!("kernels_warning", shown(Wording::default().warning(&kernels)));
    insta::assert_snapshot!(
        "kernels_stopped",
        shown(Wording::default().stopped(&StoppedNotice {
            owner: UserName("alice".into()),
            session: kernels.sessions[0].clone(),
            warned_at: at("10:10:02"),
            stopped_at: at("11:12:00"),
            zone: TimeZone::UTC,
            page: None,
        }))
    );
    let reminder = Wording::default().reminder(&kernels).unwrap();
    for body in [&reminder.text, &reminder.html] {
        assert!(body.contains("idle kernels in one of your Jupyter servers would be shut down"), "{body}");
        assert!(!body.contains("servers would be stopped"), "{body}");
    }
}

#[test]
fn an_interrupt_before_the_stop_is_announced() {
    let mut old = one();
    old.sessions[0].limit = LimitKind::MaxAge;
    old.sessions[0].save_wait = Some(jiff::SignedDuration::from_secs(60));
    let mail = Wording::default().warning(&old).unwrap();
    for body in [&mail.text, &mail.html] {
        assert!(body.contains("running cells are interrupted, as with the stop button"), "{body}");
        assert!(body.contains("get up to 1 minute to save what they have."), "{body}");
    }
}

#[test]
fn a_reminder() {
    insta::assert_snapshot!(shown(Wording::default().reminder(&one())));
}

#[test]
fn a_stop() {
    insta::assert_snapshot!(shown(Wording::default().stopped(&StoppedNotice {
        owner: UserName("alice".into()),
        session: session(ServerId::new("alice", "training")),
        warned_at: at("10:10:02"),
        stopped_at: at("11:12:00"),
        zone: TimeZone::UTC,
        page: None,
    })));
}

fn unreachable(why: Unreachable) -> UnreachableNotice {
    UnreachableNotice {
        sessions: vec![session(ServerId::new("alice", "training")), session(ServerId::new("svc<b>", ""))],
        why,
        zone: TimeZone::UTC,
        page: None,
        now: at("10:10:00"),
    }
}

#[test]
fn an_owner_without_address() {
    let tried = vec!["user_info.email".to_owned(), "auth_state.email".to_owned()];
    let notice = unreachable(Unreachable::NoAddress(tried));
    insta::assert_snapshot!(shown(Wording::default().unreachable(&notice)));
}

#[test]
fn an_owner_whose_address_is_refused() {
    let answer = "mail server m:25, naming the recipient: 550 5.1.1 no such <b>user</b>".to_owned();
    let notice = unreachable(Unreachable::Refused(answer));
    insta::assert_snapshot!(shown(Wording::default().unreachable(&notice)));
}

#[test]
fn a_freeze() {
    insta::assert_snapshot!(shown(Wording::default().frozen(&FrozenNotice {
        turned_idle: 14,
        watched: 20,
        limit_percent: 50,
        held_back: vec![ServerId::new("alice", "training"), ServerId::new("bob", "")],
        since: at("10:10:00"),
        zone: TimeZone::UTC,
        page: Some("https://hub.example.org/services/gpu-culler/".to_owned()),
    })));
}

#[test]
fn each_limit_has_its_own_remedy() {
    for (limit, remedy) in [
        (LimitKind::Nobody, "run a cell, any cell. Nothing else is needed."),
        (LimitKind::Connected, "Having the notebook open in a browser tab is not enough."),
        (LimitKind::CardUnused, "run something on the GPU. Opening the notebook is not enough"),
        (LimitKind::BusyKernel, "answer what the cell asks for, or interrupt it"),
        (LimitKind::MaxAge, "Using it does not change the time."),
    ] {
        let mut notice = one();
        notice.sessions[0].limit = limit;
        let mail = Wording::default().warning(&notice).unwrap();
        assert!(mail.text.contains(remedy), "{limit:?}: {}", mail.text);
        assert!(mail.html.contains(remedy), "{limit:?}: {}", mail.html);
    }
}

#[test]
fn an_old_server_is_not_called_idle() {
    let mut old = one();
    old.sessions[0].limit = LimitKind::MaxAge;
    let mail = Wording::default().warning(&old).unwrap();
    assert_eq!(mail.subject, "[gpu-culler] alice/training: time limit reached, stops Tue 1 Dec 11:10 UTC");
    assert!(!mail.text.contains("Unused for"), "{}", mail.text);
    assert!(!mail.text.contains("nothing is being computed"), "{}", mail.text);
}

#[test]
fn a_warning_that_was_taken_back() {
    let withdrawn = |server, why| WithdrawnSession { server, deadline: at("11:10:37"), why };
    let kept = Recovery::Kept { by: "bob".to_owned(), until: at("19:00:00") };
    insta::assert_snapshot!(shown(Wording::default().withdrawn(&WithdrawnNotice {
        owner: UserName("alice".into()),
        sessions: vec![
            withdrawn(ServerId::new("alice", ""), Recovery::Used),
            withdrawn(ServerId::new("alice", "training"), kept),
        ],
        zone: TimeZone::UTC,
        page: Some("https://hub.example.org/services/gpu-culler/".to_owned()),
    })));
}

#[test]
fn each_recovery_has_its_sentence() {
    let kept = |by: &str| Recovery::Kept { by: by.to_owned(), until: at("19:00:00") };
    for (why, sentence) in [
        (Recovery::Used, "It is in use again, or may rest for longer than before."),
        (kept("alice"), "You keep it until Tue 1 Dec 2026 19:00 (UTC)."),
        (kept("b<o>b"), "b<o>b keeps it until Tue 1 Dec 2026 19:00 (UTC)."),
        (Recovery::Exempt, "It is left alone now."),
        (Recovery::Uncertain, "It could not be watched for a while"),
    ] {
        let session =
            WithdrawnSession { server: ServerId::new("alice", "training"), deadline: at("11:10:37"), why };
        let notice = WithdrawnNotice {
            owner: UserName("alice".into()),
            sessions: vec![session],
            zone: TimeZone::UTC,
            page: None,
        };
        let mail = Wording::default().withdrawn(&notice).unwrap();
        assert_eq!(mail.subject, "[gpu-culler] alice/training: not going to be stopped");
        assert!(mail.text.contains(sentence), "{}", mail.text);
        assert!(!mail.html.contains("<o>"), "{}", mail.html);
    }
}

#[test]
fn a_cell_that_has_waited_for_nine_hours() {
    let kernel = |notebook: Option<&str>, server: &str, since| WaitingKernel {
        server: ServerId::new("alice", server),
        kernel: "5e1f".to_owned(),
        notebook: notebook.map(ToOwned::to_owned),
        since,
    };
    let notice = WaitingNotice {
        owner: UserName("alice".into()),
        kernels: vec![kernel(Some("work/<wait>.ipynb"), "training", at("01:10:00"))],
        zone: TimeZone::UTC,
        page: None,
        now: at("10:10:00"),
    };
    let one = Wording::default().waiting(&notice).unwrap();
    assert_eq!(one.subject, "[gpu-culler] alice/training: your cell has waited 9 hours");
    let kernels = vec![notice.kernels[0].clone(), kernel(None, "", at("08:00:00"))];
    insta::assert_snapshot!(shown(Wording::default().waiting(&WaitingNotice { kernels, ..notice })));
}

#[test]
fn whoever_is_warned_for_demand_is_told_how_many_wait() {
    let line = |count, what: &str, since| QueueLine {
        count,
        what: Some(what.to_owned()),
        since: Some(since),
        served_by: None,
    };
    let nine = at("09:00:00");
    for (waiting, words) in [
        (Queue::of(1).lines.remove(0), "Somebody is waiting for a GPU, so the time is shorter than usual."),
        (Queue::of(3).lines.remove(0), "3 others are waiting for a GPU, so the time is shorter than usual."),
        (
            line(1, "nvidia.com/gpu", nine),
            "Somebody is waiting for a GPU, since Tue 1 Dec 2026 09:00 (UTC), so the time is shorter than usual.",
        ),
        (
            line(3, "nvidia.com/a100\n", nine),
            "3 others are waiting for a GPU (nvidia.com/a100), the first of them since Tue 1 Dec 2026 09:00 (UTC), so the time",
        ),
    ] {
        let mut notice = one();
        notice.sessions[0].waiting = Some(waiting);
        let session = notice.sessions[0].clone();
        let (owner, zone) = (notice.owner.clone(), TimeZone::UTC);
        let stopped = StoppedNotice { owner, session, warned_at: nine, stopped_at: nine, zone, page: None };
        let wording = Wording::default();
        for mail in [wording.warning(&notice).unwrap(), wording.stopped(&stopped).unwrap()] {
            let html = words.replace('/', "&#x2f;");
            assert!(mail.text.contains(words) && mail.html.contains(&html), "{}", mail.html);
        }
    }
}

#[test]
fn what_is_declared_stands_in_the_mail_and_what_cannot_be_read_as_well() {
    let mut notice = one();
    let text = |text: &str| Some(text.to_owned());
    notice.sessions[0].intent = Some(Box::new(Intent {
        owner: text("ann\r\nBcc: everybody"),
        team: text("vision"),
        project: text("<b>cats</b>"),
        unreadable: vec![Unreadable { key: "expected-duration".to_owned(), text: "3 bananas".to_owned() }],
        ..Intent::default()
    }));
    notice.sessions[0].declared = Some(Declared { until: at("09:00:00"), is_capped: true });
    let mail = Wording::default().warning(&notice).unwrap();
    for words in [
        "- Project: <b>cats</b>",
        "- Team: vision",
        "- On behalf of: ann Bcc: everybody",
        "- Declared to be needed until: Tue 1 Dec 2026 09:00 (UTC), which has passed; more was declared than may be",
        "- Declared time: expected-duration `3 bananas` cannot be read, so it protects nothing",
    ] {
        assert!(mail.text.contains(words), "{words}: {}", mail.text);
    }
    assert!(mail.html.contains("&lt;b&gt;cats") && !mail.html.contains("<b>cats"), "{}", mail.html);
}

#[test]
fn an_old_server_at_work_is_told_that_its_work_ends_with_it() {
    let mut old = one();
    old.sessions[0].limit = LimitKind::MaxAge;
    old.sessions[0].kind = IdleKind::AtWork;
    let mail = Wording::default().warning(&old).unwrap();
    for body in [&mail.text, &mail.html] {
        assert!(body.contains("Work is running on it now, and ends with it."), "{body}");
    }
    assert!(!mail.text.contains("nothing is being computed"), "{}", mail.text);
}

#[test]
fn the_words_about_keeps_and_a_lifted_freeze() {
    let keep = Keep {
        until: at("18:00:00"),
        by: "alice\u{202e}".to_owned(),
        at: at("10:00:00"),
        reason: Some("a long\nthought".to_owned()),
        cost: SignedDuration::ZERO,
    };
    let spent = |again| KeepRefused::BudgetSpent { left: SignedDuration::from_mins(390), again };
    let refused = [
        KeepRefused::NotRunning,
        KeepRefused::NotOffered(SignedDuration::from_hours(3)),
        KeepRefused::AlreadyKept(at("18:00:00")),
        spent(Some(at("19:00:00"))),
        spent(None),
        KeepRefused::ReasonMissing,
        KeepRefused::ReasonTooLong,
    ];
    let lifted = Lifted { by: "root".to_owned(), at: at("12:00:00"), since: at("09:30:00"), flipped: 10 };
    let mut words = vec![reasons::kept(&keep), reasons::lifted(&lifted)];
    words.extend(refused.iter().map(|why| said::keep_refused(why, &TimeZone::UTC)));
    insta::assert_snapshot!(words.join("\n"));
}

fn ending() -> EndingNotice {
    EndingNotice {
        rule: "standby batch".to_owned(),
        owner: "mlops".to_owned(),
        owner_known: true,
        reason: "nightly scoring".to_owned(),
        servers: vec![ServerId::new("svc-scoring", ""), ServerId::new("svc-scoring", "spare")],
        idle: SignedDuration::from_mins(2490),
        counted_since: Some(at("00:00:00")),
        end: at("00:00:00") + SignedDuration::from_hours(7 * 24),
        zone: TimeZone::get("Europe/Berlin").unwrap(),
        page: Some("https://hub.example.org/services/gpu-culler/".to_owned()),
        now: at("10:10:00"),
    }
}

#[test]
fn an_exemption_that_ends() {
    insta::assert_snapshot!(shown(Wording::default().exemption_ends(&ending())));
}

#[test]
fn an_exemption_that_protects_nobody_and_whose_owner_has_no_address() {
    let notice = EndingNotice {
        owner_known: false,
        servers: Vec::new(),
        counted_since: None,
        page: None,
        rule: "<b>\u{202e}".to_owned(),
        ..ending()
    };
    insta::assert_snapshot!(shown(Wording::default().exemption_ends(&notice)));
}

#[test]
fn what_is_odd_about_a_rule_is_said_in_a_sentence() {
    let odd = [
        RuleOddity::Shadowed("everybody".to_owned()),
        RuleOddity::EmptyCondition("users"),
        RuleOddity::ExemptionEnded(at("10:00:00")),
        RuleOddity::NothingMatches("gpu_models", "*H200*".to_owned()),
    ];
    insta::assert_snapshot!(odd.map(|oddity| reasons::rule_oddity("standby", &oddity)).join("\n"));
}
