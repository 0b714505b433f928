//! The tokens of a model's response, as its usage reports them, in the dialects that are read.

use std::num::IntErrorKind;

use crate::decide::safety::unwrap_message;
use crate::event::decode::ModelBody;
use tollgate_json::Value;

use Count::{AudioIn, AudioOut, CacheRead, CacheWritten, CachedInput, Input, Output, Reasoning, Thoughts, Total};
use Part::{OfInput, OfOutput, Whole};

/// The most tokens of one response. No model writes as many, so that a larger number is an error or a lie.
pub const TOKENS_MAX: u64 = 1_000_000_000;

/// How many tokens a response took, each number at most [`TOKENS_MAX`]. A number that the response does not say is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input and output together.
    pub total: u64,
    /// The part of the input that the provider read from its cache.
    pub cached: u64,
    /// The part of the output that the model thought and did not say.
    pub reasoning: u64,
    /// The part of input and output that is sound.
    pub audio: u64,
}

/// What a number of a usage counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Total,
    Input,
    Output,
    /// What Anthropic and Bedrock write to the cache, and count apart from the input.
    CacheWritten,
    /// What they read from the cache, and count apart from the input.
    CacheRead,
    /// What others read from the cache, as a part of the input.
    CachedInput,
    Reasoning,
    /// What Gemini's models think, which is counted apart from the output.
    Thoughts,
    AudioIn,
    AudioOut,
}

/// The object of a usage that a number stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    OfInput,
    OfOutput,
}

/// The numbers that are read. Of the spellings of one count the first in this order that is there counts.
const NUMBERS: &[(Part, &str, Count)] = &[
    (Whole, "total_tokens", Total),
    (Whole, "totalTokens", Total),
    (Whole, "TotalTokens", Total),
    (Whole, "totalTokenCount", Total),
    (Whole, "total_token_count", Total),
    (Whole, "input_tokens", Input),
    (Whole, "inputTokens", Input),
    (Whole, "PromptTokens", Input),
    (Whole, "prompt_tokens", Input),
    (Whole, "promptTokenCount", Input),
    (Whole, "prompt_token_count", Input),
    (Whole, "output_tokens", Output),
    (Whole, "outputTokens", Output),
    (Whole, "CompletionTokens", Output),
    (Whole, "completion_tokens", Output),
    (Whole, "candidatesTokenCount", Output),
    (Whole, "candidates_token_count", Output),
    (Whole, "cache_creation_input_tokens", CacheWritten),
    (Whole, "cacheWriteInputTokens", CacheWritten),
    (Whole, "cache_read_input_tokens", CacheRead),
    (Whole, "cacheReadInputTokens", CacheRead),
    // OpenAI and the Realtime API, LangChain, the Vercel AI SDK.
    (OfInput, "cached_tokens", CachedInput),
    (OfInput, "cache_read", CachedInput),
    (OfInput, "cacheReadTokens", CachedInput),
    // DeepSeek; Moonshot and Cohere; Gemini; the Vercel AI SDK; xAI's own SDK.
    (Whole, "prompt_cache_hit_tokens", CachedInput),
    (Whole, "cached_tokens", CachedInput),
    (Whole, "cachedContentTokenCount", CachedInput),
    (Whole, "cached_content_token_count", CachedInput),
    (Whole, "cachedInputTokens", CachedInput),
    (Whole, "cached_prompt_text_tokens", CachedInput),
    (OfOutput, "reasoning_tokens", Reasoning),
    (OfOutput, "reasoning", Reasoning),
    (OfOutput, "reasoningTokens", Reasoning),
    (Whole, "reasoning_tokens", Reasoning),
    (Whole, "reasoningTokens", Reasoning),
    (Whole, "thoughtsTokenCount", Thoughts),
    (Whole, "thoughts_token_count", Thoughts),
    (OfInput, "audio_tokens", AudioIn),
    (OfInput, "audio", AudioIn),
    (OfInput, AUDIO, AudioIn),
    (OfOutput, "audio_tokens", AudioOut),
    (OfOutput, "audio", AudioOut),
    (OfOutput, AUDIO, AudioOut),
];

/// The objects within a usage that hold numbers. Gemini has an array of an object for each modality.
const PARTS: &[(&str, Part)] = &[
    ("prompt_tokens_details", OfInput),
    ("input_tokens_details", OfInput),
    ("input_token_details", OfInput),
    ("inputTokenDetails", OfInput),
    ("promptTokensDetails", OfInput),
    ("completion_tokens_details", OfOutput),
    ("output_tokens_details", OfOutput),
    ("output_token_details", OfOutput),
    ("outputTokenDetails", OfOutput),
    ("candidatesTokensDetails", OfOutput),
    ("candidates_tokens_details", OfOutput),
    ("responseTokensDetails", OfOutput),
    ("response_tokens_details", OfOutput),
];

/// The modality of sound, the member that names a modality, and the spellings of its number.
const AUDIO: &str = "AUDIO";
const MODALITY: &str = "modality";
const OF_MODALITY: [&str; 2] = ["tokenCount", "token_count"];

/// Cohere's object with the numbers of its usage, beside those that it bills.
const COUNTED: &str = "tokens";

