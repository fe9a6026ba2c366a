//! Reads a trace, line by line.

use std::io::{self, BufRead, Read};
use std::time::Duration;

use super::{Expectation, GivenKeep, Line, MailState, Observation, wire};
use crate::domain::{
    Engine, GpuId, GpuSample, Hold, Jupyter, Kernel, KernelState, Past, Queue, QueueLine, Ratio, Server,
    ServerId, SpawnerState, Terminal,
};
use crate::policy::{Session, Snapshot};

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be read.
    #[error("line {line}: cannot be read")]
    Io {
        /// Counted from 1.
        line: usize,
        /// What came back.
        #[source]
        source: io::Error,
    },
    /// The first line does not name the format.
    #[error("a trace begins with {{\"trace\":\"gpu-culler/1\"}}, this one with: {0}")]
    Format(String),
    /// A line says something else than a trace can.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

const FORMAT: &str = "gpu-culler/1";

/// The lines of a trace after its header. Empty lines are passed over.
pub fn read(source: impl BufRead) -> impl Iterator<Item = Result<Line, TraceError>> {
    let mut lines = Lines { source, number: 0, over: false }
        .filter(|line| !line.as_ref().is_ok_and(|line| line.text.trim().is_empty()))
        .peekable();
    let empty = lines.peek().is_none().then(|| Err(TraceError::Format("nothing".to_owned())));
    let read = lines.enumerate().filter_map(|(index, line)| match line {
        Ok(line) if index == 0 => read_header(&line.text).err().map(Err),
        Ok(line) => Some(read_line(line.number, &line.text).map_err(|error| line.cut_short(error))),
        Err(error) => Some(Err(error)),
    });
    empty.into_iter().chain(read)
}

/// One line as it stands in the file.
struct RawLine {
    /// Counted from 1.
    number: usize,
    text: String,
    /// Whether its end is there, too.
    whole: bool,
}

impl RawLine {
    /// The last line of a trace whose recording was interrupted is no riddle.
    fn cut_short(&self, error: TraceError) -> TraceError {
        match error {
            TraceError::Line { line, what } if !self.whole => {
                let cut = "the trace breaks off in the middle of this line; remove it to replay the rest";
                TraceError::Line { line, what: format!("{cut} ({what})") }
            }
            error => error,
        }
    }
}

/// Lines, each read whole and none kept. The first error ends them.
struct Lines<R> {
    source: R,
    number: usize,
    over: bool,
}

/// No observation of a Hub is longer than this.
const LONGEST: u64 = 64 << 20;

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<RawLine, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        self.number += 1;
        let line = self.number;
        let read = self.read();
        self.over = !matches!(read, Ok(Some(_)));
        read.map_err(|error| match error {
            Ok(source) => TraceError::Io { line, source },
            Err(what) => TraceError::Line { line, what },
        })
        .transpose()
    }
}

impl<R: BufRead> Lines<R> {
    fn read(&mut self) -> Result<Option<RawLine>, Result<io::Error, String>> {
        let mut bytes = Vec::new();
        (&mut self.source).take(LONGEST).read_until(b'\n', &mut bytes).map_err(Ok)?;
        let whole = bytes.last() == Some(&b'\n');
        if bytes.is_empty() {
            return Ok(None);
        }
        if !whole && u64::try_from(bytes.len()).is_ok_and(|length| length >= LONGEST) {
            return Err(Err("is longer than 64 MiB; one line holds one observation".to_owned()));
        }
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Err("is no UTF-8; a trace is JSON lines in UTF-8".to_owned()))?;
        Ok(Some(RawLine { number: self.number, text, whole }))
    }
}

/// Some editors begin a file with a byte order mark.
fn read_header(text: &str) -> Result<(), TraceError> {
    match serde_json::from_str::<wire::Header>(text.trim_start_matches('\u{feff}')) {
        Ok(header) if header.trace == FORMAT => Ok(()),
        _ => Err(TraceError::Format(text.chars().take(80).collect())),
    }
}

fn read_line(line: usize, text: &str) -> Result<Line, TraceError> {
    let bad = |what: String| TraceError::Line { line, what };
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
    if value.get("expect").is_some() {
        let expect: ExpectLine = serde_json::from_value(value).map_err(|e| bad(e.to_string()))?;
        let all = expect.expect.into_iter().map(expectation).collect::<Result<_, _>>();
        return all.map(Line::Expected).map_err(bad);
    }
    let wire: wire::Observation = serde_json::from_value(value).map_err(|e| bad(e.to_string()))?;
    observation(wire).map(Line::Observed).map_err(bad)
}

#[derive(serde::Deserialize)]
struct ExpectLine {
    expect: Vec<wire::Expect>,
}

fn expectation(wire: wire::Expect) -> Result<Expectation, String> {
    match (wire.between, wire.never) {
        (Some(_), true) => Err("an expectation has either `between` or `never`, not both".to_owned()),
        (None, false) => Err("an expectation needs `between` or `\"never\":true`".to_owned()),
        (between, _) => Ok(Expectation {
            server: wire.server.map(|s| server_id(&s)).transpose()?,
            event: wire.event,
            between,
        }),
    }
}

fn server_id(text: &str) -> Result<ServerId, String> {
    text.parse().map_err(|e: crate::domain::IdError| e.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|e| format!("`{text}` is no duration such as \"90s\" or \"2h 30m\": {e}"))
}

