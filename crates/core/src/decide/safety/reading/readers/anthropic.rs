//! Anthropic's messages, their streams, results of batches and managed agents.

use super::super::{CallsAt, Reader, ReasonAt, Test};

pub(super) static READER: Reader = Reader {
    name: "anthropic",
    providers: "Anthropic, Claude on Vertex and on Bedrock, MiniMax and others who speak its dialect",
    wrappers: &["result.message", "message"],
    reasons: &[
        ReasonAt { path: "stop_reason", field: "stop_reason", rule: "anthropic_refusal", test: Test::Ending },
        ReasonAt { path: "stop_reason.type", field: "stop_reason.type", rule: "anthropic_refusal", test: Test::Ending },
        ReasonAt { path: "delta.stop_reason", field: "stop_reason", rule: "anthropic_refusal", test: Test::Ending },
    ],
    calls: &[CallsAt::blocks("content[]"), CallsAt::blocks("content_block")],
    texts: &["content", "content_block", "delta"],
    ..Reader::BLANK
};
