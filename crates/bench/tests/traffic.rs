//! Decides on the traffic of `tollgate-bench`: every event can be read, and the shares of decisions are as configured.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tollgate_core::Gate;
use tollgate_core::decide::policy::{Policy, PolicySettings};
use tollgate_testkit::{DENIED_TOOL, Mix, MixEvent, MixSettings};

const EVENTS: usize = 100_000;

#[test]
fn loops_stops_and_denials_come_out_at_the_asked_share() {
    let user = json!({"guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": [DENIED_TOOL]}}}});
    let mut gate = Gate::new(Policy::new(&PolicySettings::from_value(&user).unwrap()));
    let mut mix = Mix::new(MixSettings { threads: 500, ..MixSettings::default() });
    let mut event = MixEvent::blank();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut bytes = 0;
    for number in 0..EVENTS {
        mix.next_into(&mut event);
        bytes += event.value.len();
        let verdict = gate.decide_keyed(Some(event.thread_id.as_bytes()), &event.value);
        assert_eq!(verdict.is_empty(), !event.is_awaited(), "event {number}");
        *counts.entry(event.event_type.as_str().to_owned()).or_default() += 1;
        if !verdict.is_empty() {
            let verdict: Value = serde_json::from_slice(verdict).unwrap();
            assert_ne!(verdict["decided_by"], "envelope", "{verdict}");
            assert_eq!(verdict["event_id"], format!("event-{number:012}"));
            *counts.entry(verdict["decided_by"].as_str().unwrap().to_owned()).or_default() += 1;
            *counts.entry(format!("{}:{}", verdict["type"].as_str().unwrap(), verdict["code"].as_str().unwrap())).or_default() += 1;
        }
    }
    let share = |name: &str, of: &str| counts.get(name).copied().unwrap_or_default() as f64 / counts[of] as f64;
    // There are few threads, so that most loops that have begun are over. A loop gets one warning and one block, for two repeats of a call.
    assert!((0.044..0.056).contains(&share("loop", "tool_call")), "{counts:#?}");
    for code in ["tool_call:repeated_exact_failure_block", "tool_call:idempotent_no_progress_block"] {
        assert!((0.009..0.016).contains(&share(code, "tool_call")), "{counts:#?}");
    }
    assert!((0.008..0.012).contains(&share("guardrail", "tool_call")), "{counts:#?}");
    assert!((0.008..0.012).contains(&share("safety", "model_response")), "{counts:#?}");
    assert!((2_000..4_000).contains(&(bytes / EVENTS)), "{} bytes an event", bytes / EVENTS);
}
