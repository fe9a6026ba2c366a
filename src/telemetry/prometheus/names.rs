//! What metrics and labels are called. dcgm-exporter has had several names for the same thing, and Prometheus
//! renames labels that clash with those of the target; an admin may have chosen others.

use std::collections::BTreeMap;

use super::answer::Labels;

/// What a metric tells of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Share of time in which any engine worked: one warp shows in it.
    Engine,
    /// Share of cycles in which memory moved data.
    Dram,
    /// Share of the SMs that had work; not exported by default.
    Sm,
    /// Tensor cores.
    Tensor,
    /// The driver's utilization, in percent: one glance for each collect interval.
    Utilization,
    /// The same of memory.
    MemoryUtilization,
    /// Video encoder, in percent.
    Encoder,
    /// Video decoder, in percent.
    Decoder,
    /// Energy used since the driver was loaded: it always grows, so it shows that readings are fresh.
    Energy,
    /// Power drawn; the same where energy is not told.
    Power,
    /// Memory held, in MiB.
    MemoryUsed,
}

impl Role {
    /// How many there are.
    pub const COUNT: usize = 11;

    /// All of them.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Engine,
        Self::Dram,
        Self::Sm,
        Self::Tensor,
        Self::Utilization,
        Self::MemoryUtilization,
        Self::Encoder,
        Self::Decoder,
        Self::Energy,
        Self::Power,
        Self::MemoryUsed,
    ];

    /// Its key in the settings.
    pub fn key(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Dram => "dram",
            Self::Sm => "sm",
            Self::Tensor => "tensor",
            Self::Utilization => "utilization",
            Self::MemoryUtilization => "memory_utilization",
            Self::Encoder => "encoder",
            Self::Decoder => "decoder",
            Self::Energy => "energy",
            Self::Power => "power",
            Self::MemoryUsed => "memory_used",
        }
    }

    /// The names it has had, oldest first.
    fn known(self) -> &'static [&'static str] {
        match self {
            Self::Engine => &["DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"],
            Self::Dram => &["DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO"],
            Self::Sm => &["DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"],
            Self::Tensor => &["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"],
            Self::Utilization => &["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO"],
            Self::MemoryUtilization => &["DCGM_FI_DEV_MEM_COPY_UTIL"],
            Self::Encoder => &["DCGM_FI_DEV_ENC_UTIL"],
            Self::Decoder => &["DCGM_FI_DEV_DEC_UTIL"],
            Self::Energy => &["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"],
            Self::Power => &["DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS"],
            Self::MemoryUsed => &["DCGM_FI_DEV_FB_USED"],
        }
    }

    /// The line of the exporter's CSV file that makes it appear.
    pub fn csv(self) -> String {
        let what = match self {
            Self::Engine => "gauge, Ratio of time the graphics engine is active.",
            Self::Dram => "gauge, Ratio of cycles the device memory interface is active.",
            Self::Sm => "gauge, The ratio of cycles an SM has at least 1 warp assigned.",
            Self::Tensor => "gauge, Ratio of cycles the tensor (HMMA) pipe is active.",
            Self::Utilization => "gauge, GPU utilization (in %).",
            Self::MemoryUtilization => "gauge, Memory utilization (in %).",
            Self::Encoder => "gauge, Encoder utilization (in %).",
            Self::Decoder => "gauge, Decoder utilization (in %).",
            Self::Energy => "counter, Total energy consumption since boot (in mJ).",
            Self::Power => "gauge, Power draw (in W).",
            Self::MemoryUsed => "gauge, Framebuffer memory used (in MiB).",
        };
        format!("{}, {what}", self.known()[0])
    }
}

/// What a label tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// The card.
    Uuid,
    /// The MIG instance.
    Instance,
    /// The product's name.
    Model,
    /// The machine.
    Host,
    /// The pod that holds it.
    Pod,
    /// That pod's namespace.
    Namespace,
    /// The batch job that holds it.
    Job,
}

