//! Responses of Pydantic AI.

use super::super::{CallsAt, Reader, ReasonAt};

pub(super) static READER: Reader = Reader {
    name: "pydantic_ai",
    providers: "Pydantic AI",
    reasons: &[ReasonAt::ending("provider_details.finish_reason", "provider_details.finish_reason", "openai_compatible_content_filter")],
    calls: &[CallsAt {
        path: "parts[]",
        id: &["tool_call_id"],
        name: &["tool_name"],
        arguments: &["args"],
        type_member: "part_kind",
        types: &[("tool-call", None)],
        ..CallsAt::BLANK
    }],
    texts: &["parts[].content"],
    ..Reader::BLANK
};
