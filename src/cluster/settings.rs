//! Which cluster, and what of it.

use std::path::PathBuf;
use std::time::Duration;

use globset::GlobSet;

/// How the cluster is reached and what is watched.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The kubeconfig; absent: the pod's own service account, else the usual one (`$KUBECONFIG`, `~/.kube/config`).
    pub kubeconfig: Option<PathBuf>,
    /// Which of its contexts.
    pub context: Option<String>,
    /// Where pods are watched.
    pub namespaces: Namespaces,
    /// Which of the resources that pods ask for are cards.
    pub cards: GlobSet,
    /// How long a watch lasts before it is renewed, which proves that the server still answers.
    pub renew: Duration,
    /// After how long without a word pods count as unknown.
    pub patience: Duration,
}

/// Where pods are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Where this process runs, or the context's.
    Own,
    /// These.
    Named(Vec<String>),
    /// Everywhere.
    All,
}

impl ClusterSettings {
    /// What NVIDIA's, AMD's and Intel's device plugins call cards and parts of them.
    pub const CARDS: [&'static str; 6] = [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-*",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
    ];

    /// A watch that says nothing for this long is renewed: four small requests a minute.
    pub const RENEW: Duration = Duration::from_secs(15);

    /// Two watches: one may fail while a control plane restarts. Longer, and pods would be believed that may long be
    /// gone; shorter, and each such restart would make sessions unknown for a cycle.
    pub const PATIENCE: Duration = Duration::from_secs(30);
}
