#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should stop at once")]

use std::io::Write;

use super::*;
use crate::policy::{BusyKernelAction, StopBudget};

fn hub() -> Environment {
    [("JUPYTERHUB_API_URL", "http://127.0.0.1:8081/hub/api"), ("JUPYTERHUB_API_TOKEN", "secret-token")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into_iter()
        .collect()
}

fn load(text: &str) -> Result<Settings, SettingsError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let sources = Sources { file: Some(file.path().to_owned()), environment: hub(), ..Sources::default() };
    sources.load()
}

#[test]
fn without_a_file_the_service_only_observes() {
    let settings = Sources { environment: hub(), ..Sources::default() }.load().unwrap();
    assert_eq!(settings.policy.mode, Mode::Observe);
    assert_eq!(settings.cycle, Duration::from_secs(60));
    assert_eq!(settings.policy.limits.warn_after, SignedDuration::from_hours(1));
    assert_eq!(settings.policy.safety.max_stops, StopBudget::Share(0.1));
}

#[test]
fn the_example_config_is_accepted_and_says_the_defaults() {
    let example = include_str!("../../deploy/gpu-culler.example.toml");
    let written = load(example).unwrap();
    let defaults = Sources { environment: hub(), ..Sources::default() }.load().unwrap();
    assert_eq!(written.policy.limits, defaults.policy.limits);
    assert_eq!(written.policy.safety, defaults.policy.safety);
    assert_eq!(written.policy.thresholds, defaults.policy.thresholds);
    assert_eq!(written.policy.keep, defaults.policy.keep);
    assert_eq!(written.policy.max_gap, defaults.policy.max_gap);
    assert_eq!(written.policy.warm_up, defaults.policy.warm_up);
    assert_eq!(written.cycle, defaults.cycle);
    assert_eq!(written.policy.mode, defaults.policy.mode);
}

/// Every mistake is refused with its line, the key and what to write instead.
#[test]
fn mistakes_are_refused_with_line_key_and_remedy() {
    let mail = "\n[mail]\nfrom = \"c@example.org\"\naddress = [\"user_info.email\"]\n";
    for (text, line, words) in [
        ("mode = \"observe\"\n[policy]\nwarn_afer = \"1h\"\n", 3, "did you mean `warn_after`?"),
        ("[polcy]\n", 1, "did you mean `policy`?"),
        ("\n\n[policy]\nwarn_after = 10\n", 4, "`policy.warn_after`: 10 has no unit"),
        ("[policy]\nwarn_after = \"10\"\n", 2, "`policy.warn_after`: 10 has no unit"),
        ("[policy]\nwarn_after = true\n", 2, "`policy.warn_after`"),
        ("[policy]\ngrace = \"90d\"\n", 2, "`policy.grace`"),
        ("[telemetry]\nsm_threshold = 1.5\n", 2, "`telemetry.sm_threshold`: 1.5 is no share"),
        ("[telemetry]\nsm_threshold = 0\n", 2, "`telemetry.sm_threshold`: 0 must be more than 0"),
        ("[telemetry]\nsource = \"prometheus\"\n", 2, "`telemetry.source`"),
        ("[telemetry]\nsource = \"nvidia\"\n", 2, "`telemetry.source`"),
        ("mode = \"enforce\"\n", 1, "add a [mail] section"),
        ("[intent]\nexpected_duration_cap = \"long\"\n", 2, "`intent.expected_duration_cap`"),
        ("[intent]\nteam = \" \"\n", 2, "`intent.team`: is empty"),
        ("[intent]\nteams = \"team\"\n", 2, "did you mean `team`?"),
        ("[demand]\npromql = \"vector(1)\"\n", 2, "add [demand.prometheus]"),
        ("[demand]\npromql = \"\"\n", 2, "`demand.promql`: write an expression"),
        (
            "[demand]\npromql = \"up\"\n[demand.prometheus]\nurl = \"ftp://p\"\n",
            4,
            "`demand.prometheus.url`: is no address",
        ),
        ("mode = \"kill\"\n", 1, "`mode`"),
        ("cycle = \"10m\"\n", 1, "`cycle`: must not be longer than telemetry.max_gap (3m)"),
        ("[policy]\naction = \"stop-cells\"\n", 2, "`policy.action`"),
        ("[policy]\nsave_wait = \"11m\"\n", 2, "`policy.save_wait`: at most \"10m\""),
        ("[policy]\nstop_hours = { from = \"08:00\", to = \"08:00\" }\n", 2, "for whole days leave both out"),
        ("[policy]\nbusy_kernel_action = \"kill\"\n", 2, "`policy.busy_kernel_action`"),
        ("[policy.when_waiting]\nwarn_after = \"2h\"\n", 2, "must not be longer than policy.warn_after (1h)"),
        ("[policy.when_waiting]\nmax_age = \"never\"\n[policy]\nmax_age = \"9h\"\n", 2, "must not be longer"),
        ("[policy.when_free]\nwarn_after = \"30m\"\n", 2, "must not be shorter than policy.warn_after (1h)"),
        ("[policy.when_free]\nmode = \"warn\"\n", 2, "unknown key `mode`"),
        ("[[rule]]\nname = \"a\"\nmatch = { user = [\"x\"] }\n", 3, "did you mean `users`?"),
        ("[[rule]]\nname = \"a\"\nmatch = { users = [\"[\"] }\n", 3, "is no pattern"),
        ("[policy]\nstop_hours = { days = \"workdays\" }\n", 2, "is not like \"Mon-Fri\""),
        ("[policy]\nwarn_after = \"1h\"\nwarn_after = \"2h\"\n", 3, "duplicate key"),
        (&format!("mode = \"warn\"{mail}server = \"smtp://u:hunter2@x\"\n"), 5, "`mail.server`"),
        (
            &format!("mode = \"warn\"{mail}server = \"smtp://x\"\npassword_file = \"/nowhere\"\n"),
            6,
            "cannot be read",
        ),
    ] {
        let error = load(text).expect_err(text);
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert!(!error.to_string().contains("hunter2"), "a password is repeated: {error}");
        assert_eq!(error.line, Some(line), "{text}: {error}");
    }
}

