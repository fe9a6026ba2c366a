//! Which kernels are meant, and why it may not be certain.

use super::name;
use crate::policy::{KernelDoubt, KernelName, Target};

/// Why it is not certain which kernels may be shut down.
pub(super) fn kernel_doubt(doubt: &KernelDoubt) -> String {
    match doubt {
        KernelDoubt::NotAsked => "the server's kernels cannot be asked".to_owned(),
        KernelDoubt::NoHolder => "it is not known which process holds the card".to_owned(),
        KernelDoubt::NoKernel => "a process that belongs to no kernel holds the card".to_owned(),
        KernelDoubt::NotListed(id) => {
            format!("the card is held for kernel {}, which the server does not know", name(id))
        }
        KernelDoubt::Busy(kernel) => format!("{} is busy", kernel_name(kernel)),
    }
}

/// What was shut down, and what not.
pub fn shut_down(target: &Target) -> String {
    match target {
        Target::Server => "the server".to_owned(),
        Target::Kernels(kernels) => {
            let names: Vec<String> = kernels.iter().map(kernel_name).collect();
            format!("the kernels of {} were shut down, the server stays", names.join(", "))
        }
    }
}

/// A kernel by its notebook, else by its id.
pub fn kernel_name(kernel: &KernelName) -> String {
    match &kernel.notebook {
        Some(notebook) => name(notebook),
        None => format!("kernel {}", name(&kernel.id)),
    }
}
