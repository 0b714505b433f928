//! Checks that the Python worker under `crates/bench/baselines` decides what the gate decides: only then do the two compare in speed.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};
use tollgate_core::Gate;
use tollgate_core::decide::policy::{Policy, PolicySettings};

const DENIED_TOOLS: [&str; 2] = ["format_disk", "shutdown_host"];
const EVENTS: &str = "6000";

/// Returns what was decided on an event: its thread and id, action, code, and what follows from them.
fn decision(verdict: &[u8]) -> Vec<Value> {
    let verdict: Value = serde_json::from_slice(verdict).expect("a verdict is JSON");
    let fields = ["thread_id", "event_id", "action", "code", "decided_by", "allows_execution", "should_halt"];
    fields.iter().map(|field| verdict[field].clone()).collect()
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("python3 and its venv module are installed: ./test brings them");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

#[test]
fn the_python_baseline_decides_as_the_gate_does() {
    let target = std::env::current_exe().unwrap().ancestors().nth(3).expect("a target folder").to_owned();
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events.jsonl");
    let python = || {
        let mut command = Command::new("python3");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    for seed in ["1", "2", "3"] {
        let traffic = output(python().args(["baselines/driver/traffic.py", "trouble", seed, EVENTS]));
        std::fs::write(&events, &traffic).unwrap();
        let mut worker = Command::new("baselines/python/run.sh");
        worker.arg("--eval").arg(&events).env("CARGO_TARGET_DIR", &target).env("PYTHONDONTWRITEBYTECODE", "1");
        let answered = output(worker.env("TOLLGATE_DENIED_TOOLS", DENIED_TOOLS.join(",")));

        let allowlist = json!({"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": DENIED_TOOLS}}});
        // The baseline reads the three shapes that DeerFlow reads.
        let detectors = ["openai_compatible_content_filter", "anthropic_refusal", "gemini_safety"].map(|name| json!({"use": name}));
        let settings = json!({"guardrails": allowlist, "safety_finish_reason": {"detectors": detectors}});
        let mut gate = Gate::new(Policy::new(&PolicySettings::from_value(&settings).unwrap()));
        let expected = lines(&traffic).map(|event| gate.decide(event).to_vec()).filter(|verdict| !verdict.is_empty());
        let expected: Vec<_> = expected.map(|verdict| decision(&verdict)).collect();
        let found: Vec<_> = lines(&answered).map(decision).collect();
        for (ours, theirs) in expected.iter().zip(&found) {
            assert_eq!(ours, theirs, "seed {seed}");
        }
        assert_eq!(expected.len(), found.len(), "seed {seed}");
        let kinds: BTreeSet<_> = expected.iter().map(|decision| (decision[2].to_string(), decision[3].to_string())).collect();
        assert_eq!(kinds.len(), 14, "the traffic holds every kind of verdict: {kinds:?}");
    }
}
