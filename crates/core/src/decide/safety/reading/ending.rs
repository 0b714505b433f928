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
    ("blocked", Category::Safety),
    ("contentfilter", Category::Safety),
    ("contentfiltered", Category::Safety),
    ("guardrailintervened", Category::Guardrail),
    ("input_guardrail_triggered", Category::Guardrail),
    ("output_guardrail_triggered", Category::Guardrail),
];

/// The words of responses that ended as they should.
#[rustfmt::skip]
const COMPLETE: &[&str] = &[
    "stop", "end_turn", "tool_calls", "tool_call", "tool-calls", "tool_use", "function_call", "stop_sequence", "eos", "eos_token", "finish",
    "finished", "normal", "complete", "completed", "requires_action", "pause_turn", "compaction", "toolcalls", "functioncall", "endturn",
    "tooluse", "stopsequence",
];

/// The words of responses that were cut off, or whose calls are broken, for another reason than safety.
#[rustfmt::skip]
const CUT: &[&str] = &[
    "length", "max_tokens", "max_output_tokens", "max_len", "max_context", "model_length", "model_context_window_exceeded",
    "context_window_exceeded", "token_limit", "error_limit", "error", "time_limit", "timeout", "abort", "cancelled", "cancelling",
    "user_cancel", "client_cancelled", "turn_detected", "incomplete", "failed", "expired", "network_error", "insufficient_system_resource",
    "malformed_function_call", "malformed_tool_use", "malformed_model_output", "malformed_response", "unexpected_tool_call",
    "too_many_tool_calls", "missing_thought_signature", "maxtokens", "function_call_filter: malformed_function_call",
];

/// The words of responses that are not over yet. xAI's SDK writes `REASON_INVALID` until there is a reason.
const RUNNING: &[&str] = &["in_progress", "queued", "null", "not_finished", "unspecified", "invalid"];

/// The longest text that is read as a chain of different words, in bytes. In a longer text copies of a word are known.
const CHAIN_BYTES_MAX: usize = 512;

/// What SDKs print before the word of an enum.
#[rustfmt::skip]
const PREFIXES: &[&str] = &[
    "finishreason.", "chatfinishreason.", "completionsfinishreason.", "blockedreason.", "blockreason.", "stopreason.", "finish_reason_", "stop_reason_", "turn_complete_reason_", "reason_",
];

impl Ending {
    /// Returns what a word means. Case does not matter, nor blanks around it, nor what an SDK prints before an enum's word. Merging the chunks
    /// of a stream joins their words (`STOPSTOP`, `STOPSAFETY`), of which the strictest counts.
    #[must_use]
    pub fn of(value: &str) -> Self {
        // Nearly every response ends in one of these words, and none of them is the beginning or the copy of another.
        if COMPLETE.contains(&value) {
            return Self::Complete;
        }
        let (value, lower) = (value.trim(), lower(value.trim()));
        let word = bare(&lower);
        // Gemini's endpoint for OpenAI's clients writes its own reason behind this word.
        if let Some(reason) = word.strip_prefix("content_filter:") {
            return match STOPS.iter().find(|(known, _)| *known == reason.trim()) {
                Some((_, category)) => Self::Stop { category: *category, shown: value.to_owned() },
                None => Self::Stop { category: Category::Safety, shown: "content_filter".to_owned() },
            };
        }
        match strictest(&lower) {
            Some(Rank::Stop(at)) => {
                let (known, category) = STOPS.get(at).copied().unwrap_or(("", Category::Safety));
                let is_shown = has_few_copies(word, known) && word.len().is_multiple_of(known.len());
                Self::Stop { category, shown: if is_shown { value } else { known }.to_owned() }
            }
            Some(Rank::Cut) => Self::Cut,
            Some(Rank::Complete) => Self::Complete,
            Some(Rank::Running) => Self::Running,
            Some(Rank::Nothing) | None => Self::Unknown,
        }
    }
}

/// What a piece of a text for the end means, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Nothing,
    Running,
    Complete,
    Cut,
    /// The stop at this place of [`STOPS`].
    Stop(usize),
}

