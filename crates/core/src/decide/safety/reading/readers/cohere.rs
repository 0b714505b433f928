//! Cohere v1: chat, its stream, and generations.

use super::super::{Reader, ReasonAt, Test};
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
    providers: "Cohere v1",
    reasons: &[toxic("generations[].finish_reason"), toxic("finish_reason")],
    texts: &["generations[].text"],
    ..Reader::BLANK
};