/// Where a body has its usage: OpenAI, Anthropic and Bedrock; Tencent; Gemini in JSON and as its Python client spells it.
const NAMES: [&str; 4] = ["usage", "Usage", "usageMetadata", "usage_metadata"];
/// What holds the usage in events of streams: Anthropic, OpenAI Responses, Bedrock.
const HOLDERS: [&str; 3] = ["message", "response", "metadata"];

/// The numbers that were found, in the order of [`NUMBERS`].
type Found = [Option<u64>; NUMBERS.len()];

/// Returns how many tokens a response took; `None` where it says nothing of them. Numbers that are not whole, or below zero, count as not said.
#[must_use]
pub fn tokens_of(body: &ModelBody<'_>) -> Option<Tokens> {
    let mut found: Found = [None; NUMBERS.len()];
    match body {
        ModelBody::Message(message) => read(unwrap_message(*message), &["usage_metadata"], &mut found),
        ModelBody::Response(response) => {
            // Of a stream's events the last that says something counts: some count up, and some split input and output.
            let events = response.items().flat_map(|event| HOLDERS.map(|name| event.get(name)).into_iter().flatten().chain([event]));
            let holders = [Some(*response), response.get("Response")].into_iter().flatten().chain(events);
            holders.for_each(|holder| read(holder, &NAMES, &mut found));
        }
        ModelBody::Error(_) => return None,
    }
    let first = |count: Count| NUMBERS.iter().zip(&found).find_map(|((_, _, of), number)| number.filter(|_| *of == count));
    let sum = |counts: &[Count]| counts.iter().filter_map(|count| first(*count)).reduce(u64::saturating_add);
    found.iter().any(Option::is_some).then_some(())?;
    let bounded = |number: Option<u64>| number.unwrap_or_default().min(TOKENS_MAX);
    Some(Tokens {
        total: bounded(first(Total).or_else(|| sum(&[Input, Output, CacheWritten, CacheRead, Thoughts]))),
        cached: bounded(first(CacheRead).or_else(|| first(CachedInput))),
        reasoning: bounded(first(Reasoning).or_else(|| first(Thoughts))),
        audio: bounded(sum(&[AudioIn, AudioOut])),
    })
}

/// Returns whether a member of a usage is read, or leads to what is read.
pub(crate) fn is_usage_member(name: &str) -> bool {
    let is_number = NUMBERS.iter().any(|(_, known, _)| *known == name);
    is_number || PARTS.iter().any(|(known, _)| *known == name) || [COUNTED, MODALITY].contains(&name) || OF_MODALITY.contains(&name)
}

/// Reads the first usage of these names that an object has.
fn read(holder: Value<'_>, names: &[&str], found: &mut Found) {
    let Some(usage) = names.iter().find_map(|name| holder.get(name).filter(Value::is_object)) else { return };
    [Some(usage), usage.get(COUNTED)].into_iter().flatten().for_each(|usage| read_part(Whole, usage, found));
}

fn read_part(part: Part, object: Value<'_>, found: &mut Found) {
    for (name, value) in object.members() {
        let name = name.text_bytes();
        match PARTS.iter().find(|(known, _)| part == Whole && known.as_bytes() == &*name) {
            Some((_, inner)) => {
                read_part(*inner, value, found);
                value.items().for_each(|item| read_modality(*inner, item, found));
            }
            None => note(part, &name, value, found),
        }
    }
}

fn read_modality(part: Part, item: Value<'_>, found: &mut Found) {
    let number = OF_MODALITY.iter().find_map(|name| item.get(name));
    if let (Some(modality), Some(number)) = (item.get(MODALITY), number) {
        note(part, &modality.text_bytes(), number, found);
    }
}

fn note(part: Part, name: &[u8], value: Value<'_>, found: &mut Found) {
    let place = NUMBERS.iter().position(|(of, known, _)| *of == part && known.as_bytes() == name);
    if let Some(found) = place.and_then(|place| found.get_mut(place)) {
        *found = whole(value);
    }
}

/// Returns a whole number. One that is too large is the largest there is.
fn whole(value: Value<'_>) -> Option<u64> {
    let digits = value.source();
    if value.as_text().is_some() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    match std::str::from_utf8(digits).ok()?.parse() {
        Ok(number) => Some(number),
        Err(error) => (*error.kind() == IntErrorKind::PosOverflow).then_some(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::Parser;

    /// A row is a response or a message, with the tokens that are read of it. The bodies are texts, so that numbers stay as they are written.
    #[test]
    fn usage_is_read_in_every_dialect() {
        for row in include_str!("../../../tests/fixtures/usage.jsonl").lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let body = row["response"].as_str().or(row["message"].as_str()).unwrap();
            let mut parser = Parser::new();
            let value = parser.parse(body.as_bytes(), 64).unwrap();
            let tokens = tokens_of(&if row["response"].is_string() { ModelBody::Response(value) } else { ModelBody::Message(value) });
            assert_eq!(row["total"].as_u64(), tokens.as_ref().map(|tokens| tokens.total), "{row}");
            for (kind, read) in tokens.iter().flat_map(|t| [("cached", t.cached), ("reasoning", t.reasoning), ("audio", t.audio)]) {
                assert!(row.get(kind).is_none_or(|expected| *expected == read), "{kind}: {row}");
            }
            assert_eq!(tokens_of(&ModelBody::Error(value)), None);
        }
    }
}
