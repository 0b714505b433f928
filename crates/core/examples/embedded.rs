//! A program that decides in its own process: a policy, a gate, events as JSON in, verdicts as JSON out.

use serde_json::Value;
use tollgate_core::Gate;
use tollgate_core::decide::policy::{Policy, PolicySettings};

const POLICY: &str = "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [bash]}}}";

const EVENTS: [&str; 6] = [
    r#"{"type":"tool_call","thread_id":"t1","tool_call_id":"c1","tool_name":"bash","tool_input":{"command":"ls"}}"#,
    r#"{"type":"tool_call","thread_id":"t1","tool_call_id":"c2","tool_name":"deploy","tool_input":{"to":"live"}}"#,
    r#"{"type":"tool_result","thread_id":"t1","tool_call_id":"c2","tool_name":"deploy","result":"refused","failed":true}"#,
    r#"{"type":"tool_call","thread_id":"t1","tool_call_id":"c3","tool_name":"deploy","tool_input":{"to":"live"}}"#,
    r#"{"type":"tool_result","thread_id":"t1","tool_call_id":"c3","tool_name":"deploy","result":"refused","failed":true}"#,
    r#"{"type":"tool_call","thread_id":"t1","tool_call_id":"c4","tool_name":"deploy","tool_input":{"to":"live"}}"#,
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut gate = Gate::new(Policy::new(&PolicySettings::from_yaml(POLICY)?));
    for event in EVENTS {
        let verdict: Value = serde_json::from_slice(gate.decide(event.as_bytes()))?;
        let field = |name| verdict.get(name).and_then(Value::as_str).unwrap_or_default();
        println!("{} {}: {}, {}", field("type"), field("tool_call_id"), field("action"), field("code"));
    }
    Ok(())
}
