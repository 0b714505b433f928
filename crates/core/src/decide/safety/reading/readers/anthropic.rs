//! Anthropic's messages, their streams, results of batches and managed agents.

use super::super::{CallsAt, Reader, ReasonAt, Stage, Test};
use crate::decide::safety::Category;

const fn refused(path: &'static str) -> ReasonAt {
    let test = Test::Words(&[("refusal", Category::Refusal, Some(Stage::Output))]);
    ReasonAt { path, field: "stop_details.type", rule: "anthropic_refusal", test }
}

pub(super) static READER: Reader = Reader {
    name: "anthropic",
    providers: "Anthropic, Claude on Vertex and on Bedrock, MiniMax and others who speak its dialect",
    wrappers: &["result.message", "message"],
    reasons: &[
        ReasonAt::ending("stop_reason", "stop_reason", "anthropic_refusal"),
        ReasonAt::ending("stop_reason.type", "stop_reason.type", "anthropic_refusal"),
        ReasonAt::ending("delta.stop_reason", "stop_reason", "anthropic_refusal"),
        refused("stop_details.type"),
        refused("delta.stop_details.type"),
    ],
    calls: &[CallsAt::blocks("content[]"), CallsAt::blocks("content_block")],
    texts: &["content", "content_block", "delta"],
    ..Reader::BLANK
};
