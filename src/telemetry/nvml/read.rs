//! The NVML calls of one poll. Nothing here judges what is read, and nothing is locked meanwhile,
//! since any of these calls may take for ever.

use std::collections::BTreeMap;
use std::time::Instant;

use nvml_wrapper::enum_wrappers::device::Sampling;
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessUtilizationSample;
use nvml_wrapper::{Device, Nvml};

use super::gpm::{GpmRead, Samples};
use super::mig;
use super::power::{Limit, draw};
use super::processes::{Holders, Listed};
use super::ring::{RingCursor, RingRead};
use super::signals::{Cursors, ProcessShare, Signals};
use super::words::{Loss, loss, words};
use crate::domain::{Engine, GpuId};
use crate::telemetry::power::Draw;

/// One card of the machine in one poll.
pub struct Card {
    /// Which.
    pub id: GpuId,
    /// Its number.
    pub index: u32,
    /// When it was read.
    pub at: Instant,
    /// Itself, or its MIG instances; or why it could not be asked.
    pub parts: Result<Vec<Part>, Unread>,
}

/// A device that a session can hold: a whole card or a MIG instance.
pub struct Part {
    /// Which.
    pub id: GpuId,
    /// The number of the MIG instance, where it is one and tells it.
    pub instance: Option<u32>,
    /// What it answered, or why it could not be asked.
    pub answers: Result<Answers, String>,
}

/// Why a card could not be asked.
pub struct Unread {
    /// In words.
    pub reason: String,
    /// Whether opening NVML anew may help.
    pub lost: bool,
}

/// What a device answered.
pub struct Answers {
    /// The product's name.
    pub model: Option<String>,
    /// Activity; an `Err` where NVML does not tell it.
    pub signals: Result<Signals, String>,
    /// Memory and who holds it.
    pub held: Held,
    /// What it draws.
    pub draw: Draw,
}

/// What of a device is held, and by whom.
pub struct Held {
    /// Bytes in use.
    pub memory_used: Option<u64>,
    /// The processes.
    pub holders: Holders,
}

/// What is remembered from poll to poll.
#[derive(Default)]
pub struct Memory {
    /// Where the reads of each device ended.
    pub cursors: BTreeMap<GpuId, Cursors>,
    /// The card last seen at each index: a lost card may not tell its UUID any more.
    order: Vec<GpuId>,
    lists: BTreeMap<GpuId, Listed>,
    limits: BTreeMap<GpuId, Limit>,
}

impl Memory {
    /// NVML was opened anew.
    pub fn reopened(&mut self) {
        self.cursors.values_mut().for_each(Cursors::reopened);
        self.lists.clear();
        self.limits.clear();
    }

    /// The process lists shall be read in the next poll, however fresh they are.
    pub fn forget_lists(&mut self) {
        self.lists.clear();
    }

    /// What of a device is held. The processes are listed only where that may have changed.
    pub fn held(&mut self, device: &Device<'_>, id: &GpuId, at: Instant) -> Result<Held, NvmlError> {
        let memory_used = soft(device.memory_info())?.ok().map(|memory| memory.used);
        let still = self.lists.get(id).and_then(|listed| listed.still(memory_used, at)).cloned();
        let holders = match still {
            Some(holders) => holders,
            None => {
                let listed = Listed::read(device, memory_used, at)?;
                let holders = listed.holders().clone();
                self.lists.insert(id.clone(), listed);
                holders
            }
        };
        Ok(Held { memory_used, holders })
    }
}

/// Reads every card. An error means that NVML has to be opened anew.
pub fn cards<'nvml>(
    nvml: &'nvml Nvml,
    memory: &mut Memory,
    samples: &mut Samples<'nvml>,
) -> Result<Vec<Card>, NvmlError> {
    samples.wait_apart();
    let count = nvml.device_count()?;
    let mut cards = Vec::new();
    for index in 0..count {
        cards.push(card(nvml, index, memory, samples)?);
    }
    let all_read = cards.iter().all(|card| card.parts.is_ok());
    if all_read {
        memory.order = cards.iter().map(|card| card.id.clone()).collect();
    }
    samples.all_read();
    Ok(cards)
}

