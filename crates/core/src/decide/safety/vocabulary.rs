//! The words that verdicts repeat of what a provider says beside a safety stop: the names and values of the providers' ratings and filters.
//!
//! A provider may put a text of its own there, and that may quote what the user or the model wrote. So anything but a known word is written
//! as `other:` and the first twelve hex digits of its SHA-256. Whoever knows the text can recognise it, and nobody can read it.

use serde_json::Value;

use tollgate_json::digest::Fingerprint;

/// The known words. Case does not matter.
#[rustfmt::skip]
pub(crate) const WORDS: &[&str] = &[
    // Names in the ratings of Gemini and Vertex.
    "category", "probability", "probability_score", "probabilityScore", "severity", "severity_score", "severityScore", "blocked",
    "overwritten_threshold", "overwrittenThreshold",
    // Their categories. `HARM` alone stands in DeerFlow's cases.
    "HARM", "HARM_CATEGORY_UNSPECIFIED", "HARM_CATEGORY_DEROGATORY", "HARM_CATEGORY_TOXICITY", "HARM_CATEGORY_VIOLENCE",
    "HARM_CATEGORY_SEXUAL", "HARM_CATEGORY_MEDICAL", "HARM_CATEGORY_DANGEROUS", "HARM_CATEGORY_HARASSMENT", "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT", "HARM_CATEGORY_DANGEROUS_CONTENT", "HARM_CATEGORY_CIVIC_INTEGRITY", "HARM_CATEGORY_JAILBREAK",
    "HARM_CATEGORY_IMAGE_HATE", "HARM_CATEGORY_IMAGE_HARASSMENT", "HARM_CATEGORY_IMAGE_DANGEROUS_CONTENT",
    "HARM_CATEGORY_IMAGE_SEXUALLY_EXPLICIT",
    // Their probabilities, severities and thresholds.
    "HARM_PROBABILITY_UNSPECIFIED", "HARM_SEVERITY_UNSPECIFIED", "HARM_SEVERITY_NEGLIGIBLE", "HARM_SEVERITY_LOW", "HARM_SEVERITY_MEDIUM",
    "HARM_SEVERITY_HIGH", "HARM_BLOCK_THRESHOLD_UNSPECIFIED", "NEGLIGIBLE", "LOW", "MEDIUM", "HIGH", "OFF", "BLOCK_NONE",
    "BLOCK_ONLY_HIGH", "BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE",
    // Names and values in the filters of Azure OpenAI and what speaks its dialect.
    "filtered", "detected", "redacted", "safe", "hate", "self_harm", "sexual", "violence", "profanity", "jailbreak", "indirect_attack",
    "protected_material_text", "protected_material_code", "personally_identifiable_information", "custom_blocklists", "details",
    "citation", "license", "url", "id", "error", "code", "message", "content_filter_error", "role", "level", "type",
    // The values with which providers say that a response was stopped.
    "content_filter", "content-filter", "content_filtered", "sensitive", "refusal", "guardrail_intervened", "content_policy_violation",
    "SAFETY", "IMAGE_SAFETY", "ERROR_TOXIC", "MODEL_ARMOR", "RECITATION", "IMAGE_RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT",
    "IMAGE_PROHIBITED_CONTENT", "SPII", "OTHER",
];

/// Returns a value in which every text, and every name of a member, is a known word or stands as its hash. Numbers and the rest stay.
pub(super) fn in_known_words(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(word(text)),
        Value::Array(items) => items.into_iter().map(in_known_words).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (word(name), in_known_words(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

fn word(text: String) -> String {
    if WORDS.iter().any(|word| word.eq_ignore_ascii_case(&text)) {
        return text;
    }
    let hex = Fingerprint::of(&text).hex();
    let digits = hex.first_chunk::<12>().and_then(|digits| str::from_utf8(digits).ok()).unwrap_or_default();
    format!("other:{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_words_stay_and_anything_else_is_a_hash() {
        let ratings = json!([
            {"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "high", "blocked": true, "severityScore": 0.25, "severity": null},
            {"category": "he wrote: my card is 4111", "card 4111": {"filtered": [false, "4111"]}},
        ]);
        let expected = json!([
            {"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "high", "blocked": true, "severityScore": 0.25, "severity": null},
            {"category": "other:82cee13b89b3", "other:41c37e375cc9": {"filtered": [false, "other:1f58dbec7199"]}},
        ]);
        assert_eq!(in_known_words(ratings), expected);
    }

    #[test]
    fn a_hash_does_not_pass_for_a_word() {
        let word = word("other:82cee13b89b3".to_owned());
        assert!(word.starts_with("other:") && word != "other:82cee13b89b3");
    }
}
