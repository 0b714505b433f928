//! Spans by the conventions of OpenTelemetry for generative AI.

use super::super::{CallsAt, Reader, ReasonAt, Test};

const fn reasons(path: &'static str) -> ReasonAt {
    ReasonAt { path, field: "gen_ai.response.finish_reasons", rule: "otel_finish_reasons", test: Test::Ending }
}

const fn calls(path: &'static str) -> CallsAt {
    CallsAt { path, types: &[("tool_call", None)], ..CallsAt::BLANK }
}

pub(super) static READER: Reader = Reader {
    name: "otel",
    providers: "OpenTelemetry GenAI",
    reasons: &[reasons("attributes.\"gen_ai.response.finish_reasons\"[]"), reasons("\"gen_ai.response.finish_reasons\"[]")],
    calls: &[calls("attributes.\"gen_ai.output.messages\"[].parts[]"), calls("\"gen_ai.output.messages\"[].parts[]")],
    texts: &["attributes.\"gen_ai.output.messages\"[].parts[].content"],
    ..Reader::BLANK
};
