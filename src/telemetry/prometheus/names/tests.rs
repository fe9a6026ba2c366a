use super::*;

fn labels(all: &[(&str, &str)]) -> Labels {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn pod(namespace: &str, name: &str) -> Option<Workload> {
    Some(Workload::Pod { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[test]
fn old_names_and_those_of_dcgm_4_6_are_the_same_metric() {
    let role = |name| Names::default().role(&labels(&[("__name__", name)]));
    assert_eq!(role("DCGM_FI_PROF_GR_ENGINE_ACTIVE"), Some(Role::Engine));
    assert_eq!(role("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"), Some(Role::Engine));
    assert_eq!(role("DCGM_FI_PROF_SM_UTIL_RATIO"), Some(Role::Sm));
    assert_eq!(role("node_load1"), None);
}

#[test]
fn a_metric_that_the_admin_named_has_no_other_name() {
    let names = Names { metrics: [(Role::Engine, "gpu:engine".to_owned())].into(), ..Names::default() };
    assert_eq!(names.role(&labels(&[("__name__", "gpu:engine")])), Some(Role::Engine));
    assert_eq!(names.role(&labels(&[("__name__", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")])), None);
    let selector = names.selector(&[Role::Engine], &["cluster=\"a\"".to_owned()], 90_000);
    assert_eq!(selector, r#"{__name__="gpu:engine",cluster="a"}[90000ms]"#);
}

#[test]
fn the_machine_is_found_by_either_spelling() {
    let host = |name| {
        Names::default()
            .tag(Tag::Host, &labels(&[("instance", "10.0.0.1:9400"), (name, "n1")]))
            .map(str::to_owned)
    };
    assert_eq!(host("Hostname").as_deref(), Some("n1"));
    assert_eq!(host("hostname").as_deref(), Some("n1")); // dcgm-exporter #655
    assert_eq!(host("other").as_deref(), Some("10.0.0.1:9400"));
}

#[test]
fn a_pod_is_found_by_its_label_and_by_that_of_old_exporters() {
    let names = Names::default();
    let new = labels(&[("namespace", "hub"), ("pod", "jupyter-alice")]);
    let old = labels(&[("pod_namespace", "hub"), ("pod_name", "jupyter-alice")]);
    assert_eq!(names.workload(&new, false), pod("hub", "jupyter-alice"));
    assert_eq!(names.workload(&old, false), pod("hub", "jupyter-alice"));
    assert_eq!(names.workload(&labels(&[("namespace", ""), ("pod", "")]), false), None);
}

/// dcgm-exporter #85, #340, #363: with `honorLabels: false`, `pod` is the exporter's own.
#[test]
fn where_labels_were_renamed_the_exporters_own_pod_never_holds_a_card() {
    let names = Names::default();
    let own = [("namespace", "gpu-operator"), ("pod", "nvidia-dcgm-x7k2p")];
    let held = [own[0], own[1], ("exported_namespace", "hub"), ("exported_pod", "jupyter-alice")];
    assert!(Names::renamed(&labels(&held)) && !Names::renamed(&labels(&own)));
    assert_eq!(names.workload(&labels(&held), true), pod("hub", "jupyter-alice"));
    assert_eq!(names.workload(&labels(&own), true), None, "a free card has no exported_pod");
}

#[test]
fn the_exporter_holds_no_card_even_while_no_pod_is_labelled() {
    let own = labels(&[("namespace", "gpu-operator"), ("pod", "nvidia-dcgm-exporter-x7k2p")]);
    assert_eq!(Names::default().workload(&own, false), None);
}

#[test]
fn a_batch_job_holds_its_card_by_its_own_label() {
    let job = labels(&[("hpc_job", "4711"), ("pod", "")]);
    assert_eq!(Names::default().workload(&job, false), Some(Workload::Job("4711".to_owned())));
}

#[test]
fn labels_that_the_admin_named_are_the_only_ones_looked_at() {
    let named = [(Tag::Pod, "kube_pod".to_owned()), (Tag::Namespace, "kube_ns".to_owned())];
    let names = Names { labels: named.into(), ..Names::default() };
    let both = labels(&[
        ("pod", "exporter"),
        ("exported_pod", "x"),
        ("kube_pod", "jupyter-bob"),
        ("kube_ns", "hub"),
    ]);
    assert_eq!(names.workload(&both, true), pod("hub", "jupyter-bob"));
}
