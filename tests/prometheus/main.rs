//! The source "prometheus" on a real Prometheus and a real VictoriaMetrics.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a failed test should stop at once")]

#[path = "../certificates/mod.rs"]
mod certificates;
mod demand;
mod secured;
#[allow(dead_code, reason = "the bench uses more of it")]
mod servers;

use std::time::{Duration, Instant};

use gpu_culler::domain::GpuSample;
use gpu_culler::telemetry::prometheus::{
    Advice, Client, Login, Look, Method, Names, Proxy, Tenant, Workload,
};
use gpu_culler::telemetry::{Prometheus, PrometheusSettings};
use jiff::{SignedDuration, Timestamp};
use servers::{Exporter, Kind, Server, Shown, lines};

const BOTH: [Kind; 2] = [Kind::Prometheus, Kind::VictoriaMetrics];

/// Everything happens within seconds here.
fn settings(url: &str, reach: u64) -> PrometheusSettings {
    PrometheusSettings {
        url: url.parse().unwrap(),
        login: Login::None,
        ca_file: None,
        identity: None,
        proxy: Proxy::None,
        headers: Vec::new(),
        params: Vec::new(),
        method: Method::Post,
        matchers: Vec::new(),
        names: Names::default(),
        weak_utilization: false,
        timeout: Duration::from_secs(10),
        max_series: 10_000,
        collect_interval: Duration::from_secs(reach),
        label_delay: Duration::from_secs(5),
        sm_threshold: 0.01,
        dram_threshold: 0.01,
        max_gap: Duration::from_secs(6 * reach),
        history: Duration::from_secs(86_400),
    }
}

#[expect(clippy::disallowed_methods, reason = "the servers scrape in real time")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn tenant(pod: &str, started: Timestamp) -> Tenant {
    Tenant {
        workload: Workload::Pod { namespace: "hub".to_owned(), name: pod.to_owned() },
        started: Some(started),
    }
}

fn card(uuid: &str, pod: Option<&'static str>) -> Shown {
    Shown { uuid: uuid.to_owned(), engine: 0.0, pod }
}

