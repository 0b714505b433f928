//! The words that stay, because a decision reads them: what tells a failure in a result, why a response ended, and the names of fields.

use crate::decide::safety::{ReasonSet, WORDS, default_reasons};

/// The members by which a result that is an object tells of a failure.
pub(super) const RESULT_MEMBERS: [&[u8]; 4] = [b"exit_code", b"error", b"success", b"failed"];

/// The words that tell of a failure wherever they stand in a result, in any case. A quote is the end of the text too.
const FAILURE_WORDS: [&str; 4] = ["traceback", "\"error\"", "\"failed\"", "exceed the limit"];

/// The word that tells of a failure at the beginning of a result.
const FIRST_WORD: &str = "error";

/// The Kelvin sign, which is a `k` in lower case.
const KELVIN: u32 = 0x212a;

/// Returns which characters of a result's text belong to words that tell of a failure; an empty list if none does.
pub(super) fn failure_words(codes: &[u32]) -> Vec<bool> {
    let quote = [u32::from('"')];
    let lower = |code: &u32| match *code {
        KELVIN => u32::from('k'),
        code => char::from_u32(code).map_or(code, |character| u32::from(character.to_ascii_lowercase())),
    };
    let quoted: Vec<u32> = quote.iter().chain(codes).chain(&quote).map(lower).collect();
    let mut stays = Vec::new();
    let mut keep = |from: usize, to: usize| {
        stays.resize(codes.len(), false);
        stays.iter_mut().take(to).skip(from).for_each(|place: &mut bool| *place = true);
    };
    for word in FAILURE_WORDS {
        let first = word.bytes().next().map(u32::from);
        for at in quoted.iter().enumerate().filter(|(_, code)| Some(**code) == first).map(|(at, _)| at) {
            let rest = quoted.iter().skip(at).copied();
            if rest.len() >= word.len() && rest.zip(word.bytes()).all(|(code, byte)| code == u32::from(byte)) {
                // The first quote is no part of the text.
                keep(at.saturating_sub(1), at + word.len() - 1);
            }
        }
    }
    if codes.len() >= FIRST_WORD.len() && quoted.iter().skip(1).zip(FIRST_WORD.bytes()).all(|(code, byte)| *code == u32::from(byte)) {
        keep(0, FIRST_WORD.len() + usize::from(codes.get(FIRST_WORD.len()) == Some(&u32::from(':'))));
    }
    stays
}

/// The reasons why responses end otherwise than by a safety stop, in the words of the providers.
#[rustfmt::skip]
const ORDINARY_REASONS: &[&str] = &[
    "stop", "length", "tool_calls", "function_call", "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn",
    "model_context_window_exceeded", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "LANGUAGE", "FINISH_REASON_UNSPECIFIED", "eos",
    "error", "null",
];

/// Returns the reasons that stay: those that detectors know by default, the ordinary ones, the words of safety stops, and `others`.
pub(super) fn reasons<S: AsRef<str>>(others: impl IntoIterator<Item = S>) -> ReasonSet {
    let known = [ORDINARY_REASONS, WORDS].into_iter().flatten().map(|reason| (*reason).to_owned());
    let others = others.into_iter().map(|reason| reason.as_ref().to_owned());
    ReasonSet::new(known.chain(default_reasons()).chain(others))
}

/// Returns whether a word is one that verdicts repeat of a provider's ratings.
pub(super) fn is_rating(word: &str) -> bool {
    WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The hints at a provider.
pub(super) const PROVIDERS: [&str; 3] = ["openai", "anthropic", "gemini"];

/// The other types of blocks that are known.
pub(super) const BLOCK_TYPES: [&str; 5] = ["text", "thinking", "server_tool_use", "mcp_tool_use", "refusal"];

/// What Gemini counts the tokens of apart.
pub(super) const MODALITIES: [&str; 5] = ["TEXT", "IMAGE", "VIDEO", "AUDIO", "DOCUMENT"];

#[cfg(test)]
mod tests {
    use super::super::alphabet::characters;
    use super::*;

    #[test]
    fn the_default_reasons_of_every_dialect_stay() {
        let kept = reasons::<&str>([]);
        for reason in ["content_filter", "refusal", "IMAGE_RECITATION", "stop"] {
            assert!(kept.find(reason).is_some(), "{reason}");
        }
        assert!(kept.find("a reason of nobody").is_none());
    }

    #[test]
    fn words_that_tell_of_a_failure_are_found_in_any_case_and_at_the_ends() {
        for (text, kept) in [
            ("all well", ""),
            ("a Traceback (most", "Traceback"),
            ("x \"ERROR\": 1", "\"ERROR\""),
            ("error", "error"),
            ("Error: x", "Error:"),
            ("Errors", "Error"),
            ("an error x", ""),
            ("tracebac\u{212a} x", "tracebac\u{212a}"),
            ("Failed", "Failed"),
            ("x \"failed", "\"failed"),
            ("it would exceed the limit.", "exceed the limit"),
            ("err", ""),
            ("", ""),
        ] {
            let codes = characters(text.as_bytes());
            let stays = failure_words(&codes);
            let found: String = text.chars().zip(&stays).filter(|(_, stays)| **stays).map(|(character, _)| character).collect();
            assert_eq!(found, kept, "{text}");
            assert!(stays.is_empty() || stays.len() == codes.len());
        }
    }
}