#[test]
fn intents_have_bare_names_and_three_days_unless_the_file_says_otherwise() {
    let read = |text: &str| load(text).unwrap();
    let defaults = read("");
    assert_eq!(defaults.policy.intents.cap, Some(SignedDuration::from_hours(72)));
    assert_eq!(defaults.hub.chosen, Some(defaults.policy.intents.keys.clone()));
    let written = read(
        "[intent]\nteam = \"example.org/cost-centre\"\nexpected_duration_cap = \"7d\"\nuser_options = false\n",
    );
    assert_eq!(written.policy.intents.keys.team, "example.org/cost-centre");
    assert_eq!(written.policy.intents.keys.project, "project");
    assert_eq!(
        (written.policy.intents.cap, written.hub.chosen),
        (Some(SignedDuration::from_hours(168)), None)
    );
    for (text, cap) in
        [("never", None), ("0", Some(SignedDuration::ZERO)), ("0s", Some(SignedDuration::ZERO))]
    {
        assert_eq!(read(&format!("[intent]\nexpected_duration_cap = \"{text}\"\n")).policy.intents.cap, cap);
    }
}

#[test]
fn how_many_wait_is_asked_of_its_own_server_or_of_that_of_the_cards() {
    let asked = |text: &str| load(text).unwrap().demand.map(|it| (it.server.url.to_string(), it.section));
    let cards = "[telemetry.prometheus]\nurl = \"http://cards:9090\"\n";
    let own = "[demand.prometheus]\nurl = \"http://own:9090\"\n";
    let demand = "[demand]\npromql = \"count(x) or vector(0)\"\n";
    assert_eq!(asked(cards), None);
    assert!(load(own).unwrap_err().to_string().contains("`demand.promql`: write an expression"));
    let (of_cards, of_own) = ("http://cards:9090/".to_owned(), "http://own:9090/".to_owned());
    assert_eq!(asked(&format!("{demand}{cards}")), Some((of_cards, "telemetry.prometheus")));
    assert_eq!(asked(&format!("{demand}{own}{cards}")), Some((of_own, "demand.prometheus")));
}

#[test]
fn a_config_that_is_not_there_is_named() {
    let sources =
        Sources { file: Some("/nowhere/culler.toml".into()), environment: hub(), ..Sources::default() };
    let error = sources.load().unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/culler.toml: the config file cannot be read"), "{error}");
}

#[test]
fn no_secret_shows_in_the_settings() {
    let settings = Sources { environment: hub(), ..Sources::default() };
    assert!(!format!("{settings:?}").contains("secret-token"));
    assert!(!format!("{:?}", settings.load().unwrap()).contains("secret-token"));
}

#[test]
fn a_service_answers_where_the_hub_looks_for_it() {
    let service = |url: &str| {
        let variables = [("JUPYTERHUB_SERVICE_PREFIX", "/services/g/"), ("JUPYTERHUB_SERVICE_URL", url)];
        let environment: Environment =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        environment.service().unwrap()
    };
    assert_eq!(service("http://127.0.0.1:10182").unwrap().listen.to_string(), "127.0.0.1:10182");
    assert_eq!(service("http://localhost:80/").unwrap().listen.to_string(), "127.0.0.1:80");
    assert_eq!(service("http://hub:10182").unwrap().listen.to_string(), "0.0.0.0:10182");
    assert!(service("http://127.0.0.1:0/").is_err());
    assert!(service("https://127.0.0.1:10182").unwrap_err().contains("write it like http://"));
    assert!(Environment::default().service().is_none());
}

