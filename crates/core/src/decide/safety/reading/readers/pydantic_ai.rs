//! Responses of Pydantic AI.

use super::super::{CallsAt, Reader, ReasonAt, Test};

pub(super) static READER: Reader = Reader {
    name: "pydantic_ai",
    providers: "Pydantic AI",
    reasons: &[ReasonAt {
        path: "provider_details.finish_reason",
        field: "provider_details.finish_reason",
        rule: "openai_compatible_content_filter",
        test: Test::Ending,
    }],
    calls: &[CallsAt {
        path: "parts[]",
        id: &["tool_call_id"],
        name: &["tool_name"],
        arguments: Some("args"),
        type_member: "part_kind",
        types: &[("tool-call", None)],
        ..CallsAt::BLANK
    }],
    texts: &["parts[].content"],
    ..Reader::BLANK
};
