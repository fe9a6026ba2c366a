//! A browser as far as pages need one: cookies, forms, and no redirect that is not looked at.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use reqwest::header::{COOKIE, HeaderMap, LOCATION, SET_COOKIE};

use super::Service;

/// Somebody's browser.
pub struct Browser {
    http: reqwest::Client,
    address: SocketAddr,
    pub cookies: BTreeMap<String, String>,
    pub headers: BTreeMap<&'static str, String>,
}

/// What came back.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Page {
    pub fn location(&self) -> &str {
        self.headers.get(LOCATION).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// The secret of the forms on this page.
    pub fn csrf(&self) -> String {
        let (_, rest) = self.text.split_once("name=\"csrf\" value=\"").expect("there is a form");
        rest.split_once('"').unwrap().0.to_owned()
    }
}

impl Browser {
    pub fn new(address: SocketAddr) -> Self {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
        let http = http.build().unwrap();
        Self { http, address, cookies: BTreeMap::new(), headers: BTreeMap::new() }
    }

    pub async fn get(&mut self, path: &str) -> Page {
        let url = format!("http://{}/services/gpu-culler{path}", self.address);
        self.send(self.http.get(url)).await
    }

    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let url = format!("http://{}/services/gpu-culler{path}", self.address);
        self.send(self.http.post(url).form(fields)).await
    }

    pub async fn post_json(&mut self, path: &str, body: &serde_json::Value) -> Page {
        let url = format!("http://{}/services/gpu-culler{path}", self.address);
        self.send(self.http.post(url).json(body)).await
    }

    /// Asks for a page, goes to the Hub and back, and returns what the way back led to.
    pub async fn log_in(&mut self, service: &Service, user: &str, path: &str) -> Page {
        let sent = self.get(&format!("{path}/")).await;
        assert_eq!(sent.status, 302, "{}", sent.text);
        let back = self.come_back(sent.location(), user).await;
        assert_eq!(back.status, 302, "{}", back.text);
        assert!(service.hub.asked() > 0);
        back
    }

    /// Brings a code back for the state with which the Hub was called.
    pub async fn come_back(&mut self, sent_to: &str, user: &str) -> Page {
        let state = query(sent_to)["state"].clone();
        let user: String = url::form_urlencoded::byte_serialize(user.as_bytes()).collect();
        let code = format!("code-of-{user}.{state}");
        self.get(&format!("/oauth_callback?code={code}&state={state}")).await
    }

    async fn send(&mut self, mut request: reqwest::RequestBuilder) -> Page {
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies.join("; "));
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        for cookie in headers.get_all(SET_COOKIE) {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        Page { status, headers, text: answer.text().await.unwrap() }
    }
}

/// The arguments of an address.
pub fn query(address: &str) -> BTreeMap<String, String> {
    let (_, query) = address.split_once('?').unwrap();
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}
