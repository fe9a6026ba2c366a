//! `libnvidia-ml.so.1` without a card: the part of NVML's C interface that gpu-culler calls, answered
//! from a scene file (`<library>.scene.json` beside the loaded library, or `$FAKE_NVML_SCENE`).
//!
//! Where the real library has habits that matter, it has them too: size queries, `NOT_FOUND` for
//! "nothing newer", the ten-second ring, integer percents, processes that ended are not listed.

mod activity;
mod answer;
mod gpm;
mod lists;
mod mig;
mod power;
mod scene;

use std::ffi::{CStr, c_char, c_uint};
use std::sync::atomic::{AtomicUsize, Ordering};

use nvml_wrapper_sys::bindings::*;

use activity::{Engine, living, loads, now_us, percent};
use answer::{Answer, reply, text, write};
use scene::{Device, Load, Scene};

static USERS: AtomicUsize = AtomicUsize::new(0);

/// Answers a call about one card unless NVML is not open, the card is gone or the scene says it fails.
fn device(name: &str, handle: nvmlDevice_t, f: impl FnOnce(&Device) -> Answer) -> nvmlReturn_t {
    system(name, |scene| {
        let device = behind(scene, handle).ok_or(nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST)?;
        answer::as_told(&device.errors, name)?;
        f(device)
    })
}

/// A handle is the card's place in the scene, from one on, and above that its instance's slot, likewise.
const SLOT: u32 = 16;

fn behind(scene: &Scene, handle: nvmlDevice_t) -> Option<&Device> {
    let (place, slot) = (handle as usize & ((1 << SLOT) - 1), handle as usize >> SLOT);
    let card = scene.devices.get(place.checked_sub(1)?)?;
    match slot.checked_sub(1) {
        None => Some(card),
        Some(slot) => card.instances.get(slot)?.as_ref(),
    }
}

/// A card with MIG on, and each of its instances, has no utilization.
fn whole(name: &str, handle: nvmlDevice_t, f: impl FnOnce(&Device) -> Answer) -> nvmlReturn_t {
    device(name, handle, |d| {
        if d.mig || handle as usize >> SLOT > 0 {
            return Err(answer::NOT_SUPPORTED);
        }
        f(d)
    })
}

fn system(name: &str, f: impl FnOnce(&Scene) -> Answer) -> nvmlReturn_t {
    let scene = scene::current();
    reply(answer::as_told(&scene.errors, name).and_then(|()| {
        if USERS.load(Ordering::SeqCst) == 0 {
            return Err(nvmlReturn_enum_NVML_ERROR_UNINITIALIZED);
        }
        f(&scene)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    let told = answer::as_told(&scene::current().errors, "nvmlInit_v2");
    if told.is_ok() {
        scene::note_users(USERS.fetch_add(1, Ordering::SeqCst) + 1);
    }
    reply(told)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    nvmlInit_v2()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    system("nvmlShutdown", |_| {
        scene::note_users(USERS.fetch_sub(1, Ordering::SeqCst) - 1);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint) -> nvmlReturn_t {
    system("nvmlSystemGetDriverVersion", |s| unsafe { text(&s.driver, out, length) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> nvmlReturn_t {
    system("nvmlDeviceGetCount_v2", |s| unsafe { write(count, s.devices.len() as c_uint) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: *mut nvmlDevice_t) -> nvmlReturn_t {
    let name = "nvmlDeviceGetHandleByIndex_v2";
    system(name, |s| {
        let device = s.devices.get(index as usize);
        let device = device.ok_or(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
        answer::as_told(&device.errors, name)?;
        unsafe { write(out, (index as usize + 1) as nvmlDevice_t) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, out: *mut nvmlDevice_t) -> nvmlReturn_t {
    system("nvmlDeviceGetHandleByUUID", |s| {
        if uuid.is_null() {
            return Err(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        }
        let wanted = unsafe { CStr::from_ptr(uuid) }.to_bytes();
        let place = s.devices.iter().position(|d| d.uuid.as_bytes() == wanted);
        let place = place.ok_or(nvmlReturn_enum_NVML_ERROR_NOT_FOUND)?;
        unsafe { write(out, (place + 1) as nvmlDevice_t) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetUUID(
    handle: nvmlDevice_t,
    out: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetUUID", handle, |d| unsafe { text(&d.uuid, out, length) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetName(
    handle: nvmlDevice_t,
    out: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetName", handle, |d| unsafe { text(&d.name, out, length) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetIndex(handle: nvmlDevice_t, out: *mut c_uint) -> nvmlReturn_t {
    let index = (handle as usize).saturating_sub(1) as c_uint;
    device("nvmlDeviceGetIndex", handle, |_| unsafe { write(out, index) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMinorNumber(handle: nvmlDevice_t, out: *mut c_uint) -> nvmlReturn_t {
    let minor = (handle as usize).saturating_sub(1) as c_uint;
    device("nvmlDeviceGetMinorNumber", handle, |_| unsafe { write(out, minor) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMigMode(
    handle: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetMigMode", handle, |d| unsafe {
        write(current, c_uint::from(d.mig))?;
        write(pending, c_uint::from(d.mig))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(
    handle: nvmlDevice_t,
    out: *mut nvmlMemory_v2_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetMemoryInfo_v2", handle, |d| {
        let used: u64 = living(d).filter_map(|p| p.memory).sum();
        let free = d.memory_total.saturating_sub(used);
        let version = (size_of::<nvmlMemory_v2_t>() | 2 << 24) as c_uint;
        let memory = nvmlMemory_v2_t { version, total: d.memory_total, reserved: 0, free, used };
        unsafe { write(out, memory) }
    })
}

/// Percent over the last second.
fn last_second(device: &Device, engine: Engine) -> c_uint {
    let now = now_us();
    percent(&loads(device), engine, now - 1_000_000, now)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetUtilizationRates(
    handle: nvmlDevice_t,
    out: *mut nvmlUtilization_t,
) -> nvmlReturn_t {
    whole("nvmlDeviceGetUtilizationRates", handle, |d| {
        let counted = || (last_second(d, Load::busy), last_second(d, |l| l.dram));
        let (gpu, memory) = d.raw.rates.unwrap_or_else(counted);
        unsafe { write(out, nvmlUtilization_t { gpu, memory }) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetEncoderUtilization(
    handle: nvmlDevice_t,
    percent: *mut c_uint,
    period_us: *mut c_uint,
) -> nvmlReturn_t {
    whole("nvmlDeviceGetEncoderUtilization", handle, |d| unsafe {
        write(percent, d.raw.encode.unwrap_or_else(|| last_second(d, |l| l.encode)))?;
        write(period_us, 1_000_000)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetDecoderUtilization(
    handle: nvmlDevice_t,
    percent: *mut c_uint,
    period_us: *mut c_uint,
) -> nvmlReturn_t {
    whole("nvmlDeviceGetDecoderUtilization", handle, |d| unsafe {
        write(percent, last_second(d, |l| l.decode))?;
        write(period_us, 1_000_000)
    })
}
