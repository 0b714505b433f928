//! The words for why a response ended, whoever writes them.

use std::borrow::Cow;

use crate::decide::safety::Category;
use crate::decide::safety::reasons::{has_few_copies, is_repetition};

/// What a word for the end of a response means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// A safety system stopped the response.
    Stop {
        /// The kind of safety stop.
        category: Category,
        /// The word, in the provider's spelling where nothing but known words is in it.
        shown: String,
    },
    /// The response ended as it should.
    Complete,
    /// The response was cut off for another reason, so that its calls may be incomplete.
    Cut,
    /// The response is not over yet.
    Running,
    /// The word is not known, so that it does not show that the response is over.
    Unknown,
}

/// The words of safety stops, without case, and what they mean.
pub(super) const STOPS: &[(&str, Category)] = &[
    ("content_filter", Category::Safety),
    ("content-filter", Category::Safety),
    ("content_filtered", Category::Safety),
    ("sensitive", Category::Safety),
    ("safety", Category::Safety),
    ("image_safety", Category::Safety),
    ("generated_content_safety", Category::Safety),
    ("generated_audio_safety", Category::Safety),
    ("generated_video_safety", Category::Safety),
    ("input_text_safety", Category::Safety),
    ("error_toxic", Category::Safety),
    ("escalation", Category::Safety),
    ("guardrail_intervened", Category::Guardrail),
    ("model_armor", Category::Guardrail),
    ("refusal", Category::Refusal),
    ("recitation", Category::Recitation),
    ("image_recitation", Category::Recitation),
    ("blocklist", Category::Blocklist),
    ("generated_content_blocklist", Category::Blocklist),
    ("prohibited_content", Category::Prohibited),
    ("image_prohibited_content", Category::Prohibited),
    ("generated_content_prohibited", Category::Prohibited),
    ("spii", Category::Pii),
    ("jailbreak", Category::Jailbreak),
];

/// The words of responses that ended as they should.
#[rustfmt::skip]
const COMPLETE: &[&str] = &[
    "stop", "end_turn", "tool_calls", "tool_call", "tool-calls", "tool_use", "function_call", "stop_sequence", "eos", "eos_token", "finish",
    "finished", "normal", "complete", "completed", "requires_action", "pause_turn",
];

/// The words of responses that were cut off, or whose calls are broken, for another reason than safety.
#[rustfmt::skip]
const CUT: &[&str] = &[
    "length", "max_tokens", "max_output_tokens", "max_len", "max_context", "model_length", "model_context_window_exceeded",
    "context_window_exceeded", "token_limit", "error_limit", "error", "time_limit", "timeout", "abort", "cancelled", "cancelling",
    "user_cancel", "client_cancelled", "turn_detected", "incomplete", "failed", "expired", "network_error", "insufficient_system_resource",
    "malformed_function_call", "malformed_tool_use", "malformed_model_output", "malformed_response", "unexpected_tool_call",
    "too_many_tool_calls", "missing_thought_signature", "function_call_filter: malformed_function_call",
];

/// The words of responses that are not over yet. xAI's SDK writes `REASON_INVALID` until there is a reason.
const RUNNING: &[&str] = &["in_progress", "queued", "null", "not_finished", "unspecified", "invalid"];

/// The words that are no stops, with what they mean.
const WORDS: &[(Ending, &[&str])] = &[(Ending::Complete, COMPLETE), (Ending::Cut, CUT), (Ending::Running, RUNNING)];

/// What SDKs print before the word of an enum.
#[rustfmt::skip]
const PREFIXES: &[&str] = &[
    "finishreason.", "blockedreason.", "blockreason.", "stopreason.", "finish_reason_", "stop_reason_", "turn_complete_reason_", "reason_",
];

