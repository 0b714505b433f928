//! Spans by the conventions of OpenTelemetry for generative AI.

use super::super::{CallsAt, Reader, ReasonAt};

const fn reasons(path: &'static str) -> ReasonAt {
    ReasonAt::ending(path, "gen_ai.response.finish_reasons", "otel_finish_reasons")
}

const fn of_message(path: &'static str) -> ReasonAt {
    ReasonAt::ending(path, "gen_ai.output.messages.finish_reason", "otel_finish_reasons")
}

const fn calls(path: &'static str) -> CallsAt {
    CallsAt { path, types: &[("tool_call", None)], ..CallsAt::BLANK }
}

pub(super) static READER: Reader = Reader {
    name: "otel",
    providers: "OpenTelemetry GenAI",
    reasons: &[
        reasons("attributes.\"gen_ai.response.finish_reasons\"[]"),
        reasons("\"gen_ai.response.finish_reasons\"[]"),
        of_message("attributes.\"gen_ai.output.messages\"[].finish_reason"),
        of_message("\"gen_ai.output.messages\"[].finish_reason"),
    ],
    calls: &[calls("attributes.\"gen_ai.output.messages\"[].parts[]"), calls("\"gen_ai.output.messages\"[].parts[]")],
    texts: &["attributes.\"gen_ai.output.messages\"[].parts[].content", "\"gen_ai.output.messages\"[].parts[].content"],
    ..Reader::BLANK
};