fn card<'nvml>(
    nvml: &'nvml Nvml,
    index: u32,
    memory: &mut Memory,
    samples: &mut Samples<'nvml>,
) -> Result<Card, NvmlError> {
    let at = Instant::now();
    let mut id = memory.order.get(index as usize).cloned();
    let parts = nvml.device_by_index(index).and_then(|device| {
        let id = id.insert(GpuId(device.uuid()?));
        if mig::is_on(&device) {
            mig::instances(&device, id, at, memory, samples)
        } else {
            Ok(vec![whole(&device, id, at, memory, samples)?])
        }
    });
    let parts = match parts {
        Err(error) if loss(&error) == Loss::Session => return Err(error),
        parts => parts.map_err(|error| Unread { reason: words(&error), lost: loss(&error) == Loss::Card }),
    };
    let id = id.unwrap_or_else(|| GpuId(format!("{UNKNOWN}{index}")));
    Ok(Card { id, index, at, parts })
}

/// Stands in for the UUID of a device that never told it, so that it is not overlooked.
pub const UNKNOWN: &str = "unknown-at-index-";

fn whole<'nvml>(
    device: &Device<'nvml>,
    id: &GpuId,
    at: Instant,
    memory: &mut Memory,
    samples: &mut Samples<'nvml>,
) -> Result<Part, NvmlError> {
    let gpm = samples.read(device, None, id, at)?;
    let signals = signals(device, gpm, memory.cursors.entry(id.clone()).or_default())?;
    let model = soft(device.name())?.ok();
    let held = memory.held(device, id, at)?;
    let draw = draw(device, memory.limits.entry(id.clone()).or_default(), at)?;
    let answers = Answers { model, signals: Ok(signals), held, draw };
    Ok(Part { id: id.clone(), instance: None, answers: Ok(answers) })
}

/// Keeps an error that concerns one question only; others end the reading of the card.
pub fn soft<T>(result: Result<T, NvmlError>) -> Result<Result<T, String>, NvmlError> {
    match result {
        Err(error) if loss(&error) != Loss::Answer => Err(error),
        other => Ok(other.map_err(|error| words(&error))),
    }
}

fn signals(device: &Device<'_>, gpm: GpmRead, cursors: &mut Cursors) -> Result<Signals, NvmlError> {
    let rates = device.utilization_rates().map(|rates| (rates.gpu, rates.memory));
    let mut engines = BTreeMap::new();
    for (engine, read) in
        [(Engine::Encode, device.encoder_utilization()), (Engine::Decode, device.decoder_utilization())]
    {
        if matches!(read, Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_))) {
            continue;
        }
        engines.insert(engine, soft(read)?.map(|info| info.utilization));
    }
    let sm_ring = ring(device, Sampling::GpuUtilization, &mut cursors.sm)?;
    let dram_ring = ring(device, Sampling::MemoryUtilization, &mut cursors.dram)?;
    if cursors.sm.last().is_none() {
        cursors.share = None; // the same clock stamps the records of the processes
    }
    Ok(Signals {
        rates: soft(rates)?,
        sm_ring,
        dram_ring,
        shares: shares(device, &mut cursors.share)?,
        engines,
        gpm: match gpm {
            GpmRead::Pair(pair) => Some(pair),
            // Without a pair the ring speaks, which reaches less deep but does not lie.
            GpmRead::NotOffered | GpmRead::First | GpmRead::Failed(_) => None,
        },
    })
}

