//! What JupyterHub passes to a managed service in its environment.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use secrecy::SecretString;
use url::{Host, Url};

use crate::hub::{IdentityFiles, LoginSettings, TlsFiles};

/// The variables of a process, as a value.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

/// Names only: some of the values are secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(variables: T) -> Self {
        Self(variables.into_iter().collect())
    }
}

/// Where and under which path a managed service answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The path before everything, with a slash at both ends.
    pub prefix: String,
}

impl Environment {
    /// A variable; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A secret variable.
    pub fn secret(&self, name: &str) -> Option<SecretString> {
        self.get(name).map(|value| SecretString::from(value.to_owned()))
    }

    /// The certificates of `internal_ssl`.
    pub fn tls(&self) -> TlsFiles {
        let path = |name| self.get(name).map(PathBuf::from);
        let identity = path("JUPYTERHUB_SSL_KEYFILE").zip(path("JUPYTERHUB_SSL_CERTFILE"));
        TlsFiles {
            ca_file: path("JUPYTERHUB_SSL_CLIENT_CA"),
            identity: identity.map(|(key_file, cert_file)| IdentityFiles { key_file, cert_file }),
        }
    }

    /// The address people use, where the Hub is told its own (`c.JupyterHub.public_url`).
    pub fn public_url(&self) -> Option<Url> {
        let hub = Url::parse(self.get("JUPYTERHUB_PUBLIC_HUB_URL")?).ok()?;
        hub.join("/").ok()
    }

    /// Whether JupyterHub started this process.
    pub fn is_managed(&self) -> bool {
        self.get("JUPYTERHUB_SERVICE_NAME").is_some()
    }

    /// The absolute address of this service's pages, where it is known: the Hub tells it, or it follows
    /// from the `public` address that people use.
    pub fn page_url(&self, public: Option<&Url>) -> Option<Url> {
        let told = self.get("JUPYTERHUB_PUBLIC_URL").and_then(|text| Url::parse(text).ok());
        told.or_else(|| public?.join(self.get("JUPYTERHUB_SERVICE_PREFIX")?).ok())
    }

    /// How visitors of the pages log in.
    pub fn login(&self) -> Result<LoginSettings, String> {
        let needed = |name: &str| self.get(name).ok_or_else(|| format!("${name} is not set"));
        let name = needed("JUPYTERHUB_SERVICE_NAME")?;
        let prefix = self.get("JUPYTERHUB_SERVICE_PREFIX").unwrap_or_default();
        let scopes = self.get("JUPYTERHUB_OAUTH_ACCESS_SCOPES").map(serde_json::from_str);
        let or = |name: &str, default: String| self.get(name).map_or(default, str::to_owned);
        Ok(LoginSettings {
            api_url: Url::parse(needed("JUPYTERHUB_API_URL")?)
                .map_err(|e| format!("$JUPYTERHUB_API_URL is no address: {e}"))?,
            token: self.secret("JUPYTERHUB_API_TOKEN").ok_or("$JUPYTERHUB_API_TOKEN is not set")?,
            client_id: or("JUPYTERHUB_CLIENT_ID", format!("service-{name}")),
            callback: or("JUPYTERHUB_OAUTH_CALLBACK_URL", format!("{prefix}oauth_callback")),
            authorize: format!("{}hub/api/oauth2/authorize", self.hub_pages()),
            access_scopes: scopes
                .transpose()
                .map_err(|e| format!("$JUPYTERHUB_OAUTH_ACCESS_SCOPES does not parse: {e}"))?
                .unwrap_or_else(|| {
                    ["access:services".to_owned(), format!("access:services!service={name}")].into()
                }),
            tls: self.tls(),
        })
    }

    /// What stands before `hub/…` in the Hub's own pages: a path, or with subdomains its host, too.
    pub fn hub_pages(&self) -> String {
        let base = self.get("JUPYTERHUB_BASE_URL").unwrap_or("/");
        format!("{}{}/", self.get("JUPYTERHUB_HOST").unwrap_or_default(), base.trim_end_matches('/'))
    }

    /// Whether cookies of this service may not be set by a neighbour's host.
    pub fn cookies_are_bound_to_host(&self) -> bool {
        self.get("JUPYTERHUB_COOKIE_HOST_PREFIX_ENABLED") == Some("1")
    }

    /// Where to answer. Without a prefix there is no page: a service without `url` is given a
    /// `JUPYTERHUB_SERVICE_URL` all the same, and a bogus one.
    pub fn service(&self) -> Option<Result<Service, String>> {
        let prefix = self.get("JUPYTERHUB_SERVICE_PREFIX")?;
        Some(self.listen().map(|listen| Service { listen, prefix: prefix.to_owned() }))
    }

    fn listen(&self) -> Result<SocketAddr, String> {
        let text = self.get("JUPYTERHUB_SERVICE_URL").unwrap_or_default();
        let bad =
            |why: &str| format!("the service's `url` ({text}) {why}: write it like http://127.0.0.1:10182");
        let url = Url::parse(text).map_err(|_| bad("is no address"))?;
        if url.scheme() != "http" {
            // Under internal_ssl, too, the Hub speaks to a service as its `url` says. With https it cannot even
            // ask (JupyterHub 5 and 6 use a server's TLS context for it), and ends itself after half a minute.
            return Err(bad("is not plain http, which the Hub cannot check"));
        }
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or_else(|| bad("has no port"))?;
        let ip = match url.host() {
            Some(Host::Ipv4(ip)) => ip.into(),
            Some(Host::Ipv6(ip)) => ip.into(),
            Some(Host::Domain("localhost")) => std::net::Ipv4Addr::LOCALHOST.into(),
            // A name in the cluster's DNS is ours to answer for, on whatever address it has.
            Some(Host::Domain(_)) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            None => return Err(bad("has no host")),
        };
        Ok(SocketAddr::new(ip, port))
    }
}