fn with_flags(flags: Flags) -> Settings {
    Sources { environment: hub(), flags, ..Sources::default() }.load().unwrap()
}

#[test]
fn an_entry_for_the_idle_culler_stops_servers_without_a_card_as_before() {
    let flags = Flags { timeout: Some(3600), cull_every: Some(600), max_age: Some(0), ..Flags::default() };
    let settings = with_flags(flags);
    let cpu = settings.policy.cpu_servers.unwrap();
    assert_eq!((cpu.idle_after, cpu.max_age), (SignedDuration::from_hours(1), None));
    assert!(cpu.admins && cpu.default_servers && cpu.named_servers && !cpu.remove_named);
    assert_eq!(settings.policy.mode, Mode::Enforce);
    assert!(!settings.policy.can_warn, "cards stay where they are until there is mail");
    assert_eq!(settings.cycle, Duration::from_secs(180), "no pause is longer than max_gap");
}

#[test]
fn without_being_asked_servers_without_a_card_are_none_of_our_business() {
    assert_eq!(with_flags(Flags::default()).policy.cpu_servers, None);
    let only_switches = Flags { cull_admin_users: Some(false), concurrency: Some(0), ..Flags::default() };
    assert_eq!(with_flags(only_switches).policy.cpu_servers, None);
    assert!(load("[cpu_servers]\ncull = true\n").unwrap().policy.cpu_servers.is_some());
}

#[test]
fn users_are_deleted_only_where_somebody_asks_and_admins_only_where_that_is_said_too() {
    assert_eq!(with_flags(Flags { timeout: Some(600), ..Flags::default() }).cull_users, None);
    let asked = |admins| {
        let flags = Flags {
            cull_users: Some(true),
            cull_admin_users: admins,
            timeout: Some(600),
            ..Flags::default()
        };
        with_flags(flags).cull_users.unwrap()
    };
    assert_eq!(asked(None), CullUsers { inactive_after: SignedDuration::from_mins(10), admins: false });
    assert!(asked(Some(true)).admins && !asked(Some(false)).admins);
    let file = "[cpu_servers]\ncull = true\nidle_after = \"2h\"\ncull_users = true\n";
    let expected = CullUsers { inactive_after: SignedDuration::from_hours(2), admins: false };
    assert_eq!(load(file).unwrap().cull_users, Some(expected));
    let error = load("[cpu_servers]\ncull_users = true\n").unwrap_err().to_string();
    assert!(error.contains("cpu_servers.cull_users") && error.contains("cull = true"), "{error}");
}

#[test]
fn a_timeout_of_zero_is_refused_with_the_remedy() {
    let flags = Flags { timeout: Some(0), ..Flags::default() };
    let error = Sources { environment: hub(), flags, ..Sources::default() }.load().unwrap_err();
    assert!(error.to_string().contains("--timeout"), "{error}");
}

#[test]
fn limits_for_kernels_age_and_demand_are_taken_over() {
    let policy = load(
        r#"
        [policy]
        busy_kernel_limit = "9h"
        busy_kernel_action = "stop"
        max_age = "7d"
        max_age_even_if_busy = true
        stop_hours = { from = "22:00", to = "06:00" }
        [policy.when_waiting]
        warn_after = "20m"
        connected_warn_after = "1h"
        [policy.when_free]
        card_unused_warn_after = "never"
        [[rule]]
        name = "gentle"
        match = { users = ["x"] }
        warn_after = "2h"
        busy_kernel_action = "notice"
        max_age_even_if_busy = false
        "#,
    )
    .unwrap()
    .policy;
    let hours = SignedDuration::from_hours;
    let (usual, gentle) = (policy.limits_for(None, None), policy.limits_for(policy.rules.first(), Some(2)));
    assert_eq!((usual.busy_kernel_limit, usual.max_age), (Some(hours(9)), Some(hours(168))));
    assert_eq!((usual.busy_kernel_action, usual.max_age_even_if_busy), (BusyKernelAction::Stop, true));
    assert_eq!((gentle.busy_kernel_action, gentle.max_age_even_if_busy), (BusyKernelAction::Notice, false));
    assert_eq!((gentle.warn_after, gentle.connected_warn_after), (hours(2), Some(hours(1))));
    let waiting = policy.limits_for(None, Some(1));
    assert_eq!(
        (waiting.warn_after, waiting.card_unused_warn_after),
        (SignedDuration::from_mins(20), Some(hours(24)))
    );
    assert_eq!(policy.limits_for(None, Some(0)).card_unused_warn_after, None);
    let nights = policy.stop_hours.unwrap();
    assert!(nights.from > nights.to);
}

