//! The service: binds its port, then runs cycles until it is told to end. The only reader of the clock.

mod agent;
mod announce;
mod build;
mod charts;
mod guardian;
mod release;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cycle::{Cycle, CycleReport};
use crate::executor::{Answer, Happening, Inbox, Refusal};
use crate::message::reasons;
use crate::settings::{Environment, Service, Sources};
use crate::trace;
use crate::web::{self, Board, Pages, Shown};
use charts::Charts;
use watch::Watch;

pub use agent::agent;
pub use build::{Parts, demand, duties, kernels_needed, note_on, parts, pods, source};

/// How long to wait before something that failed at the start is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// What `run` was asked to do.
#[derive(Debug)]
pub struct Run {
    /// Where the settings come from.
    pub sources: Sources,
    /// Append every observation to this trace.
    pub record: Option<std::path::PathBuf>,
}

/// The present instant.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Why the loop goes on.
enum Wake {
    Tick,
    Asked,
    Reload,
    /// Let go of NVML, or take it up again.
    Release,
    End,
}

/// Runs until a signal, or until the Hub that started it is gone. Only a second signal handler that
/// cannot be installed is an error: whatever else is wrong is shown, and tried again.
pub async fn run(run: Run) -> anyhow::Result<()> {
    let (board, inbox) = (Arc::new(Board::default()), Inbox::default());
    answer(&run.sources.environment, &board, &inbox);
    let mut signals = Signals::new(run.sources.environment.is_managed())?;
    let mut watch = Watch::new(run.sources.file.clone());
    let mut working: Option<Working> = None;
    let mut released = None;
    let mut charts = Charts::default();
    loop {
        let began = Instant::now();
        let every = match &mut working {
            Some(working) => {
                match signals.or_end(working.cycle.run(now)).await {
                    Some(report) => working.reported(report, began.elapsed(), &board),
                    None => break,
                }
                charts.keep(&board, &working.shown.store).await;
                working.every
            }
            None => match signals.or_end(start(&run, inbox.clone())).await {
                None => break,
                Some(Ok(started)) => {
                    release::go_on(started.cycle.observer.source(), released.take());
                    Charts::take_up(&board, &started.shown.store);
                    started.announce(&board);
                    working = Some(started);
                    continue;
                }
                Some(Err(problem)) => {
                    refuse(&board, &problem);
                    RETRY
                }
            },
        };
        let wake = loop {
            if signals.or_end(see_to_wishes(&mut working, &inbox, &board)).await.is_none() {
                break Wake::End;
            }
            match signals.wait(every.saturating_sub(began.elapsed()), &mut watch, &inbox).await {
                Wake::Asked => {}
                wake => break wake,
            }
        };
        match wake {
            Wake::Tick | Wake::Asked => {}
            Wake::Reload => {
                released =
                    working.as_ref().and_then(|working| release::until(working.cycle.observer.source()));
                reload(&run, &mut working, &board);
            }
            Wake::Release => {
                release::toggle_of(working.as_ref().map(|working| working.cycle.observer.source()))
            }
            Wake::End => break,
        }
    }
    charts.end(&board, working.as_ref().map(|working| working.shown.store.as_path())).await;
    tracing::info!("ended; the ledger is saved");
    Ok(())
}

/// Answers people between two cycles.
async fn see_to_wishes(working: &mut Option<Working>, inbox: &Inbox, board: &Board) {
    match working {
        Some(working) => {
            let happened = working.cycle.see_to_wishes(now).await;
            log(&happened);
            if let Some(announce) = working.announce.as_ref().filter(|_| !happened.is_empty()) {
                announce.what(&happened);
            }
            board.write(|status| status.counters.happened(&happened));
        }
        None => {
            inbox.take_all().into_iter().for_each(|asked| asked.answer(Answer::Refused(Refusal::NotWorking)))
        }
    }
}

fn log(happened: &[Happening]) {
    for happening in happened {
        let server = happening.server.as_ref().map(ToString::to_string).unwrap_or_default();
        tracing::info!(server, event = happening.event, reason = happening.reason, "decided");
    }
}

/// A service with settings that are in force.
struct Working {
    cycle: Cycle,
    shown: Shown,
    every: Duration,
    notes: Vec<String>,
    record: Option<trace::Recorder>,
    announce: Option<announce::Announce>,
    /// The troubles of the last cycle: one that lasts is said once.
    troubles: Vec<String>,
}