impl Ending {
    /// Returns what a word means. Case does not matter, nor what an SDK prints before an enum's word. Merging the chunks of a stream
    /// repeats a word (`STOPSTOP`), so several copies of a word count as that word.
    #[must_use]
    pub fn of(value: &str) -> Self {
        // Nearly every response ends in one of these words, and none of them is the beginning or the copy of another.
        if COMPLETE.contains(&value) {
            return Self::Complete;
        }
        let lower = lower(value);
        let word = PREFIXES.iter().find_map(|prefix| lower.strip_prefix(prefix)).filter(|word| !word.is_empty()).unwrap_or(&lower);
        if let Some((known, category)) = STOPS.iter().find(|(known, _)| is_repetition(word, known)) {
            return Self::Stop { category: *category, shown: if has_few_copies(word, known) { value } else { known }.to_owned() };
        }
        // Gemini's endpoint for OpenAI's clients writes its own reason behind this word.
        if let Some(reason) = word.strip_prefix("content_filter:") {
            return match STOPS.iter().find(|(known, _)| *known == reason.trim()) {
                Some((_, category)) => Self::Stop { category: *category, shown: value.to_owned() },
                None => Self::Stop { category: Category::Safety, shown: "content_filter".to_owned() },
            };
        }
        let known = WORDS.iter().find(|(_, words)| words.iter().any(|known| is_repetition(word, known)));
        known.map_or(Self::Unknown, |(ending, _)| ending.clone())
    }
}

fn lower(value: &str) -> Cow<'_, str> {
    let is_lower = value.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(value) } else { Cow::Owned(value.to_lowercase()) }
}

/// Returns whether every spelling and every repetition of a word is [`Ending::Stop`].
pub(in crate::decide::safety) fn is_stop_word(word: &str) -> bool {
    let word = lower(word);
    STOPS.iter().any(|(known, _)| *known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_in_every_spelling() {
        for (value, category) in [
            ("content_filter", Category::Safety),
            ("Content_Filter", Category::Safety),
            ("FinishReason.SAFETY", Category::Safety),
            ("SAFETYSAFETY", Category::Safety),
            ("content_filter: PROHIBITED_CONTENT", Category::Prohibited),
            ("content_filter: what the user wrote", Category::Safety),
            ("REASON_CONTENT_FILTER", Category::Safety),
            ("BlockedReason.BLOCKLIST", Category::Blocklist),
        ] {
            assert!(matches!(Ending::of(value), Ending::Stop { category: found, .. } if found == category), "{value}");
        }
        assert!(STOPS.iter().all(|(word, _)| matches!(Ending::of(&word.repeat(3)), Ending::Stop { .. })));
        // The Kelvin sign is a `k` in lower case, as configured lists are compared too.
        assert!(is_stop_word("BLOCKLIST") && matches!(Ending::of("BLOC\u{212a}LIST"), Ending::Stop { .. }));
        assert!(COMPLETE.iter().all(|word| Ending::of(word) == Ending::Complete && !is_stop_word(word)));
        for value in ["stop", "STOPSTOP", "FinishReason.STOP", "REASON_TOOL_CALLS", "eos_token"] {
            assert_eq!(Ending::of(value), Ending::Complete, "{value}");
        }
        for value in ["length", "MAX_TOKENS", "REASON_MAX_LEN", "function_call_filter: MALFORMED_FUNCTION_CALL", "failed", "USER_CANCEL"] {
            assert_eq!(Ending::of(value), Ending::Cut, "{value}");
        }
        for value in ["in_progress", "null", "nullnull", "FINISH_REASON_UNSPECIFIED", "FinishReason.UNSPECIFIED", "REASON_INVALID"] {
            assert_eq!(Ending::of(value), Ending::Running, "{value}");
        }
        for value in ["", "OTHER", "LANGUAGE", "NO_IMAGE", "filter", "content_filters", "safety ", "FinishReason.", "content_filterSAFETY"]
        {
            assert_eq!(Ending::of(value), Ending::Unknown, "{value}");
        }
    }

    #[test]
    fn nothing_but_known_words_is_shown() {
        for (value, expected) in [
            ("content_filter: card 4111", "content_filter"),
            ("content_filter: SPII", "content_filter: SPII"),
            ("FinishReason.SPII", "FinishReason.SPII"),
        ] {
            let Ending::Stop { shown, .. } = Ending::of(value) else { panic!("{value}") };
            assert_eq!(shown, expected);
        }
        let Ending::Stop { shown, .. } = Ending::of(&"SAFETY".repeat(9)) else { panic!() };
        assert_eq!(shown, "safety");
    }
}
