#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use super::*;
use crate::settings::Flags;

fn read(text: &str) -> Result<PrometheusSettings, String> {
    let whole = format!("[telemetry]\nsource = \"prometheus\"\n[telemetry.prometheus]\n{text}\n");
    let file: raw::File = toml::from_str(&whole).map_err(|error| error.message().to_owned())?;
    let policy =
        crate::settings::policy::policy(&file, &Flags::default()).map_err(|error| error.to_string())?;
    settings(file.telemetry.prometheus.as_ref(), &policy).map_err(|error| error.to_string())
}

const URL: &str = "url = \"https://thanos.example.org/api\"\n";

#[test]
fn an_address_is_enough() {
    let settings = read(URL).unwrap();
    assert_eq!(settings.login, Login::None);
    assert_eq!((settings.proxy, settings.method), (Proxy::Environment, Method::Post));
    assert_eq!((settings.collect_interval, settings.label_delay), (COLLECT, LABELS));
    assert_eq!(settings.history, Duration::from_secs(25 * 3600), "the longest limit and the grace after it");
}

#[test]
fn all_that_such_servers_need_can_be_said() {
    let settings = read(&format!(
        "{URL}token_file = \"/run/token\"\nmatchers = ['cluster=\"a\"', 'job=~\"dcgm.*\"']\nmethod = \"GET\"\nproxy = \"none\"\n\
         weak_utilization = true\nheaders = {{ X-Scope-OrgID = \"t1\" }}\nparams = {{ partial_response = \"false\" }}\n\
         metrics = {{ engine = \"gpu:engine\" }}\nlabels = {{ pod = \"kube_pod\" }}"
    ))
    .unwrap();
    assert_eq!(settings.login, Login::Token("/run/token".into()));
    assert_eq!(settings.matchers, ["cluster=\"a\"", "job=~\"dcgm.*\""]);
    assert_eq!(settings.headers, [("X-Scope-OrgID".to_owned(), "t1".to_owned())]);
    assert_eq!(settings.names.metric(Role::Engine), ["gpu:engine"]);
    assert_eq!(settings.names.labels[&Tag::Pod], "kube_pod");
    assert!(settings.weak_utilization && settings.method == Method::Get && settings.proxy == Proxy::None);
}

#[test]
fn what_cannot_be_meant_is_refused_with_the_remedy() {
    for (text, said) in [
        ("url = \"prometheus:9090\"", "is no address"),
        ("url = \"https://a:b@p.example.org\"", "username and password_file"),
        ("url = \"http://p:9090/api/v1/\"", "leave out /api/v1"),
        ("url = \"http://p\"\nusername = \"a\"", "needs password_file"),
        ("url = \"http://p\"\ncert_file = \"a\"", "needs key_file"),
        ("url = \"http://p\"\ntoken_file = \"a\"\nusername = \"b\"", "either token_file"),
        ("url = \"http://p\"\nmetrics = { engines = \"x\" }", "known here: engine, dram, sm"),
        ("url = \"http://p\"\nmetrics = { engine = \"x{}\" }", "is no name"),
        ("url = \"http://p\"\nlabels = { node = \"x\" }", "known here: uuid"),
        ("url = \"http://p\"\nmatchers = ['a=\"b\"} or up{c=\"']", "is no label matcher"),
        ("url = \"http://p\"\nmatchers = ['a=\"b\\']", "is no label matcher"),
        ("url = \"http://p\"\nparams = { query = \"up\" }", "by the service itself"),
        ("url = \"http://p\"\ntokenfile = \"a\"", "unknown field `tokenfile`"),
    ] {
        let refused = read(text).unwrap_err();
        assert!(refused.contains(said), "{text}: {refused}");
    }
}

#[test]
fn history_reaches_as_far_as_the_longest_limit_of_any_rule() {
    let rule = "[[rule]]\nname = \"slow\"\nmatch = { users = [\"a\"] }\ncard_unused_warn_after = \"7d\"";
    assert_eq!(read(&format!("{URL}{rule}")).unwrap().history, Duration::from_secs(169 * 3600));
}
