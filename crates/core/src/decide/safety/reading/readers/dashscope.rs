//! DashScope in its own shape, where the completion stands in `output`.

use super::super::errors::codes;
use super::super::{CallsAt, Reader, ReasonAt, Test};

pub(super) static READER: Reader = Reader {
    name: "dashscope",
    providers: "DashScope (Qwen)",
    reasons: &[
        ReasonAt::ending("output.choices[].finish_reason", "finish_reason", "openai_compatible_content_filter"),
        ReasonAt::ending("output.finish_reason", "finish_reason", "openai_compatible_content_filter"),
        ReasonAt {
            path: "header.error_code",
            field: "header.error_code",
            rule: "api_error_policy",
            test: Test::Custom("a code of the table of errors", codes),
        },
    ],
    calls: &[CallsAt::openai("output.choices[].message.tool_calls[]")],
    texts: &["output.text", "output.choices[].message.content"],
    ..Reader::BLANK
};
