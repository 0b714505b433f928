//! What xAI's own SDK returns.

use super::super::{CallsAt, Reader, ReasonAt};

pub(super) static READER: Reader = Reader {
    name: "xai_sdk",
    providers: "xAI's SDK",
    reasons: &[ReasonAt::ending("outputs[].finish_reason", "finish_reason", "openai_compatible_content_filter")],
    calls: &[CallsAt::openai("outputs[].message.tool_calls[]"), CallsAt::openai_pieces("outputs[].delta.tool_calls[]")],
    texts: &["outputs[].message.content", "outputs[].delta.content"],
    ..Reader::BLANK
};
