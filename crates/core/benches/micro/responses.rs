//! Measures safety detectors on responses of every shape, whole and cut off. The event is parsed already, which is most of its cost.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use serde_json::{Value as Json, json};
use tollgate_core::event::decode::ModelBody;
use tollgate_fixtures::events::policy;
use tollgate_json::{DEPTH_MAX, Parser, Value};

const TEXT: &str = "I will read the file first and then change how the total is computed, since the discount comes before rounding. ";

/// A response of this shape, with the reason for its end that makes it whole or cut off.
struct Shape {
    name: &'static str,
    whole: &'static str,
    cut_off: &'static str,
    body: fn(reason: &str) -> Json,
    wrap: for<'d> fn(Value<'d>) -> ModelBody<'d>,
}

const SHAPES: [Shape; 4] = [
    Shape { name: "OpenAI", whole: "tool_calls", cut_off: "content_filter", body: openai, wrap: |value| ModelBody::Response(value) },
    Shape { name: "Anthropic", whole: "tool_use", cut_off: "refusal", body: anthropic, wrap: |value| ModelBody::Response(value) },
    Shape { name: "Gemini", whole: "STOP", cut_off: "SAFETY", body: gemini, wrap: |value| ModelBody::Response(value) },
    Shape { name: "LangChain", whole: "tool_calls", cut_off: "content_filter", body: langchain, wrap: |value| ModelBody::Message(value) },
];

/// Measures the chain of the defaults.
pub fn safety(criterion: &mut Criterion) {
    let policy = policy();
    let chain = policy.safety();
    let mut group = criterion.benchmark_group("safety detectors");
    for shape in SHAPES {
        for (state, reason, is_cut_off) in [("whole", shape.whole, false), ("cut off", shape.cut_off, true)] {
            let text = (shape.body)(reason).to_string();
            let mut parser = Parser::new();
            let body = (shape.wrap)(parser.parse(text.as_bytes(), DEPTH_MAX).expect("a response is JSON"));
            let calls = chain.inspect(&body).map_or(0, |(termination, _)| termination.suppressed_tool_call_count);
            assert_eq!(calls, if is_cut_off { 2 } else { 0 }, "{}, {state}", shape.name);
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_function(format!("{}, {state}", shape.name), |bencher| bencher.iter(|| chain.inspect(black_box(&body)).is_some()));
        }
    }
    group.finish();
}

fn openai(reason: &str) -> Json {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"a.py\"}"}});
    let message = json!({"role": "assistant", "content": TEXT.repeat(4), "tool_calls": [call("call_1"), call("call_2")]});
    json!({"id": "chatcmpl-1", "object": "chat.completion", "model": "some-model",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": 1742, "completion_tokens": 96, "total_tokens": 1838}})
}

fn anthropic(reason: &str) -> Json {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": "a.py"}});
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "some-model", "stop_reason": reason, "stop_sequence": null,
        "content": [{"type": "text", "text": TEXT.repeat(4)}, call("toolu_1"), call("toolu_2")],
        "usage": {"input_tokens": 1742, "output_tokens": 96}})
}

fn gemini(reason: &str) -> Json {
    let call = |path: &str| json!({"functionCall": {"name": "read_file", "args": {"path": path}}});
    let rating = |category: &str| json!({"category": category, "probability": "NEGLIGIBLE"});
    json!({"modelVersion": "some-model", "candidates": [{
        "content": {"role": "model", "parts": [{"text": TEXT.repeat(4)}, call("a.py"), call("b.py")]}, "finishReason": reason, "index": 0,
        "safetyRatings": [rating("HARM_CATEGORY_HARASSMENT"), rating("HARM_CATEGORY_DANGEROUS_CONTENT")]}],
        "usageMetadata": {"promptTokenCount": 1742, "candidatesTokenCount": 96, "totalTokenCount": 1838}})
}

fn langchain(reason: &str) -> Json {
    let call = |id: &str| json!({"name": "read_file", "args": {"path": "a.py"}, "id": id, "type": "tool_call"});
    json!({"type": "ai", "id": "run-1", "content": TEXT.repeat(4), "tool_calls": [call("call_1"), call("call_2")], "invalid_tool_calls": [],
        "additional_kwargs": {}, "response_metadata": {"model_name": "some-model", "finish_reason": reason},
        "usage_metadata": {"input_tokens": 1742, "output_tokens": 96, "total_tokens": 1838}})
}
