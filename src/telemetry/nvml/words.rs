//! NVML's errors: what they mean for us, and in words for an admin.

use nvml_wrapper::error::NvmlError;

/// How far an error reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// NVML itself is of no more use until it is opened anew.
    Session,
    /// This card is gone until it is reset.
    Card,
    /// This one question was not answered.
    Answer,
}

/// NVML's "GPU not found" (28), which the wrapper has no name for.
const GPU_NOT_FOUND: u32 = 28;

/// How far `error` reaches.
pub fn loss(error: &NvmlError) -> Loss {
    match error {
        NvmlError::Uninitialized
        | NvmlError::DriverNotLoaded
        | NvmlError::LibRmVersionMismatch
        | NvmlError::LibraryNotFound => Loss::Session,
        NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::UnexpectedVariant(GPU_NOT_FOUND) => {
            Loss::Card
        }
        _ => Loss::Answer,
    }
}

/// What happened and what to do about it.
pub fn words(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(e) => format!(
            "NVIDIA's driver library could not be loaded ({e}). Install the NVIDIA driver, or give this \
             container the driver's `utility` capability; where there is no card, choose another `telemetry.source`"
        ),
        NvmlError::DriverNotLoaded => {
            "the NVIDIA kernel module is not loaded; see whether `nvidia-smi` works".to_owned()
        }
        NvmlError::LibRmVersionMismatch => "the driver was upgraded while it was loaded: library and \
            kernel module differ; reload the module or reboot"
            .to_owned(),
        NvmlError::NoPermission => {
            "access to the card is denied; see the rights of /dev/nvidia* and this service's device cgroup"
                .to_owned()
        }
        NvmlError::GpuLost | NvmlError::UnexpectedVariant(GPU_NOT_FOUND) => {
            "the card fell off the bus; look for Xid lines in the kernel log".to_owned()
        }
        NvmlError::ResetRequired => "the card needs a reset (`nvidia-smi -r`)".to_owned(),
        NvmlError::FailedToLoadSymbol(_) => "this driver does not offer the call".to_owned(),
        NvmlError::Unknown => "NVML reports an unknown error; in a container this comes after a \
            `systemctl daemon-reload` on the host: restart the container"
            .to_owned(),
        other => other.to_string(),
    }
}
