//! Gemini and Vertex: bodies and the chunks of their streams, the Live API, and interactions.

use tollgate_json::Value;

use super::super::test::{Found, ReasonValue, whole};
use super::super::{CallsAt, CallsKind, Ending, Reader, ReasonAt, Stage, Test};
use crate::decide::safety::Category;
use crate::decide::safety::reading::test::text_of;

const fn finish(path: &'static str, field: &'static str) -> ReasonAt {
    ReasonAt { path, field, rule: "gemini_safety", test: Test::Ending(FINISH_WORDS) }
}

const fn complete(path: &'static str, word: &'static str) -> ReasonAt {
    ReasonAt { path, field: path, rule: "gemini_safety", test: Test::Complete(word) }
}

const fn block(path: &'static str, field: &'static str) -> ReasonAt {
    ReasonAt {
        path,
        field,
        rule: "gemini_prompt_feedback",
        test: Test::Custom("any reason but the unspecified, as a word or a number", blocked),
    }
}

/// The words of the enum `FinishReason` from 0 on, as its two APIs number them. They agree up to 5. Of a number that means a stop in one API
/// and something else in the other, nobody can tell what was meant, so it is a stop.
#[rustfmt::skip]
const FINISH_WORDS: &[&str] = &[
    "unspecified", "stop", "max_tokens", "safety", "recitation", "other", "safety", "safety", "safety", "safety", "safety", "safety",
    "safety", "recitation", "safety", "safety",
];

/// The longest value of an enum that is taken for a reason.
const REASON_BYTES_MAX: usize = 48;

pub(super) static READER: Reader = Reader {
    name: "gemini",
    providers: "Gemini, Vertex AI",
    // Events of interactions hold the interaction.
    wrappers: &["interaction"],
    reasons: &[
        finish("candidates[].finishReason", "finishReason"),
        finish("candidates[].finish_reason", "finish_reason"),
        ReasonAt::ending("serverContent.turnCompleteReason", "turnCompleteReason", "gemini_safety"),
        ReasonAt::ending("server_content.turn_complete_reason", "turn_complete_reason", "gemini_safety"),
        // The Live API has no other word for the end.
        complete("serverContent.turnComplete", "stop"),
        complete("server_content.turn_complete", "stop"),
        complete("toolCall", "tool_calls"),
        complete("tool_call", "tool_calls"),
        block("promptFeedback.blockReason", "promptFeedback.blockReason"),
        block("prompt_feedback.block_reason", "prompt_feedback.block_reason"),
    ],
    calls: &[
        CallsAt { path: "candidates[].content.parts[].functionCall", ..CallsAt::BLANK },
        CallsAt { path: "candidates[].content.parts[].function_call", ..CallsAt::BLANK },
        CallsAt { path: "toolCall.functionCalls[]", ..CallsAt::BLANK },
        CallsAt { path: "tool_call.function_calls[]", ..CallsAt::BLANK },
        CallsAt::blocks("steps[]"),
        CallsAt::blocks("outputs[]"),
        CallsAt { kind: CallsKind::Pieces, ..CallsAt::blocks("delta") },
    ],
    texts: &["candidates[].content.parts[]", "serverContent.modelTurn.parts[]"],
    ..Reader::BLANK
};

/// Returns whether a text is a value of the enum, known or new, other than the unspecified. Such a value quotes nobody.
fn is_reason(text: &str) -> bool {
    let word = text.rsplit('.').next().unwrap_or(text);
    let is_word = (1..=REASON_BYTES_MAX).contains(&text.len()) && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_word && !word.is_empty() && !word.ends_with("_UNSPECIFIED")
}

/// Any reason but the unspecified blocks the prompt.
pub(super) fn blocked(reason: Value<'_>, _: Value<'_>) -> Option<Found> {
    let input = Some(Stage::Input);
    if let Some(number) = whole(reason).filter(|number| (1..=10).contains(number)) {
        return Some(Found::of(ReasonValue::Number(number), Category::Safety, input));
    }
    let text = text_of(reason)?;
    match Ending::of(&text) {
        Ending::Stop { category, shown } => Some(Found::text(shown, category, input)),
        _ if is_reason(&text) => Some(Found::text(text, Category::Safety, input)),
        _ => None,
    }
}
