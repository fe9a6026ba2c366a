//! The instances of a card that MIG shares out. Each is a device of its own; the card itself then has
//! no activity that NVML would tell.

use std::collections::BTreeMap;
use std::time::Instant;

use nvml_wrapper::Device;
use nvml_wrapper::error::{NvmlError, nvml_try};

use super::gpm::{GpmRead, Samples};
use super::read::{Answers, Memory, Part, UNKNOWN, soft};
use super::ring::RingRead;
use super::signals::Signals;
use crate::domain::GpuId;
use crate::telemetry::power::Draw;

/// What to do where NVML is blind.
const BLIND: &str = "NVML does not tell what a MIG instance does on cards before Hopper: \
    have it measured by DCGM (dcgm-exporter), or keep such cards out of what is culled";

/// Whether the card is shared out.
pub fn is_on(card: &Device<'_>) -> bool {
    card.mig_mode().is_ok_and(|mode| mode.current == 1)
}

/// Reads every instance of a card. Slots may be empty anywhere.
pub fn instances<'nvml>(
    card: &Device<'nvml>,
    id: &GpuId,
    at: Instant,
    memory: &mut Memory,
    samples: &mut Samples<'nvml>,
) -> Result<Vec<Part>, NvmlError> {
    let mut parts = Vec::new();
    for slot in 0..card.mig_device_count()? {
        let instance = match card.mig_device_by_index(slot) {
            Err(NvmlError::NotFound | NvmlError::InvalidArg) => continue,
            other => soft(other.and_then(|instance| Ok((GpuId(instance.uuid()?), instance))))?,
        };
        parts.push(match instance {
            Ok((id, instance)) => part(card, &instance, id, at, memory, samples)?,
            Err(reason) => {
                let id = GpuId(format!("{UNKNOWN}{slot}-of-{id}"));
                Part { id, instance: None, answers: Err(reason) }
            }
        });
    }
    Ok(parts)
}

fn part<'nvml>(
    card: &Device<'nvml>,
    instance: &Device<'nvml>,
    id: GpuId,
    at: Instant,
    memory: &mut Memory,
    samples: &mut Samples<'nvml>,
) -> Result<Part, NvmlError> {
    let number = soft(gpu_instance(instance))?;
    let gpm = match &number {
        Ok(number) => samples.read(card, Some(*number), &id, at)?,
        Err(reason) => GpmRead::Failed(reason.clone()),
    };
    let held = memory.held(instance, &id, at)?;
    let model = match soft(instance.name())? {
        Ok(name) => Some(name),
        Err(_) => soft(card.name())?.ok(),
    };
    let answers = Answers { model, signals: signals(gpm), held, draw: Draw::default() };
    Ok(Part { id, instance: number.ok(), answers: Ok(answers) })
}

/// GPM is all there is for an instance: without a pair nothing is known.
fn signals(gpm: GpmRead) -> Result<Signals, String> {
    let pair = match gpm {
        GpmRead::NotOffered => return Err(BLIND.to_owned()),
        GpmRead::First => return Err("its counters have been read only once so far".to_owned()),
        GpmRead::Failed(reason) => return Err(reason),
        GpmRead::Pair(pair) => pair,
    };
    let none = || "a MIG instance has GPM only".to_owned();
    Ok(Signals {
        rates: Err(none()),
        sm_ring: RingRead::Failed(none()),
        dram_ring: RingRead::Failed(none()),
        shares: Err(none()),
        engines: BTreeMap::new(),
        gpm: Some(pair),
    })
}

/// The id that GPM knows an instance by. The wrapper lacks this call.
#[allow(unsafe_code, reason = "nvml-wrapper does not wrap nvmlDeviceGetGpuInstanceId")]
fn gpu_instance(instance: &Device<'_>) -> Result<u32, NvmlError> {
    let missing = || NvmlError::FailedToLoadSymbol("nvmlDeviceGetGpuInstanceId".to_owned());
    let get = instance.nvml().lib().nvmlDeviceGetGpuInstanceId.as_ref().map_err(|_| missing())?;
    let mut id = 0;
    // SAFETY: the handle belongs to the NVML it is used with, and `id` is writable.
    nvml_try(unsafe { get(instance.handle(), &mut id) })?;
    Ok(id)
}
