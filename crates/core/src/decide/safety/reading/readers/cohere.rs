//! Cohere v1: chat, its stream, and generations; and the stream of v2.

use super::super::{CallsAt, Reader, ReasonAt, Test};
use crate::decide::safety::Category;
use crate::decide::safety::reading::Stage;

const fn toxic(path: &'static str) -> ReasonAt {
    ReasonAt {
        path,
        field: "finish_reason",
        rule: "cohere_toxic",
        test: Test::Words(&[("ERROR_TOXIC", Category::Safety, Some(Stage::Output))]),
    }
}

pub(super) static READER: Reader = Reader {
    name: "cohere",
    providers: "Cohere v1, the stream of v2",
    reasons: &[
        toxic("generations[].finish_reason"),
        toxic("finish_reason"),
        ReasonAt::ending("delta.finish_reason", "finish_reason", "openai_compatible_content_filter"),
    ],
    calls: &[CallsAt::openai_pieces("delta.message.tool_calls")],
    texts: &["generations[].text"],
    ..Reader::BLANK
};
