//! MiniMax, whose answer with HTTP status 200 can hold a failure.

use super::super::{Reader, ReasonAt, Stage, Test};
use crate::decide::safety::Category;

const fn sensitive(path: &'static str, stage: Stage) -> ReasonAt {
    ReasonAt { path, field: path, rule: "minimax_sensitive", test: Test::Flag(Category::Safety, Some(stage)) }
}

pub(super) static READER: Reader = Reader {
    name: "minimax",
    providers: "MiniMax",
    reasons: &[
        ReasonAt {
            path: "base_resp.status_code",
            field: "base_resp.status_code",
            rule: "minimax_sensitive",
            test: Test::Numbers(&[(1026, Category::Safety, Some(Stage::Input)), (1027, Category::Safety, Some(Stage::Output))]),
        },
        sensitive("input_sensitive", Stage::Input),
        sensitive("output_sensitive", Stage::Output),
    ],
    ..Reader::BLANK
};
