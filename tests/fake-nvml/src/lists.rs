//! The calls that answer with lists: samples, per-process records, processes.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::*;

use crate::activity::{self, Engine, living, loads, now_us, percent};
use crate::answer::{Answer, INSUFFICIENT_SIZE, NOT_SUPPORTED, fill, write};
use crate::scene::{Device, Load, Process};
use crate::{device, whole};

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the constants are C's")]
unsafe extern "C" fn nvmlDeviceGetSamples(
    handle: nvmlDevice_t,
    kind: nvmlSamplingType_t,
    last_seen: c_ulonglong,
    value_type: *mut nvmlValueType_t,
    count: *mut c_uint,
    out: *mut nvmlSample_t,
) -> nvmlReturn_t {
    whole("nvmlDeviceGetSamples", handle, |d| {
        let engine: Engine = match kind {
            nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES => Load::busy,
            nvmlSamplingType_enum_NVML_MEMORY_UTILIZATION_SAMPLES => |l| l.dram,
            nvmlSamplingType_enum_NVML_ENC_UTILIZATION_SAMPLES => |l| l.encode,
            nvmlSamplingType_enum_NVML_DEC_UTILIZATION_SAMPLES => |l| l.decode,
            _ => return Err(NOT_SUPPORTED),
        };
        if let Some(raw) = &d.raw.ring {
            return unsafe { raw_samples(raw, value_type, count, out) };
        }
        unsafe { write(value_type, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT)? };
        if out.is_null() {
            return unsafe { write(count, activity::RING as c_uint) };
        }
        let loads = loads(d);
        let samples: Vec<_> = activity::ring(d, now_us(), last_seen)
            .map(|(t, stamp)| nvmlSample_t {
                timeStamp: stamp,
                sampleValue: nvmlValue_t { uiVal: activity::sample(&loads, engine, t) },
            })
            .collect();
        if samples.is_empty() {
            return Err(nvmlReturn_enum_NVML_ERROR_NOT_FOUND);
        }
        unsafe { fill(&samples, out, count) }
    })
}

unsafe fn raw_samples(
    raw: &[(u64, u64)],
    value_type: *mut nvmlValueType_t,
    count: *mut c_uint,
    out: *mut nvmlSample_t,
) -> Answer {
    unsafe { write(value_type, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG)? };
    if out.is_null() {
        return unsafe { write(count, raw.len() as c_uint) };
    }
    let sample =
        |&(stamp, value)| nvmlSample_t { timeStamp: stamp, sampleValue: nvmlValue_t { ullVal: value } };
    let samples: Vec<_> = raw.iter().map(sample).collect();
    if samples.is_empty() {
        return Err(nvmlReturn_enum_NVML_ERROR_NOT_FOUND);
    }
    unsafe { fill(&samples, out, count) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    handle: nvmlDevice_t,
    out: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen: c_ulonglong,
) -> nvmlReturn_t {
    whole("nvmlDeviceGetProcessUtilization", handle, |d| {
        if out.is_null() {
            unsafe { write(count, 100)? };
            return Err(INSUFFICIENT_SIZE);
        }
        let records: Vec<_> = match &d.raw.shares {
            Some(raw) => raw.iter().map(raw_record).collect(),
            None => living(d).filter_map(|p| record(d, p, last_seen)).collect(),
        };
        if records.is_empty() {
            return Err(nvmlReturn_enum_NVML_ERROR_NOT_FOUND);
        }
        unsafe { fill(&records, out, count) }
    })
}

fn raw_record(&(pid, stamp, sm): &(u32, u64, u32)) -> nvmlProcessUtilizationSample_t {
    nvmlProcessUtilizationSample_t { pid, timeStamp: stamp, smUtil: sm, memUtil: 0, encUtil: 0, decUtil: 0 }
}

/// A process's mean since `last_seen` (at most over the ring), unless it is nothing.
fn record(device: &Device, process: &Process, last_seen: u64) -> Option<nvmlProcessUtilizationSample_t> {
    let ring = || activity::ring(device, now_us(), last_seen);
    let ((oldest, _), (newest, stamp)) = (ring().next()?, ring().last()?);
    let oldest = activity::begin(oldest);
    let loads: Vec<&Load> = process.load.iter().collect();
    let mean = |engine: Engine| percent(&loads, engine, oldest, newest);
    let record = nvmlProcessUtilizationSample_t {
        pid: process.pid,
        timeStamp: stamp,
        smUtil: mean(Load::busy),
        memUtil: mean(|l| l.dram),
        encUtil: mean(|l| l.encode),
        decUtil: mean(|l| l.decode),
    };
    (record.smUtil + record.memUtil + record.encUtil + record.decUtil > 0).then_some(record)
}

/// The process list of a card: those of the one sort that exist now.
unsafe fn processes(
    device: &Device,
    graphics: bool,
    count: *mut c_uint,
    out: *mut nvmlProcessInfo_t,
) -> Answer {
    let list: Vec<_> = living(device)
        .filter(|p| p.graphics == graphics)
        .map(|p| nvmlProcessInfo_t {
            pid: p.pid,
            usedGpuMemory: p.memory.unwrap_or(u64::MAX), // NVML_VALUE_NOT_AVAILABLE
            gpuInstanceId: u32::MAX,
            computeInstanceId: u32::MAX,
        })
        .collect();
    let list = if device.long_entries { misread(&list) } else { list };
    unsafe { fill(&list, out, count) }
}

/// What a reader of the usual entries finds where a driver writes entries that are eight bytes longer.
fn misread(list: &[nvmlProcessInfo_t]) -> Vec<nvmlProcessInfo_t> {
    let ids = |p: &nvmlProcessInfo_t| u64::from(p.gpuInstanceId) | u64::from(p.computeInstanceId) << 32;
    let words: Vec<u64> = list.iter().flat_map(|p| [p.pid.into(), p.usedGpuMemory, ids(p), 0]).collect();
    let entry = |w: &[u64]| nvmlProcessInfo_t {
        pid: w[0] as u32,
        usedGpuMemory: w[1],
        gpuInstanceId: w[2] as u32,
        computeInstanceId: (w[2] >> 32) as u32,
    };
    words.chunks_exact(3).take(list.len()).map(entry).collect()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    out: *mut nvmlProcessInfo_t,
) -> nvmlReturn_t {
    let name = "nvmlDeviceGetComputeRunningProcesses_v3";
    device(name, handle, |d| unsafe { processes(d, false, count, out) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    out: *mut nvmlProcessInfo_t,
) -> nvmlReturn_t {
    let name = "nvmlDeviceGetGraphicsRunningProcesses_v3";
    device(name, handle, |d| unsafe { processes(d, true, count, out) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    out: *mut nvmlProcessInfo_t,
) -> nvmlReturn_t {
    let name = "nvmlDeviceGetMPSComputeRunningProcesses_v3";
    device(name, handle, |_| unsafe { fill(&[], out, count) })
}