fn observation(wire: wire::Observation) -> Result<Observation, String> {
    let telemetry_down =
        (wire.telemetry == wire::State::Down).then(|| "the telemetry source is down".to_owned());
    let sessions = match (wire.hub, wire.servers) {
        (wire::State::Down, _) => Err("the Hub is down".to_owned()),
        (wire::State::Ok, None) => Err("the servers were not listed".to_owned()),
        (wire::State::Ok, Some(servers)) => Ok(servers
            .into_iter()
            .map(|s| session(s, telemetry_down.as_deref()))
            .collect::<Result<Vec<_>, _>>()?),
    };
    let keeps = wire.keeps.into_iter().map(given_keep).collect::<Result<_, _>>()?;
    let mail = match wire.mail {
        None | Some(wire::Mail::Accepting) => MailState::Accepting,
        Some(wire::Mail::Refusing) => MailState::Refusing,
        Some(wire::Mail::Down) => MailState::Down,
    };
    let complete = sessions.is_ok();
    Ok(Observation {
        snapshot: Snapshot {
            at: wire.at,
            sessions,
            complete,
            telemetry_down,
            waiting: wire.waiting.map(queue),
        },
        keeps,
        mail,
    })
}

fn given_keep(wire: wire::Keep) -> Result<GivenKeep, String> {
    Ok(GivenKeep {
        server: server_id(&wire.server)?,
        length: duration(&wire.length)?,
        by: wire.by.unwrap_or_else(|| "somebody".to_owned()),
        reason: wire.reason,
    })
}

fn session(wire: wire::Server, telemetry_down: Option<&str>) -> Result<Session, String> {
    let gpus = match (wire.gpus, telemetry_down) {
        (_, Some(why)) => Err(why.into()),
        (None, None) => Err("the cards of the session are not known".into()),
        (Some(gpus), None) => Ok(gpus.into_iter().map(sample).collect::<Result<_, _>>()?),
    };
    Ok(Session {
        jupyter: wire
            .jupyter
            .and_then(jupyter)
            .ok_or_else(|| "the single-user server could not be read".into()),
        gpus,
        holds: wire.holds.into_iter().map(hold).collect(),
        cpu: wire.cpu.filter(|cores| cores.is_finite()),
        server: Box::new(Server {
            path: String::new(),
            id: ServerId::new(wire.user, wire.server),
            groups: wire.groups,
            admin: wire.admin,
            profile: wire.profile,
            labels: wire.labels,
            started: wire.started,
            last_activity: wire.last_activity,
            pending: wire.pending,
            ready: wire.ready,
            contacts: Vec::new(),
            spawner: SpawnerState::default(),
        }),
    })
}

fn queue(wire: wire::Waiting) -> Queue {
    let line = |line: wire::Line| {
        let wire::Line { count, what, since, served_by } = line;
        QueueLine { count, what, since, served_by }
    };
    match wire {
        wire::Waiting::Count(count) => Queue::of(count),
        wire::Waiting::Lines(lines) => Queue { lines: lines.into_iter().map(line).collect() },
    }
}

fn hold(wire: wire::Hold) -> Hold {
    let wire::Hold { gpu, memory_used, kernel, notebook } = wire;
    Hold { gpu: GpuId(gpu), memory_used, kernel, notebook }
}

/// `None` where any part that tells of use could not be read.
fn jupyter(wire: wire::Jupyter) -> Option<Jupyter> {
    let kernel = |kernel: wire::Kernel| Kernel {
        id: kernel.id,
        state: KernelState::from(kernel.state),
        last_activity: kernel.last_activity,
        connections: kernel.connections,
        notebook: kernel.notebook,
    };
    let terminal =
        |terminal: wire::Terminal| Terminal { name: terminal.name, last_activity: terminal.last_activity };
    Some(Jupyter {
        last_activity: wire.last_activity,
        connections: wire.connections,
        kernels: wire.kernels?.into_iter().map(kernel).collect(),
        terminals: wire.terminals?.into_iter().map(terminal).collect(),
    })
}

fn past(wire: wire::Past) -> Past {
    let wire::Past { since, after_gap, last_active, unwatched, lag } = wire;
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
    Past { since, after_gap, last_active, unwatched: seconds(unwatched), lag: seconds(lag) }
}

/// Where it is not told how much was watched, nothing was; where not how well, all of it may be a gap.
fn sample(wire: wire::Gpu) -> Result<GpuSample, String> {
    let covered = wire.covered.as_deref().map_or(Ok(Duration::ZERO), duration)?;
    let largest_gap = wire.largest_gap.as_deref().map_or(Ok(covered), duration)?;
    let engines = [
        (Engine::Tensor, wire.tensor),
        (Engine::Copy, wire.copy),
        (Engine::Encode, wire.encode),
        (Engine::Decode, wire.decode),
    ];
    Ok(GpuSample {
        id: GpuId(wire.id),
        model: wire.model,
        sm: wire.sm.and_then(Ratio::reading),
        dram: wire.dram.and_then(Ratio::reading),
        engines: engines
            .into_iter()
            .filter_map(|(e, read)| Some((e, read?.and_then(Ratio::reading))))
            .collect(),
        memory_used: wire.memory_used,
        processes: wire.processes,
        covered,
        largest_gap,
        unreadable: None,
        power: wire.power,
        past: wire.past.map(past),
    })
}
