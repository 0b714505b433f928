//! Safety detectors: they decide whether a response was cut off by its provider's safety system.
//!
//! Detectors look at the reasons why a response ended, in whatever form it comes ([`ResponseView`]). Its calls are read only after a hit.
//! Whether tool calls are suppressed never depends on whether their arguments parse: a truncated call can look whole.

mod detectors;
mod reasons;
mod response;
mod vocabulary;

pub(crate) use detectors::{ANTHROPIC, GEMINI, OPENAI_COMPATIBLE};
pub use detectors::{ConfiguredDetector, DETECTORS, DetectorDescriptor};
pub use reasons::{Category, ReasonSet};
pub(crate) use response::unwrap_message;
pub use response::{CalledTool, EndReason, ResponseContent, ResponseView};
pub(crate) use vocabulary::WORDS;

use std::sync::Arc;

use serde::Serialize;

use crate::event::decode::ModelBody;

/// The verdict code of a response that was cut off.
pub const SAFETY_TERMINATED: &str = "safety_terminated";

/// What a detector found in a response.
#[derive(Debug, Clone, PartialEq)]
pub struct Detection {
    /// The kind of safety stop.
    pub category: Category,
    /// The field with the reason, as the response spells it.
    pub reason_field: &'static str,
    /// The field's value, in the response's own case. Verdicts show it, so it has to be one of the values that the detector knows.
    pub reason_value: String,
    /// What the provider says besides, such as its ratings. Verdicts show it, so texts of the provider's own must not be in it.
    pub extras: serde_json::Map<String, serde_json::Value>,
}

/// A detector of responses that a provider has cut off. To add one, implement this trait and describe it in a [`DetectorDescriptor`].
pub trait SafetyDetector: std::fmt::Debug + Send + Sync {
    /// Returns the detector's name, as configuration and verdicts write it.
    fn name(&self) -> &'static str;

    /// Returns the safety stop that it finds in a response; `None` if there is none.
    fn detect(&self, response: &ResponseView<'_>) -> Option<Detection>;
}

/// How a response was cut off, as the verdict records it. Arguments are never part of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Termination {
    /// The name of the detector that found it.
    pub detector: &'static str,
    /// The kind of safety stop.
    pub category: Category,
    /// The field with the reason.
    pub reason_field: &'static str,
    /// The field's value.
    pub reason_value: String,
    /// How many tool calls the response holds, well-formed or not.
    pub suppressed_tool_call_count: usize,
    /// The names of their tools in order, `unknown` for a missing name.
    pub suppressed_tool_call_names: Vec<String>,
    /// The ids of those calls that have one, in order.
    pub suppressed_tool_call_ids: Vec<String>,
    /// The text for the user; left out where the response has text and nothing was suppressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_message: Option<String>,
    /// What the provider says besides.
    pub extras: serde_json::Map<String, serde_json::Value>,
}

impl Termination {
    /// Returns the first clause of the text for the user, which says why the response ended.
    #[must_use]
    pub fn summary(&self) -> String {
        summary(self.detector, self.reason_field, &self.reason_value)
    }
}

/// The detectors in force, in configured order. The first hit counts.
#[derive(Debug, Default)]
pub struct SafetyChain {
    detectors: Vec<Arc<dyn SafetyDetector>>,
}

impl SafetyChain {
    /// Returns a chain of these detectors.
    #[must_use]
    pub fn new(detectors: Vec<Arc<dyn SafetyDetector>>) -> Self {
        Self { detectors }
    }

    /// Returns how a response was cut off, and what it contains; `None` if it was not cut off. API errors carry no response, so no detector
    /// of this chain reads them.
    pub fn inspect<'d>(&self, body: &ModelBody<'d>) -> Option<(Termination, ResponseContent<'d>)> {
        let (view, read_content): (_, fn(_) -> _) = match body {
            ModelBody::Response(response) => (ResponseView::of_native(*response), ResponseContent::of_native),
            ModelBody::Message(message) => (ResponseView::of_langchain(*message), ResponseContent::of_langchain),
            ModelBody::Error(_) => return None,
        };
        let found = self.detectors.iter().find_map(|detector| Some((detector.name(), detector.detect(&view)?)));
        let (detector, detection) = found?;
        let (ModelBody::Response(value) | ModelBody::Message(value) | ModelBody::Error(value)) = *body;
        let content: ResponseContent<'d> = read_content(value);
        let calls = &content.calls;
        let user_message = user_message(detector, &detection, !calls.is_empty(), content.is_blank);
        let termination = Termination {
            detector,
            category: detection.category,
            reason_field: detection.reason_field,
            reason_value: detection.reason_value,
            suppressed_tool_call_count: calls.len(),
            suppressed_tool_call_names: calls.iter().map(|call| call.name.as_deref().unwrap_or("unknown").to_owned()).collect(),
            suppressed_tool_call_ids: calls.iter().filter_map(|call| call.id.as_deref().map(str::to_owned)).collect(),
            user_message,
            extras: detection.extras,
        };
        Some((termination, content))
    }
}

/// Returns the sentence on why the response ended, up to the end of the first clause.
fn summary(detector: &str, reason_field: &str, reason_value: &str) -> String {
    let (value, detector) = (python_repr(reason_value), python_repr(detector));
    format!("The model provider stopped this response with a safety-related signal ({reason_field}={value}, detector={detector})")
}

/// Returns the text for the user: that calls were suppressed, or that there is nothing to show. Returns `None` for a response with text and
/// without calls.
fn user_message(detector: &str, detection: &Detection, has_calls: bool, is_blank: bool) -> Option<String> {
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
