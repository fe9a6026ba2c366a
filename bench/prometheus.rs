//! What one look at a cluster costs: 10 000 cards at 15 s in a real Prometheus, filled by promtool.
//!
//! Method. Some minutes of eight metrics are written as blocks, and the source looks once a minute, with `now` given.
//! The first looks, which also read history, are told apart; of those after them queries, bytes and CPU time (ours from
//! /proc/self/stat, the server's from its own) are taken. Then the same with a tenth of the cards, and with limits of a
//! day instead of an hour.
//!
//! `ratio NAME VALUE LIMIT`: what a card costs among 10 000 beside among 1 000; what a look costs with a limit of a day
//! beside an hour. The exit code is 1 if a value is over its limit.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a measurement that fails should stop at once"
)]

#[path = "../tests/prometheus/servers.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod servers;

use std::fs;
use std::time::{Duration, Instant};

use gpu_culler::telemetry::prometheus::{Login, Method, Names, Proxy, Tenant, Workload};
use gpu_culler::telemetry::{Prometheus, PrometheusSettings};
use jiff::Timestamp;
use servers::{Kind, Server, Shown, lines};

const CARDS: usize = 10_000;
const STEP: i64 = 15;
const LOOKS: i64 = 3;
/// What the blocks hold, in seconds.
const FILLED: i64 = 150 + 60 + LOOKS * 60;
const METRICS: [&str; 6] =
    ["a look's queries", "KiB", "ms", "our CPU ms", "the server's CPU ms", "bytes per card"];

fn settings(url: &str, history: u64) -> PrometheusSettings {
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
        timeout: Duration::from_secs(60),
        max_series: 100_000,
        collect_interval: Duration::from_secs(30),
        label_delay: Duration::from_secs(600),
        sm_threshold: 0.01,
        dram_threshold: 0.01,
        max_gap: Duration::from_secs(180),
        history: Duration::from_secs(history),
    }
}

fn filled(cards: usize, end: i64) -> String {
    let mut text = String::new();
    for number in 0..cards {
        let shown = Shown {
            uuid: format!("GPU-{number:08x}-6821-79a8-32d3-26c5039c0000"),
            engine: 0.0,
            pod: Some("alice"),
        };
        for at in (0..FILLED / STEP).map(|step| end - FILLED + (step + 1) * STEP) {
            text.push_str(&lines(&shown, at.unsigned_abs() / 30 * 1000, &format!(" {at}")));
        }
    }
    text
}

/// User and system time of a process, in milliseconds.
fn cpu(pid: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks * 10.0
}

/// The means of the looks after those that read history.
async fn measure(server: &Server, cards: usize, hours: i64, end: i64) -> [f64; 6] {
    let source = Prometheus::new(settings(&server.url, hours.unsigned_abs() * 3600)).unwrap();
    let at = |second: i64| Timestamp::from_second(second).unwrap();
    let workload = Workload::Pod { namespace: "hub".to_owned(), name: "alice".to_owned() };
    let tenants = [Tenant { workload, started: Some(at(end - hours * 3600)) }];
    let begun = Instant::now();
    let first = end - LOOKS * 60;
    let (mut queries, mut bytes) = (0, 0);
    loop {
        // Looks at the same instant only go on reading history.
        let look = source.look(&tenants, at(first)).await.unwrap();
        assert_eq!(look.devices.len(), cards);
        (queries, bytes) = (queries + look.cost.queries, bytes + look.cost.bytes);
        if look.cost.queries <= 11 {
            break;
        }
    }
    println!(
        "{cards:>6} cards, {hours:>2} h: after the start {queries} queries, {} MiB, {:.1} s",
        bytes >> 20,
        begun.elapsed().as_secs_f64()
    );
    let mut sum = [0.0; 6];
    for number in 1..=LOOKS {
        tokio::time::sleep(Duration::from_millis(3100)).await; // looks closer to each other share what was read
        let (began, ours, theirs) = (Instant::now(), cpu("self"), cpu(&server.pid()));
        let look = source.look(&tenants, at(first + number * 60)).await.unwrap();
        let took = began.elapsed().as_secs_f64() * 1000.0;
        assert!(look.devices.iter().all(|device| device.sample.past.is_some()), "all of them can be judged");
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let (queries, bytes) = (look.cost.queries as f64, look.cost.bytes as f64);
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let per_card = bytes / cards as f64;
        let this = [queries, bytes / 1024.0, took, cpu("self") - ours, cpu(&server.pid()) - theirs, per_card];
        sum.iter_mut().zip(this).for_each(|(sum, this)| *sum += this);
    }
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let mean = sum.map(|sum| sum / LOOKS as f64);
    for (name, value) in METRICS.iter().zip(mean) {
        println!("{cards:>6} cards, {hours:>2} h: {name}: {value:.0}");
    }
    mean
}

#[tokio::main]
async fn main() {
    let end = 1_800_000_000;
    let server = |cards| Server::start(Kind::Prometheus, None, &filled(cards, end));
    let Some(few_server) = server(CARDS / 10) else { return };
    let few = measure(&few_server, CARDS / 10, 1, end).await;
    drop(few_server);
    let Some(many_server) = server(CARDS) else { return };
    let hour = measure(&many_server, CARDS, 1, end).await;
    let day = measure(&many_server, CARDS, 24, end).await;
    let ratios = [
        ("prometheus-queries-of-ten-times-the-cards", hour[0] / few[0], 1.0),
        ("prometheus-bytes-per-card-of-ten-times-the-cards", hour[5] / few[5], 1.1),
        ("prometheus-queries-of-a-limit-of-a-day", day[0] / hour[0], 1.0),
        ("prometheus-bytes-of-a-limit-of-a-day", day[1] / hour[1], 1.01),
        ("prometheus-cpu-of-a-limit-of-a-day", day[3] / hour[3], 1.3),
    ];
    for (name, value, limit) in ratios {
        println!("ratio {name} {value:.3} {limit}");
    }
    let over = ratios.iter().any(|(_, value, limit)| value > limit);
    std::process::exit(i32::from(over));
}