impl Tag {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Uuid, Self::Instance, Self::Model, Self::Host, Self::Pod, Self::Namespace, Self::Job];

    /// Its key in the settings.
    pub fn key(self) -> &'static str {
        match self {
            Self::Uuid => "uuid",
            Self::Instance => "instance",
            Self::Model => "model",
            Self::Host => "host",
            Self::Pod => "pod",
            Self::Namespace => "namespace",
            Self::Job => "job",
        }
    }

    fn known(self) -> &'static [&'static str] {
        match self {
            Self::Uuid => &["UUID", "uuid", "gpu_uuid"],
            Self::Instance => &["GPU_I_ID", "gpu_i_id"],
            Self::Model => &["modelName", "model_name"],
            Self::Host => &["Hostname", "hostname", "exported_hostname", "instance"],
            Self::Pod => &["pod", "pod_name"],
            Self::Namespace => &["namespace", "pod_namespace"],
            Self::Job => &["hpc_job"],
        }
    }
}

/// The names in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Metrics that the admin named.
    pub metrics: BTreeMap<Role, String>,
    /// Labels that the admin named.
    pub labels: BTreeMap<Tag, String>,
}

impl Names {
    /// The names that a metric may have.
    pub fn metric(&self, role: Role) -> Vec<&str> {
        self.metrics.get(&role).map_or_else(|| role.known().to_vec(), |name| vec![name.as_str()])
    }

    /// The range selector of some metrics, with the admin's own matchers.
    pub fn selector(&self, roles: &[Role], matchers: &[String], range_ms: i64) -> String {
        let names: Vec<&str> = roles.iter().flat_map(|role| self.metric(*role)).collect();
        let mut inside = match names[..] {
            [only] => vec![format!("__name__=\"{only}\"")],
            _ => vec![format!("__name__=~\"{}\"", names.join("|"))],
        };
        inside.extend(matchers.iter().cloned());
        format!("{{{}}}[{range_ms}ms]", inside.join(","))
    }

    /// What a series tells, by its name.
    pub fn role(&self, labels: &Labels) -> Option<Role> {
        let name = labels.get("__name__")?.as_str();
        Role::ALL.into_iter().find(|role| self.metric(*role).contains(&name))
    }

    /// A label's value; an empty one is none.
    pub fn tag<'a>(&self, tag: Tag, labels: &'a Labels) -> Option<&'a str> {
        self.tagged(tag, labels).map(|(_, value)| value)
    }

    /// The same with the label's name.
    pub fn tagged<'a>(&self, tag: Tag, labels: &'a Labels) -> Option<(&'a str, &'a str)> {
        let named = self.labels.get(&tag).map(String::as_str);
        let known = if named.is_some() { &[][..] } else { tag.known() };
        let mut found = named.iter().chain(known).filter_map(|name| labels.get_key_value(*name));
        found.find(|(_, value)| !value.is_empty()).map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether Prometheus renamed the exporter's labels since they clashed with the target's own
    /// (`honorLabels: false`): `pod` then is the exporter's own pod.
    pub fn renamed(labels: &Labels) -> bool {
        labels.contains_key("exported_pod") || labels.contains_key("exported_namespace")
    }

    /// Who holds the card. Where labels were renamed anywhere, `pod` never is a holder, also in a series
    /// that has no `exported_pod`: that one simply has no holder.
    pub fn workload(&self, labels: &Labels, renamed: bool) -> Option<Workload> {
        if let Some(job) = self.tag(Tag::Job, labels) {
            return Some(Workload::Job(job.to_owned()));
        }
        let value = |tag: Tag, other: &str| {
            let value = match renamed && !self.labels.contains_key(&tag) {
                true => labels.get(other).map(String::as_str).filter(|value| !value.is_empty()),
                false => self.tag(tag, labels),
            };
            value.map(str::to_owned)
        };
        let name = value(Tag::Pod, "exported_pod").filter(|name| !name.contains("dcgm-exporter"))?;
        let namespace = value(Tag::Namespace, "exported_namespace").unwrap_or_default();
        Some(Workload::Pod { namespace, name })
    }
}

/// What holds a card.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// A pod.
    Pod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A batch job.
    Job(String),
}

impl std::fmt::Display for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pod { namespace, name } => write!(f, "pod {namespace}/{name}"),
            Self::Job(id) => write!(f, "job {id}"),
        }
    }
}

#[cfg(test)]
mod tests;
