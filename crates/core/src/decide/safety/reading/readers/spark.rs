//! iFlytek Spark, which says in the header of its frames what went wrong.

use super::super::{CallsAt, Reader, ReasonAt, Stage, Test};
use crate::decide::safety::Category;

pub(super) static READER: Reader = Reader {
    name: "spark",
    providers: "iFlytek Spark",
    reasons: &[
        ReasonAt {
            path: "header.code",
            field: "header.code",
            rule: "api_error_policy",
            test: Test::Numbers(&[(10_013, Category::Safety, Some(Stage::Input)), (10_014, Category::Safety, Some(Stage::Output))]),
        },
        // The first frame, a frame in the middle, and the last frame.
        ReasonAt {
            path: "header.status",
            field: "header.status",
            rule: "api_error_policy",
            test: Test::Ending(&["in_progress", "in_progress", "completed"]),
        },
    ],
    calls: &[CallsAt::function_call("payload.choices.text[].function_call")],
    texts: &["payload.choices.text[].content"],
    ..Reader::BLANK
};
