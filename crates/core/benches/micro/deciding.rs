//! Measures decisions on a call: by the loop controller, and by a passport's rules.

use std::hint::black_box;

use criterion::{BatchSize, Criterion};
use tollgate_core::decide::guardrail::{GuardrailProvider, Step};
use tollgate_core::decide::loops::{LoopMemory, Observation, Signature};
use tollgate_core::event::decode::Attribution;
use tollgate_fixtures::events::policy;
use tollgate_fixtures::events::rows::{passport, passport_of, request_of};
use tollgate_json::digest::Digest;
use tollgate_json::{DEPTH_MAX, Parser, Text};
use tollgate_passport::ToolInput;

/// How many entries each of the passport's lists has.
const ENTRIES: usize = 100;

/// Measures the chain of the defaults: the repetition controller alone.
pub fn loops(criterion: &mut Criterion) {
    let policy = policy();
    let chain = policy.loops();
    let text = Text::plain(b"def total(items):\n    return sum(item.price for item in items)\n");
    let call = |tool, number: usize| Signature::new(tool, Digest::of(format!("{{\"number\":{number}}}").as_bytes()));
    // The turn has seen eight read-only calls, each with another result than before.
    let mut busy = LoopMemory::default();
    (0..8).for_each(|number| drop(chain.after_call(&mut busy, &call("read_file", number), &Observation::new(false, Some(&text)))));
    let known = call("read_file", 3);
    let mut stopped = busy.clone();
    (0..2).for_each(|_| drop(chain.after_call(&mut stopped, &known, &Observation::new(true, None))));
    assert!(!chain.before_call(&mut stopped, &known).reasons.is_empty(), "it is stopped");

    let mut group = criterion.benchmark_group("loop controller");
    for (name, memory, call) in [
        ("before_call, first of its turn", LoopMemory::default(), known),
        ("before_call, new in a busy turn", busy.clone(), call("read_file", 9)),
        ("before_call, known in a busy turn", busy.clone(), known),
        ("before_call, stopped", stopped, known),
    ] {
        let mut memory = memory;
        group.bench_function(name, |bencher| bencher.iter(|| chain.before_call(&mut memory, black_box(&call))));
    }
    for (name, call, failed) in [
        ("after_call, a read-only call's success", call("read_file", 9), false),
        ("after_call, another call's success", call("write_file", 9), false),
        ("after_call, a failure", call("bash", 9), true),
    ] {
        // Each run has a memory of its own, since it changes.
        let after = |mut memory: LoopMemory| {
            let outcome = chain.after_call(&mut memory, black_box(&call), &Observation::new(failed, Some(&text)));
            (outcome, memory)
        };
        group.bench_function(name, |bencher| bencher.iter_batched(|| busy.clone(), after, BatchSize::SmallInput));
    }
    group.finish();
}

/// Measures the passport provider's decision on a call, under lists of a hundred entries each.
pub fn passports(criterion: &mut Criterion) {
    let provider = passport(&passport_of(ENTRIES));
    let mut group = criterion.benchmark_group("passport rules");
    for (name, tool_name, input, is_allowed) in [
        ("command", "bash", r#"{"command":"tool-7 --check"}"#, true),
        ("command of several", "bash", r#"{"command":"tool-7 --check && cat a.txt | tool-3 build > out.txt"}"#, false),
        ("command, denied", "bash", r#"{"command":"other --force"}"#, false),
        ("file in a directory", "read_file", r#"{"path":"/work/project-7/src/main.rs"}"#, true),
        ("file by a glob", "read_file", r#"{"path":"/data/set-3/2026/out-3.csv"}"#, true),
        ("file, denied", "read_file", r#"{"path":"/somewhere/else/entirely/a.txt"}"#, false),
        ("URL by its domain", "web_fetch", r#"{"url":"https://docs.host-7.example.com/page?x=1"}"#, true),
        ("URL, denied", "web_fetch", r#"{"url":"https://docs.host-7.example.org/page?x=1"}"#, false),
        ("MCP tool by a pattern", "mcp__server-3__get_7_details", "{}", true),
        ("MCP tool, denied", "mcp__server-3__set_7_details", "{}", false),
        ("tool without a capability", "some_tool", "{}", false),
    ] {
        let mut parser = Parser::new();
        let tool_input = ToolInput::Value(parser.parse(input.as_bytes(), DEPTH_MAX).expect("arguments are JSON"));
        let attribution = Attribution::default();
        let request = request_of(tool_name, &tool_input, &attribution);
        let step = provider.plan(&request);
        assert!(matches!(&step, Step::Decided(Ok(decision)) if decision.allow == is_allowed), "{name}: {step:?}");
        group.bench_function(name, |bencher| bencher.iter(|| provider.plan(black_box(&request))));
    }
    group.finish();
}
