//! The performance counters of Hopper and newer: two samples, and the means between them as doubles.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::*;

use crate::activity::{Engine, loads, mean, now_us};
use crate::answer::{Answer, NOT_SUPPORTED, reply, write};
use crate::scene::Device;
use crate::{SLOT, device};

const INVALID: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;

/// What a sample handle points to.
#[derive(Clone, Copy, Default)]
struct Sample {
    handle: usize,
    at_us: u64,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmQueryDeviceSupport(
    handle: nvmlDevice_t,
    out: *mut nvmlGpmSupport_t,
) -> nvmlReturn_t {
    device("nvmlGpmQueryDeviceSupport", handle, |d| {
        let supported = c_uint::from(d.gpm);
        unsafe { write(out, nvmlGpmSupport_t { version: 1, isSupportedDevice: supported }) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleAlloc(out: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    let sample = Box::into_raw(Box::<Sample>::default());
    reply(unsafe { write(out, sample.cast()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    if !sample.is_null() {
        drop(unsafe { Box::from_raw(sample.cast::<Sample>()) });
    }
    reply(Ok(()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleGet(handle: nvmlDevice_t, sample: nvmlGpmSample_t) -> nvmlReturn_t {
    device("nvmlGpmSampleGet", handle, |d| unsafe { take(d, handle as usize, sample) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmMigSampleGet(
    handle: nvmlDevice_t,
    gi: c_uint,
    sample: nvmlGpmSample_t,
) -> nvmlReturn_t {
    device("nvmlGpmMigSampleGet", handle, |d| {
        let slot = d.instances.iter().position(|i| i.as_ref().is_some_and(|i| i.gi == gi)).ok_or(INVALID)?;
        unsafe { take(d, handle as usize | (slot + 1) << SLOT, sample) }
    })
}

unsafe fn take(card: &Device, handle: usize, sample: nvmlGpmSample_t) -> Answer {
    if !card.gpm {
        return Err(NOT_SUPPORTED);
    }
    unsafe { write(sample.cast(), Sample { handle, at_us: now_us() }) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    let Some(request) = (unsafe { request.as_mut() }) else { return INVALID };
    let samples = [request.sample1, request.sample2].map(|s| unsafe { s.cast::<Sample>().as_ref().copied() });
    let [Some(first), Some(second)] = samples else { return INVALID };
    // The array has another length in other versions of the header: only its beginning may be touched.
    let metrics = request.metrics.iter_mut().take(request.numMetrics as usize);
    device("nvmlGpmMetricsGet", second.handle as nvmlDevice_t, |d| {
        for metric in metrics {
            let answer = value(d, metric.metricId, first.at_us, second.at_us);
            metric.nvmlReturn = reply(answer.map(|_| ()));
            metric.value = answer.unwrap_or_default();
        }
        Ok(())
    })
}

#[allow(non_upper_case_globals, reason = "the constants are C's")]
fn value(device: &Device, metric: c_uint, from_us: u64, to_us: u64) -> Result<f64, nvmlReturn_t> {
    if let Some(raw) = device.raw.gpm.get(&metric) {
        return Ok(raw.unwrap_or(f64::NAN));
    }
    let engine: Engine = match metric {
        nvmlGpmMetricId_t_NVML_GPM_METRIC_GRAPHICS_UTIL => |l| l.busy(),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL => |l| l.sm,
        nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL => |l| l.tensor,
        nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL => |l| l.dram,
        nvmlGpmMetricId_t_NVML_GPM_METRIC_NVDEC_0_UTIL => |l| l.decode,
        _ => return Err(NOT_SUPPORTED),
    };
    // Samples too close to each other give no sense.
    let apart = to_us.saturating_sub(from_us) >= 100_000;
    Ok(if apart { mean(&loads(device), engine, from_us, to_us) } else { f64::NAN })
}
