//! Tests the tenants' shares of a partition: nobody can fill it with threads that hold a stop, and nobody pays for another's.

use serde_json::{Value, json};
use tollgate_fixtures::checks;
use tollgate_fixtures::gate::{Gate, policy};

/// Returns a gate whose partition holds 100 threads, 20 of them with a stop of one tenant.
fn gate() -> Gate {
    let limits = json!({"threads_per_partition_max": 100, "tenant_stops_percent_max": 20, "thread_idle_seconds_max": 60});
    Gate::new(policy(&json!({"limits": limits})))
}

fn event(event_type: &str, thread_id: &str, tenant_id: Option<&str>) -> Value {
    json!({"type": event_type, "thread_id": thread_id, "tenant_id": tenant_id, "timestamp": "2026-01-01T12:00:00Z"})
}

fn call(thread_id: &str, tenant_id: Option<&str>) -> Value {
    let mut call = event("tool_call", thread_id, tenant_id);
    [("tool_call_id", json!("c1")), ("tool_name", json!("bash")), ("tool_input", json!({}))]
        .into_iter()
        .for_each(|(name, value)| call[name] = value);
    call
}

/// Returns a response that was cut off: its call is suppressed, which is a stop.
fn cut_off(thread_id: &str, tenant_id: Option<&str>) -> Value {
    let mut response = event("model_response", thread_id, tenant_id);
    let calls = json!([{"id": "c1", "function": {"name": "bash"}}]);
    response["response"] = json!({"choices": [{"finish_reason": "content_filter", "message": {"tool_calls": calls}}]});
    response
}

fn code(gate: &mut Gate, event: &Value) -> Value {
    gate.event(event)["code"].clone()
}

/// Brings so many threads of a tenant to a stop, or tries to.
fn flood(gate: &mut Gate, tenant_id: Option<&str>, threads: usize) {
    let name = tenant_id.unwrap_or("nobody");
    (0..threads).for_each(|n| drop(gate.event(&cut_off(&format!("{name} {n}"), tenant_id))));
}

#[test]
fn a_tenant_that_floods_is_refused_and_others_go_on() {
    let mut gate = gate();
    flood(&mut gate, Some("acme"), 1_000);
    assert_eq!(gate.threads().len(), 20);
    assert_eq!(gate.threads().departures().refused, 980);
    let refused = gate.event(&call("new", Some("acme")));
    let expected = json!({"action": "block", "code": "thread_store_full", "decided_by": "envelope", "allows_execution": false});
    checks::assert_has("refused", &refused, &expected);
    assert_eq!(code(&mut gate, &call("new", Some("other"))), "allow");
    flood(&mut gate, Some("other"), 10);
    for tenant in ["acme", "other"] {
        let stopped = call(&format!("{tenant} 3"), Some(tenant));
        assert_eq!(code(&mut gate, &stopped), "suppressed_tool_call", "a thread of {tenant} that holds a stop is still answered");
    }
}

/// Otherwise a tenant would first open many threads, and then bring them all to a stop.
#[test]
fn threads_that_were_opened_before_count_too() {
    let mut gate = gate();
    (0..60).for_each(|n| assert_eq!(code(&mut gate, &call(&format!("t{n}"), Some("acme"))), "allow"));
    (0..60).for_each(|n| drop(gate.event(&cut_off(&format!("t{n}"), Some("acme")))));
    let stops = gate.threads().iter().filter(|(_, stored)| stored.thread.holds_a_stop()).count();
    assert_eq!(stops, 20);
    assert_eq!(code(&mut gate, &call("t40", Some("acme"))), "thread_store_full", "it could come to a stop");
    // A turn that begins or ends brings no stop.
    assert!(gate.event(&event("turn_start", "t41", Some("acme"))).is_null());
    assert!(gate.event(&event("turn_end", "t41", Some("acme"))).is_null());
}

#[test]
fn a_share_is_free_again_when_a_stop_has_ended() {
    // A turn that begins ends nothing: what was suppressed stays so.
    for end in ["turn_end", "thread_reset"] {
        let mut gate = gate();
        flood(&mut gate, Some("acme"), 30);
        assert_eq!(code(&mut gate, &call("new", Some("acme"))), "thread_store_full");
        gate.event(&event(end, "acme 7", Some("acme")));
        assert_eq!(code(&mut gate, &call("new", Some("acme"))), "allow", "{end}");
        gate.event(&cut_off("new", Some("acme")));
        assert_eq!(code(&mut gate, &call("newer", Some("acme"))), "thread_store_full", "{end}");
    }
}

/// Agents die behind their stops. Without this, a tenant whose share they have used up would be shut out for good.
#[test]
fn stops_that_were_idle_for_long_give_their_share_back() {
    let mut gate = gate();
    flood(&mut gate, Some("acme"), 30);
    let mut later = call("new", Some("acme"));
    later["timestamp"] = json!("2026-01-01T12:30:00Z");
    assert_eq!(code(&mut gate, &later), "thread_store_full", "one timestamp frees nobody");
    let others = |n: usize| {
        let mut other = call(&format!("other-{n}"), Some("other"));
        other["timestamp"] = json!("2026-01-01T12:30:00Z");
        other
    };
    (0..1_000).for_each(|n| drop(gate.event(&others(n))));
    assert_eq!(code(&mut gate, &later), "allow");
}

/// Where no tenants are named there is nobody to keep room for.
#[test]
fn threads_without_a_tenant_have_no_share() {
    let mut gate = gate();
    flood(&mut gate, None, 100);
    assert_eq!(gate.threads().len(), 100);
    assert_eq!(code(&mut gate, &call("new", None)), "thread_store_full");
}
