//! Return codes and out-parameters of a C interface.

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::*;

use crate::scene::Errors;

pub type Answer = Result<(), nvmlReturn_t>;

pub const NOT_SUPPORTED: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
pub const INSUFFICIENT_SIZE: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;

pub fn reply(answer: Answer) -> nvmlReturn_t {
    answer.err().unwrap_or(nvmlReturn_enum_NVML_SUCCESS)
}

/// Fails, or never returns, where the scene says so for this call.
pub fn as_told(errors: &Errors, call: &str) -> Answer {
    match errors.get(call).map(String::as_str) {
        None => Ok(()),
        Some("HANG") => loop {
            std::thread::park();
        },
        Some(error) => Err(code(error)),
    }
}

fn code(name: &str) -> nvmlReturn_t {
    const NAMES: [&str; 30] = [
        "UNINITIALIZED",
        "INVALID_ARGUMENT",
        "NOT_SUPPORTED",
        "NO_PERMISSION",
        "ALREADY_INITIALIZED",
        "NOT_FOUND",
        "INSUFFICIENT_SIZE",
        "INSUFFICIENT_POWER",
        "DRIVER_NOT_LOADED",
        "TIMEOUT",
        "IRQ_ISSUE",
        "LIBRARY_NOT_FOUND",
        "FUNCTION_NOT_FOUND",
        "CORRUPTED_INFOROM",
        "GPU_IS_LOST",
        "RESET_REQUIRED",
        "OPERATING_SYSTEM",
        "LIB_RM_VERSION_MISMATCH",
        "IN_USE",
        "MEMORY",
        "NO_DATA",
        "VGPU_ECC_NOT_SUPPORTED",
        "INSUFFICIENT_RESOURCES",
        "FREQ_NOT_SUPPORTED",
        "ARGUMENT_VERSION_MISMATCH",
        "DEPRECATED",
        "NOT_READY",
        "GPU_NOT_FOUND",
        "INVALID_STATE",
        "RESET_TYPE_NOT_SUPPORTED",
    ];
    let by_name = (1..).zip(NAMES).find(|(_, n)| *n == name).map(|(code, _)| code);
    by_name.or_else(|| name.parse().ok()).unwrap_or(nvmlReturn_enum_NVML_ERROR_UNKNOWN)
}

/// # Safety
/// `out` is null or writable.
pub unsafe fn write<T>(out: *mut T, value: T) -> Answer {
    if out.is_null() {
        return Err(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    unsafe { out.write(value) };
    Ok(())
}

/// # Safety
/// `out` is null or has room for `length` bytes.
pub unsafe fn text(value: &str, out: *mut c_char, length: c_uint) -> Answer {
    if out.is_null() {
        return Err(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    if value.len() >= length as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    unsafe {
        out.copy_from_nonoverlapping(value.as_ptr().cast(), value.len());
        out.add(value.len()).write(0);
    }
    Ok(())
}

/// Copies a list out; too little room answers with how much is needed.
///
/// # Safety
/// `count` is null or valid, and `out` is null or has room for `*count` items.
pub unsafe fn fill<T: Copy>(list: &[T], out: *mut T, count: *mut c_uint) -> Answer {
    if count.is_null() {
        return Err(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    }
    let room = if out.is_null() { 0 } else { (unsafe { *count }) as usize };
    unsafe { *count = list.len() as c_uint };
    if list.len() > room {
        return Err(INSUFFICIENT_SIZE);
    }
    if !list.is_empty() {
        unsafe { out.copy_from_nonoverlapping(list.as_ptr(), list.len()) };
    }
    Ok(())
}
