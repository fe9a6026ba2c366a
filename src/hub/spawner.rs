//! Where a server runs, from the `state` that each kind of spawner writes its own way.

use serde_json::value::RawValue;

use super::json::{self, Fields};
use crate::domain::SpawnerState;

/// The state in the domain's words. Custom spawners may write anything, so nothing here is an error.
pub(super) fn read(state: &RawValue) -> SpawnerState {
    let Ok(state) = json::object(state) else {
        return SpawnerState::default();
    };
    // WrapSpawner and ProfilesSpawner
    let child = state.get("child_state").and_then(|child| json::object(child).ok());
    let state = child.unwrap_or(state);
    SpawnerState {
        pid: state.optional("pid").ok().flatten().filter(|pid| *pid > 0),
        unit: text(&state, "unit_name").map(|u| u.trim_end_matches(".service").to_owned()),
        container: text(&state, "object_id").or_else(|| text(&state, "container_id")),
        pod: text(&state, "pod_name").zip(text(&state, "namespace")),
        pod_uid: None,
        job: text(&state, "job_id"),
        host: host(&state),
    }
}

/// What spawners call the machine; batchspawner writes it behind the state of the job (`RUNNING node7`).
fn host(state: &Fields<'_>) -> Option<String> {
    let told = ["remote_ip", "remote_host", "host"].iter().find_map(|key| text(state, key));
    let running = || {
        let status = text(state, "job_status")?;
        let mut words = status.split_whitespace();
        (words.next()? == "RUNNING").then_some(())?;
        words.next().map(str::to_owned).filter(|_| words.next().is_none())
    };
    // A name for "right here" tells nothing.
    let here = |host: &String| {
        ["localhost", "0.0.0.0", "::", "::1"].contains(&host.as_str()) || host.starts_with("127.")
    };
    told.or_else(running).filter(|host| !here(host))
}

fn text(state: &Fields<'_>, key: &str) -> Option<String> {
    let value = state.get(key)?;
    match value.get().as_bytes().first()? {
        b'"' => json::text(value).filter(|text| !text.is_empty()),
        b'-' | b'0'..=b'9' => Some(value.get().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::SpawnerState;
    use serde_json::{Value, json};

    fn read(state: &Value) -> SpawnerState {
        super::read(&serde_json::value::to_raw_value(state).unwrap())
    }

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
        let host = |value| state(value).host;
        assert_eq!(host(json!({"pid": 7, "remote_ip": "192.0.2.7"})).as_deref(), Some("192.0.2.7"));
        let job = |status| json!({"job_id": "17", "job_status": status});
        assert_eq!(host(job("RUNNING node7")).as_deref(), Some("node7"));
        for status in ["RUNNING", "PENDING node7", "RUNNING on node7", "RUNNING 127.0.0.1", ""] {
            assert_eq!(host(job(status)), None, "{status}");
        }
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
