//! The sentences for the user of a response that was cut off.

use super::{Detection, ReasonValue};

/// Returns the sentence on why the response ended, up to the end of the first clause.
pub(super) fn summary(detector: &str, reason_field: &str, reason_value: &ReasonValue) -> String {
    let value = match reason_value {
        ReasonValue::Text(text) => python_repr(text),
        ReasonValue::Number(number) => number.to_string(),
        ReasonValue::Flag(flag) => if *flag { "True" } else { "False" }.to_owned(),
    };
    let detector = python_repr(detector);
    format!("The model provider stopped this response with a safety-related signal ({reason_field}={value}, detector={detector})")
}

/// Returns the text for the user: that calls were suppressed, or that there is nothing to show. Returns `None` for a response with text and
/// without calls.
pub(super) fn user_message(detector: &str, detection: &Detection, has_calls: bool, is_blank: bool) -> Option<String> {
    let summary = summary(detector, detection.reason_field, &detection.reason_value);
    match (has_calls, is_blank) {
        (true, _) => Some(format!(
            "{summary}. Any tool calls produced in this turn were suppressed because their arguments may be truncated and \
             unsafe to execute. Please rephrase the request or ask for a narrower output."
        )),
        (false, true) => Some(format!("{summary} and returned no content. Please rephrase your request or start a new conversation.")),
        (false, false) => None,
    }
}

/// Quotes text the way Python's `repr` does, with which the original sentences are written.
fn python_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if character == quote => out.extend(['\\', quote]),
            '\0'..='\x1f' | '\x7f'..='\u{a0}' | '\u{ad}' => out.push_str(&format!("\\x{:02x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::python_repr;

    #[test]
    fn quotes_as_python_does() {
        for (text, expected) in [("a", "'a'"), ("it's", "\"it's\""), ("'\"", "'\\'\"'"), ("a\\b\n\x01", "'a\\\\b\\n\\x01'"), ("é", "'é'")]
        {
            assert_eq!(python_repr(text), expected);
        }
    }
}
