//! Where a server runs, from the `state` that each kind of spawner writes its own way.

use serde_json::Value;

use crate::domain::SpawnerState;

/// The state in the domain's words. Custom spawners may write anything, so nothing here is an error.
pub(super) fn read(state: &Value) -> SpawnerState {
    let state = state
        .get("child_state") // WrapSpawner and ProfilesSpawner
        .filter(|child| child.is_object())
        .unwrap_or(state);
    SpawnerState {
        pid: state
            .get("pid")
            .and_then(Value::as_u64)
            .and_then(|pid| u32::try_from(pid).ok())
            .filter(|pid| *pid > 0),
        unit: text(state, "unit_name").map(|u| u.trim_end_matches(".service").to_owned()),
        container: text(state, "object_id").or_else(|| text(state, "container_id")),
        pod: text(state, "pod_name").zip(text(state, "namespace")),
        job: text(state, "job_id"),
    }
}

fn text(state: &Value, key: &str) -> Option<String> {
    match state.get(key)? {
        Value::String(s) if !s.is_empty() => Some(s.clone()),
        Value::Number(n) => Some(n.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_spawner_tells_where_its_server_runs() {
        let state = |value| read(&value);
        assert_eq!(state(json!({"pid": 4242})).pid, Some(4242));
        assert_eq!(
            state(json!({"unit_name": "jupyter-al-singleuser.service"})).unit.as_deref(),
            Some("jupyter-al-singleuser")
        );
        assert_eq!(state(json!({"object_id": "c0"})).container.as_deref(), Some("c0"));
        assert_eq!(state(json!({"container_id": "c1"})).container.as_deref(), Some("c1"));
        assert_eq!(
            state(json!({"pod_name": "jupyter-al", "namespace": "hub"})).pod,
            Some(("jupyter-al".to_owned(), "hub".to_owned()))
        );
        assert_eq!(state(json!({"job_id": "17"})).job.as_deref(), Some("17"));
        assert_eq!(state(json!({"job_id": 17})).job.as_deref(), Some("17"));
        assert_eq!(state(json!({"child_state": {"pid": 7}, "profile": "p"})).pid, Some(7));
    }

    #[test]
    fn what_leads_nowhere_is_an_empty_state() {
        for value in [
            json!({}),
            json!(null),
            json!([1]),
            json!({"pid": 0}),
            json!({"pid": -1}),
            json!({"pid": 4_294_967_296_u64}),
            json!({"job_id": ""}),
            json!({"pod_name": "a pod of no namespace"}),
        ] {
            assert!(read(&value).is_empty(), "{value}");
        }
    }
}
