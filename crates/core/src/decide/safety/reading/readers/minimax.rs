//! MiniMax, whose answer with HTTP status 200 can hold a failure.

use super::super::{Reader, ReasonAt, Stage, Test};
use crate::decide::safety::Category;

pub(super) static READER: Reader = Reader {
    name: "minimax",
    providers: "MiniMax",
    reasons: &[ReasonAt {
        path: "base_resp.status_code",
        field: "base_resp.status_code",
        rule: "minimax_sensitive",
        test: Test::Numbers(&[(1026, Category::Safety, Some(Stage::Input)), (1027, Category::Safety, Some(Stage::Output))]),
    }],
    ..Reader::BLANK
};
