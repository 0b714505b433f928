//! What xAI's own SDK returns.

use super::super::{CallsAt, Reader, ReasonAt, Test};

pub(super) static READER: Reader = Reader {
    name: "xai_sdk",
    providers: "xAI's SDK",
    reasons: &[ReasonAt {
        path: "outputs[].finish_reason",
        field: "finish_reason",
        rule: "openai_compatible_content_filter",
        test: Test::Ending,
    }],
    calls: &[CallsAt::openai("outputs[].message.tool_calls[]")],
    texts: &["outputs[].message.content"],
    ..Reader::BLANK
};
