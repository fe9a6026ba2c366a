//! What the path of a control group says about whose it is. Only its beginning is to be trusted.

/// The groups of a path down to where a user's own systemd begins: below that, a user may name groups
/// as he likes, after somebody else's server for instance. Our own account is trusted.
pub fn kept_by_system(path: &str, own_uid: u32) -> impl Iterator<Item = &str> {
    path.split('/').take_while(move |group| {
        let user = group.strip_prefix("user@").and_then(|s| s.strip_suffix(".service"));
        user.is_none_or(|uid| uid.parse() == Ok(own_uid))
    })
}

/// The container that one group stands for: a bare id or Podman's `libpod-ID` (cgroupfs driver), or
/// `docker-ID.scope`, `cri-containerd-ID.scope`, `libpod-ID.scope` and the like (systemd driver).
pub fn container_id(group: &str) -> Option<&str> {
    let Some(scope) = group.strip_suffix(".scope") else {
        return Some(group.strip_prefix("libpod-").unwrap_or(group));
    };
    // Podman's monitor is no part of the container.
    let (runtime, id) = scope.rsplit_once('-')?;
    (runtime != "libpod-conmon").then_some(id)
}

/// The uid of the Kubernetes pod that a path belongs to: the outermost, where pods run in pods. Seen from
/// within a pod, the path of another one begins with steps up and may lack what both have in common.
pub fn pod_uid<'a>(groups: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut groups = groups.filter(|group| !group.is_empty()).peekable();
    let relative = groups.peek() == Some(&"..");
    let mut below = groups
        .skip_while(|group| *group == "..")
        .skip_while(move |group| !relative && !group.starts_with("kubepods"))
        .take_while(move |group| !relative || pod_part(group));
    below.find_map(|group| {
        // `pod1234-…` (cgroupfs driver) or `kubepods-burstable-pod1234_….slice` (systemd driver).
        let name = group.strip_suffix(".slice").unwrap_or(group);
        let uid = match name.strip_prefix("kubepods") {
            Some(rest) => rest.split_once("-pod")?.1,
            None => name.strip_prefix("pod")?,
        };
        Some(uid.replace('_', "-"))
    })
}

/// Whether a group may stand above a pod or be one.
fn pod_part(group: &str) -> bool {
    let above = ["kubepods", "burstable", "besteffort"];
    group.starts_with("pod") || above.iter().any(|name| group.starts_with(name))
}

/// The Slurm job that a path belongs to. Since Slurm 26.05 the groups have names that do not tell it,
/// unless `CgroupJobIdPaths=yes`.
pub fn slurm_job<'a>(groups: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_root = |group: &str| {
        let v1 = group == "slurm" || group.starts_with("slurm_");
        v1 || group == "slurmstepd.scope" || group.ends_with("_slurmstepd.scope")
    };
    let mut below = groups.skip_while(|group| !is_root(group)).skip(1);
    let first = below.next()?;
    let job = if first.starts_with("uid_") { below.next()? } else { first };
    job.strip_prefix("job_").filter(|id| !id.is_empty() && id.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4f1c2a9be07d4f1c2a9be07d4f1c2a9be07d4f1c2a9be07d4f1c2a9be07d4f1c";
    const UID: &str = "8ee4b1a0-2f6e-4a5d-9b0f-7a3c1f1e2d3c";

    #[test]
    fn every_runtime_names_its_container() {
        for group in ["", "docker-", "cri-containerd-", "crio-", "libpod-"] {
            let group = if group.is_empty() { ID.to_owned() } else { format!("{group}{ID}.scope") };
            assert_eq!(container_id(&group), Some(ID), "{group}");
        }
        assert_eq!(container_id(&format!("libpod-{ID}")), Some(ID), "Podman without systemd");
        assert_eq!(container_id(&format!("libpod-conmon-{ID}.scope")), None);
        assert_eq!(container_id("init.scope"), None);
    }

    #[test]
    fn a_pod_is_found_with_either_cgroup_driver() {
        let underscored = UID.replace('-', "_");
        for path in [
            format!("/kubepods/burstable/pod{UID}/{ID}"),
            format!("/kubepods/pod{UID}/{ID}"),
            format!(
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{underscored}.slice/crio-{ID}.scope"
            ),
            format!("/kubepods.slice/kubepods-pod{underscored}.slice/cri-containerd-{ID}.scope"),
            format!("/kubepods/besteffort/pod{UID}/{ID}/kubepods/podother/inner"),
            format!("/../../pod{UID}/{ID}"),
            format!("/../../../burstable/pod{UID}/{ID}"),
            format!(
                "/../../../kubepods-burstable.slice/kubepods-burstable-pod{underscored}.slice/crio-{ID}.scope"
            ),
            format!("/../../kubepods-besteffort-pod{underscored}.slice/cri-containerd-{ID}.scope"),
        ] {
            assert_eq!(pod_uid(path.split('/')).as_deref(), Some(UID), "{path}");
        }
        for path in
            ["/", "/system.slice/podman.service", "/user.slice/pod1234", "/kubepods.slice", "/../x/pod1234"]
        {
            assert_eq!(pod_uid(path.split('/')), None, "{path}");
        }
    }

    #[test]
    fn a_slurm_job_is_found_in_both_hierarchies() {
        for path in [
            "/slurm/uid_1000/job_4711/step_batch/task_0",
            "/slurm_node7/uid_1000/job_4711/step_0",
            "/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_0",
            "/system.slice/node7_slurmstepd.scope/job_4711/step_0/user/task_0",
        ] {
            assert_eq!(slurm_job(path.split('/')), Some("4711"), "{path}");
        }
        for path in [
            "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0", // a name that does not tell (26.05)
            "/system.slice/slurmd.service/job_4711",
            "/slurm/uid_1000/job_",
            "/slurm/uid_1000/job_47x",
            "/user.slice/job_4711",
            "/system.slice/slurmstepd.scope",
        ] {
            assert_eq!(slurm_job(path.split('/')), None, "{path}");
        }
    }
}
