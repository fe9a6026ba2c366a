//! What cards draw. Like activity, it is not told of a MIG instance.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::*;

use crate::activity::now_us;
use crate::answer::{self, write};
use crate::whole;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetTotalEnergyConsumption(
    handle: nvmlDevice_t,
    energy: *mut c_ulonglong,
) -> nvmlReturn_t {
    whole("nvmlDeviceGetTotalEnergyConsumption", handle, |d| {
        let watts = d.watts.ok_or(answer::NOT_SUPPORTED)?;
        unsafe { write(energy, (watts * now_us() as f64 / 1000.0) as c_ulonglong) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetPowerUsage(handle: nvmlDevice_t, power: *mut c_uint) -> nvmlReturn_t {
    whole("nvmlDeviceGetPowerUsage", handle, |d| {
        let watts = d.watts.ok_or(answer::NOT_SUPPORTED)?;
        unsafe { write(power, (watts * 1000.0) as c_uint) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetEnforcedPowerLimit(
    handle: nvmlDevice_t,
    limit: *mut c_uint,
) -> nvmlReturn_t {
    whole("nvmlDeviceGetEnforcedPowerLimit", handle, |d| {
        let watts = d.power_limit.ok_or(answer::NOT_SUPPORTED)?;
        unsafe { write(limit, (watts * 1000.0) as c_uint) }
    })
}
