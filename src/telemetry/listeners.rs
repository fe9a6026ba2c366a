//! Who listens on this host.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use procfs::net::{self, TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process};

/// Whether these processes listen at `address`, and nobody else does. No, where that cannot be seen.
///
/// A port is free for anybody once its server has ended, so a number alone says nothing.
pub fn are_alone_at(address: SocketAddr, pids: &[u32]) -> bool {
    let (Ok(v4), Ok(v6)) = (net::tcp(), net::tcp6()) else {
        return false;
    };
    let answers = |entry: &TcpNetEntry| {
        let (ip, port) = (entry.local_address.ip(), entry.local_address.port());
        entry.state == TcpState::Listen
            && port == address.port()
            && (ip == address.ip() || ip.is_unspecified())
    };
    let sockets: BTreeSet<u64> = v4.into_iter().chain(v6).filter(answers).map(|entry| entry.inode).collect();
    !sockets.is_empty() && sockets.is_subset(&pids.iter().flat_map(|pid| sockets_of(*pid)).collect())
}

fn sockets_of(pid: u32) -> Vec<u64> {
    let process = i32::try_from(pid).ok().and_then(|pid| Process::new(pid).ok());
    let files = process.and_then(|process| process.fd().ok()).into_iter().flatten();
    files
        .filter_map(|file| match file.ok()?.target {
            FDTarget::Socket(inode) => Some(inode),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_who_listens_is_found_there_and_only_while_it_does() {
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(bound) else {
                continue; // no IPv6 here
            };
            let port = listener.local_addr().unwrap().port();
            let here = SocketAddr::from(([127, 0, 0, 1], port));
            assert!(are_alone_at(here, &[std::process::id()]), "{bound}");
            assert!(!are_alone_at(here, &[1, u32::MAX]), "{bound}, asked of others");
            assert!(!are_alone_at(here, &[]));
            drop(listener);
            assert!(!are_alone_at(here, &[std::process::id()]), "{bound}, closed");
        }
    }

    #[test]
    fn another_address_of_this_host_is_another_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(!are_alone_at(SocketAddr::from(([127, 0, 0, 2], port)), &[std::process::id()]));
    }
}
