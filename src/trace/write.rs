//! Writes what was observed as a line of a trace.

use std::io::Write;

use super::wire;
use crate::domain::{Engine, GpuSample, Hold, Jupyter, Kernel, Queue, QueueLine, Ratio, Terminal};
use crate::policy::{Session, Snapshot};

/// The first line of a trace.
pub fn header(note: &str) -> String {
    line(&wire::Header { trace: "gpu-culler/1".to_owned(), note: note.to_owned() })
}

/// One observation as a line. Addresses, spawner state and the like are left out: a trace may be
/// handed on.
pub fn observation(snapshot: &Snapshot) -> String {
    let state = |down: bool| if down { wire::State::Down } else { wire::State::Ok };
    line(&wire::Observation {
        at: snapshot.at,
        hub: state(snapshot.sessions.is_err()),
        telemetry: state(snapshot.telemetry_down.is_some()),
        waiting: snapshot.waiting.as_ref().map(waiting),
        servers: snapshot.sessions.as_ref().ok().map(|sessions| sessions.iter().map(server).collect()),
        keeps: Vec::new(),
        mail: None,
    })
}

fn waiting(queue: &Queue) -> wire::Waiting {
    let line = |line: &QueueLine| {
        let QueueLine { count, what, since, served_by } = line.clone();
        wire::Line { count, what, since, served_by }
    };
    match queue.total() {
        count if *queue == Queue::of(count) => wire::Waiting::Count(count),
        _ => wire::Waiting::Lines(queue.lines.iter().map(line).collect()),
    }
}

fn line(value: &impl serde::Serialize) -> String {
    // These types hold nothing that JSON cannot: no maps with odd keys, no failing serializers.
    serde_json::to_string(value).unwrap_or_default()
}

fn server(session: &Session) -> wire::Server {
    let server = &session.server;
    wire::Server {
        user: server.id.user.to_string(),
        server: server.id.name.to_string(),
        groups: server.groups.clone(),
        admin: server.admin,
        profile: server.profile.clone(),
        labels: server.labels.clone(),
        started: server.started,
        last_activity: server.last_activity,
        pending: server.pending.clone(),
        ready: server.ready,
        jupyter: session.jupyter.as_ref().ok().map(jupyter),
        gpus: session.gpus.as_ref().ok().map(|gpus| gpus.iter().map(gpu).collect()),
        cpu: session.cpu,
        holds: session.holds.iter().map(hold).collect(),
    }
}

fn hold(hold: &Hold) -> wire::Hold {
    let Hold { gpu, memory_used, kernel, notebook } = hold.clone();
    wire::Hold { gpu: gpu.0, memory_used, kernel, notebook }
}

fn jupyter(jupyter: &Jupyter) -> wire::Jupyter {
    let kernel = |kernel: &Kernel| wire::Kernel {
        id: kernel.id.clone(),
        state: kernel.state.clone().into(),
        last_activity: kernel.last_activity,
        connections: kernel.connections,
        notebook: kernel.notebook.clone(),
    };
    let terminal = |terminal: &Terminal| wire::Terminal {
        name: terminal.name.clone(),
        last_activity: terminal.last_activity,
    };
    wire::Jupyter {
        last_activity: jupyter.last_activity,
        connections: jupyter.connections,
        kernels: Some(jupyter.kernels.iter().map(kernel).collect()),
        terminals: Some(jupyter.terminals.iter().map(terminal).collect()),
    }
}

fn gpu(sample: &GpuSample) -> wire::Gpu {
    let share = |ratio: Option<Ratio>| ratio.map(Ratio::get);
    let engine = |engine: Engine| sample.engines.get(&engine).map(|ratio| share(*ratio));
    wire::Gpu {
        id: sample.id.0.clone(),
        model: sample.model.clone(),
        sm: share(sample.sm),
        dram: share(sample.dram),
        tensor: engine(Engine::Tensor),
        copy: engine(Engine::Copy),
        encode: engine(Engine::Encode),
        decode: engine(Engine::Decode),
        memory_used: sample.memory_used,
        processes: sample.processes,
        covered: Some(humantime::format_duration(sample.covered).to_string()),
        largest_gap: Some(humantime::format_duration(sample.largest_gap).to_string()),
        power: sample.power,
        past: sample.past.map(|past| wire::Past {
            since: past.since,
            after_gap: past.after_gap,
            last_active: past.last_active,
            unwatched: past.unwatched.as_secs_f64(),
            lag: past.lag.as_secs_f64(),
        }),
    }
}

/// Appends observations to a file.
#[derive(Debug)]
pub struct Recorder(std::fs::File);

impl Recorder {
    /// Opens a trace to append to; a new one gets its header.
    pub fn open(path: &std::path::Path) -> Result<Self, String> {
        let open = || {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
            if file.metadata()?.len() == 0 {
                writeln!(file, "{}", header("recorded by gpu-culler run"))?;
            }
            Ok::<_, std::io::Error>(Self(file))
        };
        open().map_err(|e| format!("the trace {} cannot be written ({e}); check --record", path.display()))
    }

    /// Appends one observation.
    pub fn append(&mut self, snapshot: &Snapshot) -> std::io::Result<()> {
        writeln!(self.0, "{}", observation(snapshot))
    }
}