fn agents_of(section: &str) -> Result<Settings, SettingsError> {
    load(&format!("[telemetry]\nsource = \"agents\"\n{section}"))
}

#[test]
fn agents_are_named_one_by_one_or_by_a_name_with_many_addresses() {
    use crate::telemetry::agents::Whom;
    let whom = |section: &str| match agents_of(section).unwrap().source {
        Source::Agents(agents) => agents.whom,
        Source::Nvml(_) | Source::Prometheus(_) => panic!("the source is \"agents\""),
    };
    let urls = |all: &[&str]| all.iter().map(|url| Url::parse(url).unwrap()).collect::<Vec<_>>();
    let nodes = whom("[telemetry.agents]\nnodes = [\"https://gpu1:9410\", \"http://10.0.0.2:9410\"]\n");
    assert_eq!(nodes, Whom::Nodes(urls(&["https://gpu1:9410", "http://10.0.0.2:9410"])));
    let dns = whom("[telemetry.agents]\ndns = \"agents.example.org:9410\"\n");
    assert_eq!(dns, Whom::Dns(Url::parse("https://agents.example.org:9410").unwrap()));
}

#[test]
fn agents_that_cannot_be_asked_are_refused_with_line_and_remedy() {
    for (section, line, words) in [
        ("", 2, "needs [telemetry.agents]"),
        ("[telemetry.agents]\ntimeout = \"2s\"\n", 2, "needs [telemetry.agents] with nodes"),
        ("[telemetry.agents]\nnodes = [\"gpu1:9410\"]\n", 4, "write it like \"https://gpu1:9410\""),
        ("[telemetry.agents]\nnodes = [\"https://gpu1:9410/v1\"]\n", 4, "no address of an agent"),
        ("[telemetry.agents]\nnodes = [\"https://me:pw@gpu1:9410\"]\n", 4, "no address of an agent"),
        ("[telemetry.agents]\ndns = \"agents\"\n", 4, "write it like \"gpu-agents.example.org:9410\""),
        ("[telemetry.agents]\nnodes = [\"https://a:1\"]\ndns = \"a:1\"\n", 5, "nodes or dns, not both"),
        ("[telemetry.agents]\nnode = \"https://a:1\"\n", 4, "did you mean `nodes`?"),
    ] {
        let error = agents_of(section).unwrap_err();
        assert!(error.what.contains(words), "{section}: {error}");
        assert_eq!(error.line, Some(line), "{section}: {error}");
    }
}

fn agent(text: &str, flags: &AgentFlags) -> Result<AgentSettings, SettingsError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    Sources { file: Some(file.path().to_owned()), ..Sources::default() }.load_agent(flags)
}

#[test]
fn the_agent_needs_no_hub_and_listens_on_loopback_unless_it_has_a_token() {
    let none = AgentFlags::default();
    let settings = agent("", &none).unwrap();
    assert_eq!((settings.listen.to_string().as_str(), settings.token_file), ("127.0.0.1:9410", None));
    let open = "[agent]\nlisten = \"0.0.0.0:9410\"\n";
    let error = agent(open, &none).unwrap_err();
    assert!(error.what.contains("set agent.token_file") && error.line == Some(2), "{error}");
    let token_file = Some(PathBuf::from("/t"));
    let flags = AgentFlags { token_file: token_file.clone(), ..AgentFlags::default() };
    assert_eq!(agent(open, &flags).unwrap().token_file, token_file);
    let flags = AgentFlags { listen: Some("[::1]:1".to_owned()), ..AgentFlags::default() };
    assert_eq!(agent(open, &flags).unwrap().listen.to_string(), "[::1]:1", "a flag wins");
}

#[test]
fn mistakes_in_the_agents_settings_are_refused() {
    for (text, words) in [
        ("[agent]\nlisten = \"9410\"\n", "write it like \"0.0.0.0:9410\""),
        ("[agent]\ntls_cert_file = \"/c\"\n", "needs agent.tls_key_file"),
        ("[agent]\ntls_key_file = \"/k\"\n", "needs agent.tls_cert_file"),
        ("[agent]\ntoken = \"secret\"\n", "unknown key `token`"),
        ("[polcy]\n", "did you mean `policy`?"),
    ] {
        let error = agent(text, &AgentFlags::default()).unwrap_err();
        assert!(error.what.contains(words), "{text}: {error}");
    }
}