async fn start(run: &Run, inbox: Inbox) -> Result<Working, String> {
    let settings = run.sources.load().map_err(|error| error.to_string())?;
    let every = settings.cycle;
    let record = run.record.as_deref().map(trace::Recorder::open).transpose()?;
    let announce = settings.announcements.clone().map(announce::Announce::new).transpose()?;
    let (cycle, notes) = build::cycle(&settings, inbox).await?;
    let shown = Shown::of(settings, notes.clone());
    Ok(Working { cycle, shown, every, notes, record, announce, troubles: Vec::new() })
}

impl Working {
    fn announce(&self, board: &Board) {
        let policy = &self.cycle.policy;
        let limits = &policy.limits;
        tracing::info!(
            mode = %policy.mode,
            warn_after = reasons::length(limits.warn_after),
            grace = reasons::length(limits.grace),
            rules = policy.rules.len(),
            "watching"
        );
        for note in &self.notes {
            tracing::warn!("{note}");
        }
        board.write(|status| status.announced(self.shown.clone(), policy));
    }

    /// Logs and shows a report.
    fn reported(&mut self, report: CycleReport, took: Duration, board: &Board) {
        log(&report.happened);
        for trouble in report.troubles.iter().filter(|trouble| !self.troubles.contains(trouble)) {
            tracing::warn!("{trouble}");
        }
        for trouble in self.troubles.iter().filter(|trouble| !report.troubles.contains(trouble)) {
            tracing::info!("no longer: {trouble}");
        }
        self.troubles.clone_from(&report.troubles);
        if let Some(announce) = &self.announce {
            announce.what(&report.happened);
        }
        if let Some(Err(error)) = self.record.as_mut().map(|record| record.append(&report.snapshot)) {
            tracing::warn!("the trace could not be written: {error}");
        }
        let ledger = self.cycle.journal.ledger();
        board.write(|status| status.completed(report, ledger, took));
    }
}

/// Tries the new settings; the old ones stay in force when they are refused.
fn reload(run: &Run, working: &mut Option<Working>, board: &Board) {
    match run.sources.load() {
        Ok(_) => {
            tracing::info!("the settings changed; starting anew with them");
            *working = None;
        }
        Err(error) if working.is_some() => {
            tracing::error!("the new settings are refused, the old ones stay in force: {error}");
            let problem = format!("the new settings are refused, the old ones stay in force: {error}");
            board.write(|status| status.problems = vec![problem]);
        }
        Err(error) => refuse(board, &error.to_string()),
    }
}

fn refuse(board: &Board, problem: &str) {
    let known = board.read(|status| status.problems.iter().any(|p| p == problem));
    if !known {
        tracing::error!("nothing is culled: {problem}");
    }
    board.write(|status| status.problems = vec![problem.to_owned()]);
}

/// Binds the port before anything else, since a managed service that does not answer takes the Hub
/// down with it; and keeps trying, since a predecessor may still hold it.
fn answer(environment: &Environment, board: &Arc<Board>, inbox: &Inbox) {
    let service = match environment.service() {
        Some(Ok(service)) => service,
        Some(Err(problem)) => return refuse(board, &problem),
        None => return,
    };
    let pages = Pages::new(environment, &service.prefix, Arc::clone(board), inbox.clone(), now);
    tokio::spawn(async move {
        loop {
            if let Err(error) = listen(&service, &pages).await {
                tracing::warn!(address = %service.listen, %error, "the page cannot be served; trying again");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
}

async fn listen(service: &Service, pages: &Pages) -> std::io::Result<()> {
    let listener = web::bind(service.listen).await?;
    tracing::info!(address = %service.listen, prefix = service.prefix, "answering");
    web::serve(listener, pages).await
}

/// Everything that may interrupt the loop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    release: Signal,
    guardian: guardian::Guardian,
}

impl Signals {
    fn new(managed: bool) -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            release: signal(SignalKind::user_defined1())?,
            guardian: guardian::Guardian::new(managed),
        })
    }

    /// Work, unless the process is told to end first.
    async fn or_end<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.end() => None,
            done = work => Some(done),
        }
    }

    async fn wait(&mut self, pause: Duration, watch: &mut Watch, inbox: &Inbox) -> Wake {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Wake::End,
            _ = self.terminate.recv() => Wake::End,
            () = self.guardian.gone() => Wake::End,
            _ = self.hangup.recv() => Wake::Reload,
            _ = self.release.recv() => Wake::Release,
            () = watch.changed() => Wake::Reload,
            () = inbox.arrived() => Wake::Asked,
            () = tokio::time::sleep(pause) => Wake::Tick,
        }
    }

    async fn end(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = self.guardian.gone() => {}
        }
    }
}
