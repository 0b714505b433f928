//! The tokens of a model's response, as its usage reports them, in the dialects that are read.

use std::num::IntErrorKind;
use std::ops::Range;

use crate::decide::safety::unwrap_message;
use crate::event::decode::ModelBody;
use tollgate_json::Value;

/// The most tokens of one response. No model writes as many, so that a larger number is an error or a lie.
pub const TOKENS_MAX: u64 = 1_000_000_000;

/// The members of a usage that are read: the spellings of the sum, of the input, of the output, and of what Anthropic counts apart from the
/// input, which is what it writes to its cache and what it reads there.
pub(crate) const USAGE_MEMBERS: [&str; 19] = [
    "total_tokens",
    "totalTokens",
    "TotalTokens",
    "totalTokenCount",
    "total_token_count",
    "input_tokens",
    "inputTokens",
    "PromptTokens",
    "prompt_tokens",
    "promptTokenCount",
    "prompt_token_count",
    "output_tokens",
    "outputTokens",
    "CompletionTokens",
    "completion_tokens",
    "candidatesTokenCount",
    "candidates_token_count",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
];

/// Where a body has its usage: OpenAI, Anthropic and Bedrock; Gemini in JSON and as its Python client spells it.
const NAMES: [&str; 4] = ["usage", "Usage", "usageMetadata", "usage_metadata"];
const TOTAL: Range<usize> = 0..5;
const INPUT: Range<usize> = 5..11;
const OUTPUT: Range<usize> = 11..17;
const CACHE_WRITTEN: Range<usize> = 17..18;
const CACHE_READ: Range<usize> = 18..19;

/// Returns how many tokens a response took, input and output together, at most [`TOKENS_MAX`]; `None` where it does not say. Numbers that are
/// not whole, or below zero, count as not said.
#[must_use]
pub fn tokens_of(body: &ModelBody<'_>) -> Option<u64> {
    let mut found = [None; USAGE_MEMBERS.len()];
    match body {
        ModelBody::Message(message) => read(unwrap_message(*message), &["usage_metadata"], &mut found),
        ModelBody::Response(response) => {
            // Of a stream's events the last that says something counts: some count up, and some split input and output.
            let events = response.items().flat_map(|event| [event.get("message"), event.get("response"), Some(event)]).flatten();
            [*response].into_iter().chain(events).for_each(|holder| read(holder, &NAMES, &mut found));
        }
        ModelBody::Error(_) => return None,
    }
    // The spellings of one thing: the first that is there counts.
    let first = |spellings: Range<usize>| found.get(spellings).into_iter().flatten().copied().flatten().next();
    let sum = || [INPUT, OUTPUT, CACHE_WRITTEN, CACHE_READ].into_iter().filter_map(first).reduce(u64::saturating_add);
    first(TOTAL).or_else(sum).map(|tokens| tokens.min(TOKENS_MAX))
}

/// Reads the first usage of these names that an object has.
fn read(holder: Value<'_>, names: &[&str], found: &mut [Option<u64>; USAGE_MEMBERS.len()]) {
    let Some(usage) = names.iter().find_map(|name| holder.get(name).filter(Value::is_object)) else { return };
    for (name, value) in usage.members() {
        let place = name.as_text().and_then(|name| USAGE_MEMBERS.iter().position(|known| known.as_bytes() == name.as_bytes()));
        if let Some(found) = place.and_then(|place| found.get_mut(place)) {
            *found = whole(value);
        }
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
            assert_eq!(tokens_of(&ModelBody::Response(value)), expected, "{body}");
            assert_eq!(tokens_of(&ModelBody::Error(value)), None);
        }
        for body in [
            r#"{"type":"ai","usage_metadata":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}"#,
            r#"{"type":"ai","data":{"usage_metadata":{"total_tokens":3}}}"#,
            r#"{"lc":1,"kwargs":{"usage_metadata":{"input_tokens":1,"output_tokens":2}}}"#,
        ] {
            let mut parser = Parser::new();
            assert_eq!(tokens_of(&ModelBody::Message(parser.parse(body.as_bytes(), 64).unwrap())), Some(3), "{body}");
        }
    }
}
