//! The script for the tenants that threads with a stop count for.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::{TenantMark, read_thread};
use tollgate_core::engine::checkpoint::{Checkpoint, VERSION};
use tollgate_fixtures::gate;

use super::script::{PARTITION, checkpoint, feed};
use super::{Script, check_golden, restore, values};

/// Returns a policy under which a tenant may have one thread with a stop.
fn policy() -> Policy {
    gate::policy(&json!({"limits": {"threads_per_partition_max": 100, "tenant_stops_percent_max": 1}}))
}

/// Returns a response of a thread that was cut off, which brings the thread to a stop.
fn cut_off(thread: &str, tenant: Option<&str>) -> Value {
    let calls = json!([{"id": "c1", "function": {"name": "bash"}}]);
    let response = json!({"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": calls}}]});
    json!({"type": "model_response", "thread_id": thread, "event_id": thread, "tenant_id": tenant, "response": response})
}

fn call(thread: &str, tenant: &str) -> Value {
    json!({"type": "tool_call", "thread_id": thread, "event_id": thread, "tenant_id": tenant, "tool_call_id": "c", "tool_name": "ls",
           "tool_input": {}})
}

/// Returns the checkpoint behind the script's events.
pub fn scripted() -> Checkpoint {
    let mut processor = gate::processor(PARTITION, &Arc::new(policy()));
    let mut events = vec![cut_off("of acme", Some("acme")), cut_off("of übung", Some("übung")), cut_off("of nobody", None)];
    events.extend((0..8).map(|n| cut_off(&format!("of tenant {n}"), Some(&format!("tenant-{n}")))));
    events.push(call("goes on", "other"));
    feed(&mut processor, &events);
    checkpoint(&mut processor)
}

#[test]
fn tenants_are_written_as_the_golden_says() {
    check_golden(Script::Tenants, &scripted());
}

#[test]
fn a_restored_store_knows_whose_share_is_used_up() {
    for version in 1..=VERSION {
        let golden = Script::Tenants.golden(version);
        let tenant = |id: &str| {
            let (_, value) = values(&golden).find(|(key, _)| key.strip_prefix("thread/") == Some(id)).unwrap();
            read_thread(value).unwrap().tenant
        };
        let marks = ["of acme", "of übung", "of nobody"].map(tenant);
        assert_eq!(marks, [Some("acme"), Some("übung"), None].map(TenantMark::of), "version {version}");
        let policy = Arc::new(policy());
        let mut restored = gate::restored(PARTITION, &policy, restore(&golden, &policy));
        let events = [call("new", "acme"), call("new", "another"), call("of acme", "acme")];
        let codes: Vec<_> = feed(&mut restored, &events)
            .into_iter()
            .map(|(_, bytes)| serde_json::from_slice::<Value>(&bytes).unwrap()["code"].clone())
            .collect();
        assert_eq!(codes, ["thread_store_full", "allow", "suppressed_tool_call"], "version {version}");
    }
}
