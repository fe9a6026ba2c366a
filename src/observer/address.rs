//! Where a single-user server is asked. Its own process may claim anything, so that of its claim only a
//! port of this host counts. Of a pod the cluster tells the address.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use url::{Host, Url};

use super::Pods;
use crate::domain::Server;
use crate::telemetry::{ProcessTable, listeners, process_table};

/// An address to ask, and the way there.
#[derive(Debug)]
pub(super) struct Address {
    /// The server's root.
    pub base: Url,
    /// Whether the Hub's proxy stands between, which stamps what passes it as somebody's activity.
    pub through_proxy: bool,
}

/// The server's own address where its processes listen there, else its path below the public one.
pub(super) fn of(
    server: &Server,
    table: Option<&ProcessTable>,
    pods: &Pods,
    public: Option<&Url>,
) -> Option<Address> {
    let own = direct(server, table).or_else(|| below(at(pods.address(server)?)?, &server.path));
    let direct = own.map(|base| Address { base, through_proxy: false });
    let proxied = || Some(Address { base: below(public?.clone(), &server.path)?, through_proxy: true });
    direct.or_else(proxied)
}

fn direct(server: &Server, table: Option<&ProcessTable>) -> Option<Url> {
    // A process of another machine has no address here.
    let root = server.spawner.pid.filter(|_| server.spawner.host.is_none())?;
    let claimed = process_table::service_url(root)?;
    verified(&claimed, &table?.subtree(root), &server.path)
}

fn verified(claimed: &str, processes: &[u32], path: &str) -> Option<Url> {
    let claim = Claim::read(claimed)?;
    below(claim.url().filter(|_| listeners::are_alone_at(claim.0, processes))?, path)
}

/// What is believed of `JUPYTERHUB_SERVICE_URL`.
///
/// A server that speaks TLS (`internal_ssl`) lets only the Hub and its proxy in, which hold the certificates
/// for it: it is asked through the proxy.
#[derive(Debug, PartialEq)]
struct Claim(SocketAddr);

impl Claim {
    fn read(claimed: &str) -> Option<Self> {
        let url = Url::parse(claimed).ok().filter(|url| url.scheme() == "http")?;
        let ip = match url.host()? {
            Host::Domain("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Host::Domain(_) => return None,
            Host::Ipv4(ip) => IpAddr::V4(ip),
            Host::Ipv6(ip) => IpAddr::V6(ip),
        };
        // "All addresses" is where to listen; this host's own is where to ask.
        let ip = if ip.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip };
        let at = SocketAddr::new(ip, url.port_or_known_default()?);
        ip.is_loopback().then_some(Self(at))
    }

    fn url(&self) -> Option<Url> {
        at(self.0)
    }
}

fn at(address: SocketAddr) -> Option<Url> {
    Url::parse(&format!("http://{address}")).ok()
}

/// `base` with the Hub's path, which a Hub always starts with a slash.
fn below(mut base: Url, path: &str) -> Option<Url> {
    base.set_path(path);
    path.starts_with('/').then_some(base)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use std::net::TcpListener;
    use std::process;

    use super::*;

    const PATH: &str = "/user/b%20ob@x.org/";

    fn asked(claimed: &str) -> Option<String> {
        below(Claim::read(claimed)?.url()?, PATH).map(String::from)
    }

    #[test]
    fn of_a_claim_only_the_port_on_this_host_counts() {
        for (claimed, base) in [
            ("http://127.0.0.1:36963/user/alice/", "http://127.0.0.1:36963"),
            ("http://127.9.9.9:1/", "http://127.9.9.9:1"),
            ("http://0.0.0.0:8888/user/alice/", "http://127.0.0.1:8888"),
            ("http://[::]:8888", "http://127.0.0.1:8888"),
            ("http://[::1]:8888/", "http://[::1]:8888"),
            ("http://localhost:8888/x", "http://127.0.0.1:8888"),
            ("http://eve:pw@127.0.0.1:8888/services/eve/?a=b#c", "http://127.0.0.1:8888"),
        ] {
            assert_eq!(asked(claimed), Some(format!("{base}{PATH}")), "{claimed}");
        }
    }

    #[test]
    fn a_claim_to_be_elsewhere_is_ignored() {
        for claimed in [
            "http://evil.example:80/user/alice/",
            "http://192.0.2.7:8888/",
            "http://[2001:db8::1]:8888/",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "http://127.0.0.1@evil.example/",
            "file:///127.0.0.1/",
            "ftp://127.0.0.1/",
            "http://:8888/",
            "https://127.0.0.1:8888/user/alice/",
            "",
        ] {
            assert_eq!(Claim::read(claimed), None, "{claimed}");
        }
    }

    #[test]
    fn a_port_that_another_process_has_is_not_the_servers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let claimed = format!("http://{}/", listener.local_addr().unwrap());
        let base = verified(&claimed, &[process::id()], PATH).unwrap();
        assert_eq!(base.as_str(), format!("http://{}{PATH}", listener.local_addr().unwrap()));
        assert_eq!(verified(&claimed, &[1], PATH), None);
    }

    #[test]
    fn a_path_never_leads_to_another_host() {
        let public = || Url::parse("https://hub.example.org/").unwrap();
        let asked = |path| below(public(), path).map(String::from);
        assert_eq!(asked("/user/alice/").as_deref(), Some("https://hub.example.org/user/alice/"));
        assert_eq!(asked(""), None);
        assert_eq!(asked("http://evil.example/"), None);
        assert_eq!(below(public(), "//evil.example/").unwrap().host_str(), Some("hub.example.org"));
    }
}
