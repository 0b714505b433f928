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

    #[test]
    fn usage_is_read_in_every_dialect() {
        for (body, expected) in [
            (r#"{"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}"#, Some(12)),
            (r#"{"usage":{"prompt_tokens":5,"completion_tokens":7}}"#, Some(12)),
            (r#"{"usage":{"input_tokens":5,"output_tokens":7,"total_tokens":null}}"#, Some(12)),
            (
                r#"{"type":"message","usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":30,"cache_read_input_tokens":400}}"#,
                Some(433),
            ),
            (r#"{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"totalTokenCount":9}}"#, Some(9)),
            (r#"{"usage_metadata":{"prompt_token_count":1,"candidates_token_count":2}}"#, Some(3)),
            (r#"{"usage":null,"usageMetadata":{"totalTokenCount":9}}"#, Some(9)),
            (r#"{"usage":{"total_tokens":18446744073709551616999}}"#, Some(TOKENS_MAX)),
            (r#"{"usage":{"input_tokens":900000000,"output_tokens":900000000}}"#, Some(TOKENS_MAX)),
            (r#"{"usage":{"total_tokens":0}}"#, Some(0)),
            (r#"{"usage":{"total_tokens":-1}}"#, None),
            (r#"{"usage":{"total_tokens":1.5}}"#, None),
            (r#"{"usage":{"total_tokens":1e3}}"#, None),
            (r#"{"usage":{"total_tokens":100000000000000000000000.5}}"#, None),
            (r#"{"usage":{"total_tokens":1000000000000000000000e0}}"#, None),
            (r#"{"usage":{"total_tokens":"12"}}"#, None),
            (r#"{"usage":[1]}"#, None),
            (r#"{"usage":{"inputTokens":5,"outputTokens":7,"totalTokens":12}}"#, Some(12)),
            (r#"[{"message":{"usage":{"input_tokens":5,"output_tokens":1}}},{"usage":{"output_tokens":7}}]"#, Some(12)),
            (r#"[{"usage":{"total_tokens":3}},{"response":{"usage":{"total_tokens":12}}},{"usage":null}]"#, Some(12)),
            (r#"{"usage":{}}"#, None),
            ("{}", None),
        ] {
            let mut parser = Parser::new();
            let value = parser.parse(body.as_bytes(), 64).unwrap();
            assert_eq!(tokens_of(&ModelBody::Response(value)).map(|tokens| tokens.total), expected, "{body}");
            assert_eq!(tokens_of(&ModelBody::Error(value)), None);
        }
        for body in [
            r#"{"type":"ai","usage_metadata":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}"#,
            r#"{"type":"ai","data":{"usage_metadata":{"total_tokens":3}}}"#,
            r#"{"lc":1,"kwargs":{"usage_metadata":{"input_tokens":1,"output_tokens":2}}}"#,
        ] {
            let mut parser = Parser::new();
            let tokens = tokens_of(&ModelBody::Message(parser.parse(body.as_bytes(), 64).unwrap())).unwrap();
            assert_eq!(tokens.total, 3, "{body}");
        }
    }

    #[test]
    fn cached_reasoning_and_audio_tokens_are_read_apart() {
        // Of each dialect: the body, and total, cached, reasoning and audio tokens.
        for (body, expected) in [
            (
                r#"{"usage":{"prompt_tokens":90,"completion_tokens":10,"total_tokens":100,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":5},"completion_tokens_details":{"reasoning_tokens":7,"audio_tokens":2}}}"#,
                [100, 64, 7, 7],
            ),
            (
                r#"{"usage":{"input_tokens":9,"output_tokens":5,"input_tokens_details":{"cached_tokens":8},"output_tokens_details":{"reasoning_tokens":4}}}"#,
                [14, 8, 4, 0],
            ),
            (
                r#"{"usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":30,"cache_read_input_tokens":400}}"#,
                [433, 400, 0, 0],
            ),
            (
                r#"{"usage":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":50,"cacheWriteInputTokens":6,"totalTokens":59}}"#,
                [59, 50, 0, 0],
            ),
            (
                r#"{"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":3,"thoughtsTokenCount":9,"cachedContentTokenCount":16,"promptTokensDetails":[{"modality":"TEXT","tokenCount":12},{"modality":"AUDIO","tokenCount":8}],"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":1}]}}"#,
                [32, 16, 9, 9],
            ),
            (
                r#"{"usage_metadata":{"total_token_count":32,"thoughts_token_count":9,"cached_content_token_count":16,"prompt_tokens_details":[{"modality":"AUDIO","token_count":8}]}}"#,
                [32, 16, 9, 8],
            ),
            (r#"{"usage":{"total_tokens":9,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":1}}"#, [9, 6, 0, 0]),
            (r#"{"usage":{"total_tokens":9,"cached_tokens":6}}"#, [9, 6, 0, 0]),
            (
                r#"{"usage":{"billed_units":{"input_tokens":1},"tokens":{"input_tokens":5,"output_tokens":7},"cached_tokens":2}}"#,
                [12, 2, 0, 0],
            ),
            (r#"{"usage":{"inputTokens":5,"outputTokens":7,"reasoningTokens":3,"cachedInputTokens":4}}"#, [12, 4, 3, 0]),
            (
                r#"{"usage":{"inputTokens":5,"inputTokenDetails":{"cacheReadTokens":4},"outputTokens":7,"outputTokenDetails":{"reasoningTokens":3}}}"#,
                [12, 4, 3, 0],
            ),
            (r#"{"Response":{"Usage":{"TotalTokens":3}}}"#, [3, 0, 0, 0]),
            (r#"[{"messageStop":{}},{"metadata":{"usage":{"totalTokens":3,"cacheReadInputTokens":1}}}]"#, [3, 1, 0, 0]),
            // A number in the wrong object, or that is none, is not read.
            (
                r#"{"usage":{"total_tokens":9,"audio":4,"completion_tokens_details":{"cached_tokens":5},"prompt_tokens_details":null}}"#,
                [9, 0, 0, 0],
            ),
            (r#"{"usage":{"total_tokens":9,"prompt_tokens_details":{"cached_tokens":"5","audio_tokens":-1}}}"#, [9, 0, 0, 0]),
        ] {
            let mut parser = Parser::new();
            let tokens = tokens_of(&ModelBody::Response(parser.parse(body.as_bytes(), 64).unwrap())).unwrap();
            assert_eq!([tokens.total, tokens.cached, tokens.reasoning, tokens.audio], expected, "{body}");
        }
        let langchain = r#"{"type":"ai","usage_metadata":{"input_tokens":5,"output_tokens":7,"total_tokens":12,
            "input_token_details":{"cache_read":4,"audio":1},"output_token_details":{"reasoning":3,"audio":2}}}"#;
        let mut parser = Parser::new();
        let tokens = tokens_of(&ModelBody::Message(parser.parse(langchain.as_bytes(), 64).unwrap()));
        assert_eq!(tokens, Some(Tokens { total: 12, cached: 4, reasoning: 3, audio: 3 }));
    }
}