/// Looks about every second until what is seen is as `wanted`.
async fn until(
    source: &Prometheus,
    tenants: &[Tenant],
    what: &str,
    wanted: impl Fn(&Look, Timestamp) -> bool,
) {
    let begun = Instant::now();
    loop {
        let at = now();
        let look = source.look(tenants, at).await.unwrap();
        if wanted(&look, at) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "never seen: {what}; last {look:#?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn only(look: &Look, tenant: &Tenant, at: Timestamp) -> Option<GpuSample> {
    look.of(tenant, at).ok()?.into_iter().next()
}

#[tokio::test]
async fn prometheus_shows_a_card_through_rest_work_a_late_label_a_stall_and_silence() {
    follow(Kind::Prometheus).await;
}

#[tokio::test]
async fn victoriametrics_shows_a_card_through_rest_work_a_late_label_a_stall_and_silence() {
    follow(Kind::VictoriaMetrics).await;
}

async fn follow(kind: Kind) {
    let exporter = Exporter::start();
    exporter.show(|scene| scene.cards = vec![card("GPU-a", Some("alice")), card("GPU-b", None)]);
    let Some(server) = Server::start(kind, Some(&exporter), "") else { return };
    let source = Prometheus::new(settings(&server.url, 2)).unwrap();
    let started = now() - SignedDuration::from_secs(2);
    let (alice, bob) = (tenant("alice", started), tenant("bob", started));
    let both = [alice.clone(), bob.clone()];
    let alices = |look: &Look, at| only(look, &alice, at);

    until(&source, &both, "alice's card at rest", |look, at| {
        alices(look, at).is_some_and(|card| card.past.is_some_and(|past| past.last_active.is_none()))
    })
    .await;
    let look = source.look(&both, now()).await.unwrap();
    assert_eq!(alices(&look, now()).unwrap().memory_used, Some(20_480 << 20), "{kind:?}");

    examined(&source, &server.url, &both).await;

    exporter.show(|scene| scene.cards[0].engine = 0.5);
    until(&source, &both, "alice's card at work", |look, at| {
        alices(look, at).is_some_and(|card| card.sm.is_some_and(|share| share.get() == 0.5))
    })
    .await;
    exporter.show(|scene| scene.cards[0].engine = 0.0);
    until(&source, &both, "its rest since", |look, at| {
        alices(look, at).is_some_and(|card| card.sm.is_some_and(|share| share.get() == 0.0))
            && alices(look, at).and_then(|card| card.past?.last_active).is_some()
    })
    .await;

    until(&source, &both, "bob has no card", |look, at| look.of(&bob, at) == Ok(vec![])).await;
    exporter.show(|scene| scene.cards[1].pod = Some("bob"));
    until(&source, &both, "bob's card, whose label is late", |look, at| only(look, &bob, at).is_some()).await;

    exporter.show(|scene| scene.stalled = true);
    until(&source, &both, "the stall", |look, at| {
        alices(look, at).is_some_and(|card| card.unreadable.is_some_and(|why| why.contains("bit for bit")))
    })
    .await;
    exporter.show(|scene| scene.cards.clear());
    until(&source, &both, "the silence", |look, at| {
        alices(look, at)
            .is_some_and(|card| card.past.is_none() && card.unreadable.unwrap().contains("no sample"))
    })
    .await;
}

/// What the doctor says of an exporter as it is by default, and of one that is scraped too rarely.
async fn examined(source: &Prometheus, url: &str, tenants: &[Tenant]) {
    let words = |all: &[Advice]| {
        all.iter().map(|advice| format!("{:?} {}\n", advice.concern, advice.words)).collect::<String>()
    };
    let said = words(&source.examine(tenants, now()).await.unwrap());
    for part in [
        "None 2 cards on 1 machines",
        "None scraped every 1 s, each reading speaks for 2 s",
        "Some 2 of 2 cards have no sm: add this line to the exporter's CSV file: DCGM_FI_PROF_SM_ACTIVE, gauge,",
        "of 2 sessions 1 have cards",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("Grave"), "{said}");
    let fast = PrometheusSettings { collect_interval: Duration::from_millis(400), ..settings(url, 2) };
    let said = words(&Prometheus::new(fast).unwrap().examine(tenants, now()).await.unwrap());
    assert!(said.contains("Grave cards are scraped every 1 s, but a reading speaks for 0 s only"), "{said}");
}

/// Six hours of forty cards, as scraped every 15 seconds up to `end`; the first one worked until an hour before,
/// and the last one was not scraped for ten minutes, two hours before.
fn history(end: i64) -> String {
    let mut text = String::new();
    for number in 0..40 {
        for step in (0..6 * 240).rev() {
            let at = end - step * 15;
            if number == 39 && (7200..7800).contains(&(end - at)) {
                continue;
            }
            let engine = if number == 0 && end - at == 3600 { 0.25 } else { 0.0 };
            let shown = Shown { uuid: format!("GPU-{number}"), engine, pod: Some("alice") };
            text.push_str(&lines(&shown, (at as u64 / 30) * 1000, &format!(" {at}")));
        }
    }
    text
}

#[tokio::test]
async fn after_a_start_the_clocks_stand_as_if_the_service_had_watched() {
    let end = now().as_second() / 15 * 15 - 60;
    let history = history(end);
    for kind in BOTH {
        let Some(server) = Server::start(kind, None, &history) else { continue };
        let source = Prometheus::new(settings(&server.url, 30)).unwrap();
        let at = |ago: i64| Timestamp::from_second(end - ago).unwrap();
        let alice = tenant("alice", at(4 * 3600));
        let look = source.look(std::slice::from_ref(&alice), at(-5)).await.unwrap();
        assert_eq!(look.troubles, [""; 0], "{kind:?}");
        let cards = look.of(&alice, at(-5)).unwrap();
        assert_eq!(cards.len(), 40);
        let past = |id: &str| cards.iter().find(|card| card.id.0 == id).unwrap().past.unwrap();

        let worked = past("GPU-0");
        assert_eq!((worked.since, worked.last_active), (at(3600), Some(at(3600))), "{kind:?}");
        let rested = past("GPU-1");
        assert!(rested.since <= at(4 * 3600 - 60) && rested.last_active.is_none(), "{kind:?} {rested:?}");
        assert!(rested.unwatched <= Duration::from_secs(35), "{rested:?}");
        let missed = past("GPU-39");
        // The first reading after it speaks for half a minute before.
        assert_eq!((missed.since, missed.after_gap), (at(7215), true), "{kind:?}");
    }
}

#[tokio::test]
async fn what_a_server_refuses_is_told_in_its_own_words_and_what_it_should_not_give_is_refused() {
    for kind in BOTH {
        let Some(server) = Server::start(kind, None, "") else { continue };
        let client = Client::new(settings(&server.url, 2)).unwrap();
        let said = |error: gpu_culler::telemetry::prometheus::PromError| error.to_string();
        let broken = said(client.values("sum(", now()).await.unwrap_err());
        assert!(broken.contains("`sum(`") && broken.contains("pars"), "{kind:?} {broken}");
        let number = said(client.ranges("1+1", now()).await.unwrap_err());
        assert!(number.contains("`1+1` gives a "), "{kind:?} {number}");
        assert!(client.ranges("nothing[1m]", now()).await.unwrap().series.is_empty());
        let vector = client.values("vector(7)", now()).await.unwrap();
        assert_eq!(vector.series[0].samples[0].1, 7.0);
        if kind == Kind::Prometheus {
            let text = said(client.values("\"x\"", now()).await.unwrap_err());
            assert!(text.contains("a string"), "{text}");
        }
    }
}

#[tokio::test]
async fn where_nothing_is_scraped_no_session_is_without_a_card() {
    for kind in BOTH {
        let Some(server) = Server::start(kind, None, "") else { continue };
        let source = Prometheus::new(settings(&server.url, 2)).unwrap();
        let alice = tenant("alice", now() - SignedDuration::from_hours(1));
        let look = source.look(std::slice::from_ref(&alice), now()).await.unwrap();
        assert!(look.of(&alice, now()).is_err());
        assert!(look.troubles[0].contains("no card is found"), "{:?}", look.troubles);
    }
}