/// Returns a word without what an SDK prints before it.
pub(super) fn bare(word: &str) -> &str {
    let rest = |prefix: &&str| Some(word.split_at_checked(prefix.len())?).filter(|(start, _)| start.eq_ignore_ascii_case(prefix));
    PREFIXES.iter().find_map(rest).map_or(word, |(_, rest)| rest)
}

/// Returns whether a text quotes nobody, since it consists of known words.
pub(super) fn is_known_words(text: &str) -> bool {
    strictest(&lower(text.trim())).is_some_and(|rank| rank != Rank::Nothing)
}

/// Returns the strictest word of a text that consists of known words and of what SDKs print before them; `None` for any other text.
fn strictest(text: &str) -> Option<Rank> {
    let stops = STOPS.iter().enumerate().map(|(at, (word, _))| (*word, Rank::Stop(at)));
    let words = [(Rank::Complete, COMPLETE), (Rank::Cut, CUT), (Rank::Running, RUNNING), (Rank::Nothing, PREFIXES)];
    let words = words.into_iter().flat_map(|(rank, words)| words.iter().map(move |word| (*word, rank))).chain(stops);
    if text.len() > CHAIN_BYTES_MAX {
        return words.clone().find(|(word, _)| is_repetition(text, word)).map(|(_, rank)| rank);
    }
    // The strictest reading of each beginning of the text: a word may begin with another word.
    let text = text.as_bytes();
    let mut read = vec![None; text.len() + 1];
    *read.first_mut()? = Some(Rank::Nothing);
    for at in 0..text.len() {
        let Some(before) = read.get(at).copied().flatten() else { continue };
        let rest = text.get(at..)?;
        for (word, rank) in words.clone().filter(|(word, _)| rest.starts_with(word.as_bytes())) {
            let place = read.get_mut(at + word.len())?;
            *place = (*place).max(Some(rank.max(before)));
        }
    }
    read.pop()?
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
            ("STOPSAFETY", Category::Safety),
            ("FinishReason.STOPFinishReason.SPII", Category::Pii),
            ("tool_callscontent_filterstop", Category::Safety),
            (" refusal\n", Category::Refusal),
            ("CompletionsFinishReason.CONTENT_FILTERED", Category::Safety),
            ("ContentFilter", Category::Safety),
        ] {
            assert!(matches!(Ending::of(value), Ending::Stop { category: found, .. } if found == category), "{value}");
        }
        assert!(STOPS.iter().all(|(word, _)| matches!(Ending::of(&word.repeat(3)), Ending::Stop { .. })));
        // The Kelvin sign is a `k` in lower case, as configured lists are compared too.
        assert!(is_stop_word("BLOCKLIST") && matches!(Ending::of("BLOC\u{212a}LIST"), Ending::Stop { .. }));
        assert!(COMPLETE.iter().all(|word| Ending::of(word) == Ending::Complete && !is_stop_word(word)));
        for value in ["stop", "STOPSTOP", "FinishReason.STOP", "REASON_TOOL_CALLS", "eos_token", "nullstop", "stopstop_sequence"] {
            assert_eq!(Ending::of(value), Ending::Complete, "{value}");
        }
        for value in [
            "length",
            "MAX_TOKENS",
            "REASON_MAX_LEN",
            "function_call_filter: MALFORMED_FUNCTION_CALL",
            "failed",
            "USER_CANCEL",
            "stoplength",
        ] {
            assert_eq!(Ending::of(value), Ending::Cut, "{value}");
        }
        for value in ["in_progress", "null", "nullnull", "FINISH_REASON_UNSPECIFIED", "FinishReason.UNSPECIFIED", "REASON_INVALID"] {
            assert_eq!(Ending::of(value), Ending::Running, "{value}");
        }
        for value in ["", " ", "OTHER", "LANGUAGE", "NO_IMAGE", "filter", "content_filters", "FinishReason.", "stopOTHERsafety"] {
            assert_eq!(Ending::of(value), Ending::Unknown, "{value}");
        }
    }

    #[test]
    fn nothing_but_known_words_is_shown() {
        assert!(["STOPSAFETY", " refusal\n", "FinishReason.STOP"].into_iter().all(is_known_words));
        assert!(!["content_filter: card 4111", "OTHER", "", "FinishReason."].into_iter().any(is_known_words));
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
