//! The names of the pods on this machine. The kubelet keeps a folder of logs for each, whose name tells
//! namespace, name and uid; only root can make one, and no right in the cluster is needed to read it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the kubelet keeps them.
pub const FOLDER: &str = "/var/log/pods";

/// A pod's namespace and name, by its uid.
pub type Pods = BTreeMap<String, (String, String)>;

/// The pods that have a folder here; none where there is no kubelet.
pub fn read(folder: &Path) -> Pods {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| named(entry.file_name().to_str()?)).collect()
}

fn named(folder: &str) -> Option<(String, (String, String))> {
    let mut parts = folder.split('_');
    let (namespace, name, uid) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = parts.next().is_none() && [namespace, name, uid].iter().all(|part| !part.is_empty());
    whole.then(|| (uid.to_owned(), (namespace.to_owned(), name.to_owned())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    #[test]
    fn pods_are_known_by_the_folders_of_their_logs() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["hub_jupyter-alice_8ee4b1a0-2f6e", "kube-system_etcd_0f3c", "lost+found", "a_b_c_d", "__"]
        {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let pods = read(folder.path());
        assert_eq!(pods.len(), 2);
        assert_eq!(pods["8ee4b1a0-2f6e"], ("hub".to_owned(), "jupyter-alice".to_owned()));
        assert!(read(&folder.path().join("no such folder")).is_empty());
    }
}