fn ring(device: &Device<'_>, kind: Sampling, cursor: &mut RingCursor) -> Result<RingRead, NvmlError> {
    let read = fetch(device, kind, cursor.last())?;
    if matches!(read, RingRead::Nothing) && cursor.last().is_some() {
        // "Nothing newer" is also what a clock that was set back looks like: see what there is at all.
        let all = fetch(device, kind, None)?;
        if cursor.clock_went_back(&all) {
            return Ok(all);
        }
    }
    Ok(read)
}

fn fetch(device: &Device<'_>, kind: Sampling, last: Option<u64>) -> Result<RingRead, NvmlError> {
    let samples = match device.samples(kind, last) {
        Err(NvmlError::NotFound) => return Ok(RingRead::Nothing),
        other => soft(other)?,
    };
    Ok(match samples {
        Ok(samples) if samples.is_empty() => RingRead::Nothing,
        Ok(samples) => RingRead::Samples(
            samples.into_iter().map(|sample| (sample.timestamp, percent(&sample.value))).collect(),
        ),
        Err(reason) => RingRead::Failed(reason),
    })
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a percentage is small; what is not is garbage, however rounded"
)]
fn percent(value: &SampleValue) -> f64 {
    match *value {
        SampleValue::F64(v) => v,
        SampleValue::U32(v) => f64::from(v),
        SampleValue::U64(v) => v as f64,
        SampleValue::I64(v) => v as f64,
    }
}

/// What single processes did since the last read.
fn shares(
    device: &Device<'_>,
    last: &mut Option<u64>,
) -> Result<Result<Vec<ProcessShare>, String>, NvmlError> {
    let records = match device.process_utilization_stats(*last) {
        Err(NvmlError::NotFound) => return Ok(Ok(vec![])),
        other => soft(other)?,
    };
    Ok(records.and_then(|records| plausible(records, last)))
}

/// Some drivers answer garbage here (percents in the millions): one impossible record spoils the reply.
/// That a process has ended since, or is not known to us, does not: the card worked.
fn plausible(
    records: Vec<ProcessUtilizationSample>,
    last: &mut Option<u64>,
) -> Result<Vec<ProcessShare>, String> {
    let is_newer = |r: &ProcessUtilizationSample| last.is_none_or(|t| r.timestamp > t);
    let mut newest = *last;
    let mut shares = Vec::new();
    for record in records.into_iter().filter(|r| r.pid != 0 && is_newer(r)) {
        let share = ProcessShare {
            sm: record.sm_util,
            dram: record.mem_util,
            encode: record.enc_util,
            decode: record.dec_util,
        };
        if [share.sm, share.dram, share.encode, share.decode].iter().any(|&p| p > 100) {
            return Err(format!("impossible utilization of process {}", record.pid));
        }
        newest = newest.max(Some(record.timestamp));
        shares.push(share);
    }
    *last = newest;
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pid: u32, timestamp: u64, sm_util: u32) -> ProcessUtilizationSample {
        ProcessUtilizationSample { pid, timestamp, sm_util, mem_util: 0, enc_util: 0, dec_util: 0 }
    }

    fn sm(shares: Result<Vec<ProcessShare>, String>) -> Result<Vec<u32>, String> {
        shares.map(|shares| shares.iter().map(|s| s.sm).collect())
    }

    #[test]
    fn only_records_newer_than_the_last_ones_count() {
        let mut last = None;
        assert_eq!(sm(plausible(vec![record(7, 100, 40)], &mut last)), Ok(vec![40]));
        let stale_and_new = vec![record(7, 100, 40), record(8, 101, 30), record(0, 102, 20)];
        assert_eq!(sm(plausible(stale_and_new, &mut last)), Ok(vec![30]));
        assert_eq!(last, Some(101));
    }

    #[test]
    fn one_impossible_record_spoils_the_reply() {
        let mut last = Some(1);
        let reply = vec![record(7, 100, 40), record(8, 101, 3_000_000)];
        assert_eq!(plausible(reply, &mut last), Err("impossible utilization of process 8".to_owned()));
        assert_eq!(last, Some(1));
    }
}
