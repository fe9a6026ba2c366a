//! The instances of a card that is shared out by MIG.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::*;

use crate::answer::{NOT_SUPPORTED, as_told, write};
use crate::{SLOT, device};

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(
    handle: nvmlDevice_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetMaxMigDeviceCount", handle, |d| unsafe {
        write(count, if d.mig { d.instances.len() as c_uint } else { 0 })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    handle: nvmlDevice_t,
    slot: c_uint,
    out: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    let name = "nvmlDeviceGetMigDeviceHandleByIndex";
    device(name, handle, |d| {
        let instance = d.instances.get(slot as usize).and_then(Option::as_ref);
        as_told(&instance.ok_or(nvmlReturn_enum_NVML_ERROR_NOT_FOUND)?.errors, name)?;
        unsafe { write(out, (handle as usize | (slot as usize + 1) << SLOT) as nvmlDevice_t) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetGpuInstanceId(handle: nvmlDevice_t, out: *mut c_uint) -> nvmlReturn_t {
    device("nvmlDeviceGetGpuInstanceId", handle, |d| {
        if handle as usize >> SLOT == 0 {
            return Err(NOT_SUPPORTED);
        }
        unsafe { write(out, d.gi) }
    })
}
