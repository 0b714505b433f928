//! Bodies whose reason stands at their top: Cohere v2, Baidu v1, and hosts that publish one choice alone.

use super::super::{CallsAt, Reader, ReasonAt, Test};
use crate::decide::safety::Category;
use crate::decide::safety::reading::Stage;

pub(super) static READER: Reader = Reader {
    name: "plain",
    providers: "Cohere v2, Baidu v1",
    reasons: &[
        ReasonAt::ending("finish_reason", "finish_reason", "openai_compatible_content_filter"),
        ReasonAt {
            path: "need_clear_history",
            field: "need_clear_history",
            rule: "api_error_policy",
            test: Test::Flag(Category::Safety, Some(Stage::Input)),
        },
    ],
    calls: &[CallsAt::openai("tool_calls[]"), CallsAt::function_call("function_call")],
    texts: &["result", "text"],
    ..Reader::BLANK
};
