//! Measures reading: events, arguments on their way to a digest, and results that may be failures.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use serde_json::json;
use tollgate_core::decide::loops::{arguments_digest, classify};
use tollgate_core::event::decode;
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::events::At;
use tollgate_json::digest::Digest;
use tollgate_json::{DEPTH_MAX, Parser, Text, canonical};
use tollgate_passport::ToolInput;

const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Measures record → event, by the event's type.
pub fn decode(criterion: &mut Criterion) {
    let at = At { thread: 1, turn: 1, call: 3 };
    let mut group = criterion.benchmark_group("decode");
    for (name, event) in [
        ("turn_start", at.turn_start()),
        ("model_response", at.model_response()),
        ("tool_call", at.tool_call()),
        ("tool_result", at.tool_result()),
        ("turn_end", at.turn_end()),
        ("thread_reset", at.turn_end().replace("turn_end", "thread_reset")),
        ("tool_call, 16 KB", at.tool_call().replace("utf-8", &"a line of some text\\n".repeat(800))),
    ] {
        let value = Some(event.as_bytes());
        let (partition, offset) = (Partition(0), Offset(0));
        let record = Record { topic: "agent.events", partition, offset, timestamp_ms: None, key: None, value, headers: &[] };
        let mut parser = Parser::new();
        group.throughput(Throughput::Bytes(event.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(decode::decode(black_box(&record), &mut parser, EVENT_BYTES_MAX)).is_ok());
        });
    }
    group.finish();
}

/// Measures arguments → canonical form → SHA-256. Most were parsed with their event; the last come as JSON in a string and are parsed
/// first.
pub fn canonical(criterion: &mut Criterion) {
    let small = r#"{"path":"/work/src/main.rs","start_line":120,"end_line":160,"encoding":"utf-8"}"#.to_owned();
    let nested = json!({"query": {"z": [1, 2.5, {"deep": {"er": [true, null, "text"]}}], "a": {"b": {"c": {"d": [[], {}]}}}}, "limit": 10});
    let large = json!({"path": "/work/a.rs", "content": "fn main() { println!(\"{}\", 1 + 2); }\n".repeat(96)}).to_string();
    let mut group = criterion.benchmark_group("canonical form");
    for (name, text) in [("small", &small), ("nested", &nested.to_string()), ("4 KB", &large)] {
        let mut parser = Parser::new();
        let value = parser.parse(text.as_bytes(), DEPTH_MAX).expect("arguments are JSON");
        let (input, mut bytes) = (ToolInput::Value(value), Vec::new());
        canonical::write(value, &mut bytes);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(format!("{name}, form alone"), |bencher| {
            let mut out = Vec::new();
            bencher.iter(|| {
                out.clear();
                canonical::write(black_box(value), &mut out);
                out.len()
            });
        });
        group.bench_function(format!("{name}, SHA-256 alone"), |bencher| bencher.iter(|| Digest::of(black_box(&bytes))));
        group.bench_function(format!("{name}, form and SHA-256"), |bencher| bencher.iter(|| arguments_digest(black_box(&input))));
    }
    let encoded = ToolInput::Encoded(Text::plain(small.as_bytes()));
    group.throughput(Throughput::Bytes(small.len() as u64));
    group.bench_function("small in a string, parsed, form and SHA-256", |bencher| bencher.iter(|| arguments_digest(black_box(&encoded))));
    group.finish();
}

/// Measures result → failure or none.
pub fn classification(criterion: &mut Criterion) {
    let plain = "def total(items):\n    return sum(item.price for item in items)\n";
    let log = "2026-01-01 00:00:00 INFO a line of a log that tells of nothing in particular\n".repeat(210);
    let rows = json!({"rows": vec![json!({"id": 4711, "name": "a name", "price": 12.5}); 380]}).to_string();
    let mut group = criterion.benchmark_group("failure classification");
    for (name, tool_name, text, is_failure) in [
        ("plain", "read_file", plain, false),
        ("plain, a failure", "bash", "Traceback (most recent call last):\n  File \"a.py\", line 1\nNameError: name 'x'", true),
        ("JSON", "web_search", r#"{"results":[{"title":"A","url":"https://example.com/a"}],"total":1,"success":true}"#, false),
        ("JSON, a failure", "web_search", r#"{"results":[],"error":"the index cannot be reached"}"#, true),
        ("terminal", "terminal", r#"{"output":"ok\n","exit_code":0,"error":null}"#, false),
        ("terminal, a failure", "terminal", r#"{"output":"no such file\n","exit_code":2,"error":null}"#, true),
        ("plain, 16 KB", "read_file", &log, false),
        ("JSON, 16 KB", "web_search", &rows, false),
    ] {
        let result = Text::plain(text.as_bytes());
        assert_eq!(classify(tool_name, Some(&result)).is_some(), is_failure, "{name}");
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| classify(black_box(tool_name), Some(black_box(&result)))));
    }
    group.finish();
}
