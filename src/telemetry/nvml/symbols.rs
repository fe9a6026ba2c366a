//! What an old driver's library lacks, and what is off for lack of it.

use nvml_wrapper::Nvml;

/// Lists `CALL off` for each call that the library lacks.
macro_rules! lacking {
    ($nvml:expr, $($call:ident: $off:literal),+ $(,)?) => {{
        let lib = $nvml.lib();
        let mut lacking = Vec::new();
        $(if lib.$call.is_err() { lacking.push(concat!(stringify!($call), " is missing: ", $off)); })+
        lacking
    }};
}

/// The calls that the library lacks, each with what is off. The rest works.
pub fn lacking(nvml: &Nvml) -> Vec<&'static str> {
    lacking!(nvml,
        nvmlDeviceGetSamples: "no sample ring, so that only cards with performance counters can be called idle",
        nvmlDeviceGetUtilizationRates: "no utilization, so that a ring that ran dry proves nothing",
        nvmlDeviceGetProcessUtilization: "no activity by process",
        nvmlDeviceGetEncoderUtilization: "the video encoder is not watched",
        nvmlDeviceGetDecoderUtilization: "the video decoder is not watched",
        nvmlDeviceGetMemoryInfo_v2: "memory in use is not known",
        nvmlDeviceGetComputeRunningProcesses_v3: "it is not known who holds a card, so nobody's is taken back",
        nvmlDeviceGetGraphicsRunningProcesses_v3: "graphics processes are not listed",
        nvmlDeviceGetMPSComputeRunningProcesses_v3: "clients of MPS are not listed",
        nvmlDeviceGetTotalEnergyConsumption: "power is that of the moment",
        nvmlDeviceGetEnforcedPowerLimit: "power contradicts no reading",
        nvmlDeviceGetMigMode: "MIG is not recognized",
        nvmlDeviceGetMigDeviceHandleByIndex: "MIG instances are not read",
        nvmlDeviceGetGpuInstanceId: "MIG instances are unknown",
        nvmlGpmSampleGet: "no performance counters",
        nvmlGpmMetricsGet: "no performance counters",
        nvmlGpmMigSampleGet: "MIG instances are unknown",
    )
}
