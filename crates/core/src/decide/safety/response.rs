//! Why a response ended, as the three detectors of DeerFlow read it: in the bodies of OpenAI Chat, Anthropic and Gemini, and in LangChain's
//! messages.
//!
//! Only known paths are read, because a tool's input may contain a `stop_reason` of its own, and a user's stop string may be `refusal`.

use std::borrow::Cow;

use super::reading::{ReasonValue, Scan, Stage, nonempty_text, refined};
use super::reasons::has_few_copies;
use super::{Category, Detection, ReasonSet, vocabulary};
use crate::event::decode::ModelBody;
use tollgate_json::Value;

/// Extras larger than this are left out of verdicts.
const EXTRAS_BYTES_MAX: usize = 16 * 1024;

/// The reason why a response, or one of its candidates, ended.
#[derive(Debug, Clone)]
pub struct EndReason<'d> {
    /// The field, as the response spells it.
    pub field: &'static str,
    /// The field's value.
    pub value: Cow<'d, str>,
    /// The object that the field is in, where the provider puts its ratings.
    pub beside: Value<'d>,
}

/// The reasons why a response ended. This is all that detectors look at.
#[derive(Debug, Default)]
pub struct ResponseView<'d> {
    /// The values of `finish_reason` and its other spellings, one per candidate.
    pub finish_reasons: Vec<EndReason<'d>>,
    /// The values of `stop_reason`.
    pub stop_reasons: Vec<EndReason<'d>>,
    /// What the readers of all shapes found; `None` if nobody asked for it.
    pub scan: Option<Scan<'d>>,
}

impl<'d> ResponseView<'d> {
    /// Reads a body. An API error has no reasons of these kinds.
    #[must_use]
    pub fn of(body: &ModelBody<'d>) -> Self {
        match body {
            ModelBody::Response(response) => Self::of_native(*response),
            ModelBody::Message(message) => Self::of_langchain(*message),
            ModelBody::Error(_) => Self::default(),
        }
    }

    /// Reads a provider's native body, or the events of its stream: OpenAI Chat, Anthropic Messages or Gemini. Their fields do not overlap, so
    /// all are read.
    #[must_use]
    pub fn of_native(body: Value<'d>) -> Self {
        let mut view = Self::default();
        for body in body.items().chain([body]) {
            for choice in array(body.get("choices")) {
                push_reason(&mut view.finish_reasons, "finish_reason", choice, choice);
            }
            for candidate in array(body.get("candidates")) {
                push_reason(&mut view.finish_reasons, "finishReason", candidate, candidate);
                push_reason(&mut view.finish_reasons, "finish_reason", candidate, candidate);
            }
            push_reason(&mut view.stop_reasons, "stop_reason", body, body);
        }
        for delta in body.items().filter_map(|event| event.get("delta")) {
            push_reason(&mut view.stop_reasons, "stop_reason", delta, delta);
        }
        view
    }

    /// Reads a LangChain AIMessage: flat, as `{type: "ai", data}`, or as a serialised constructor with `kwargs`.
    #[must_use]
    pub fn of_langchain(message: Value<'d>) -> Self {
        let message = unwrap_message(message);
        let mut view = Self::default();
        let metadata = message.get("response_metadata");
        // The first non-empty string wins, so a value that does not match shadows a later one that would.
        for place in [metadata, message.get("additional_kwargs")].into_iter().flatten() {
            let beside = metadata.unwrap_or(place);
            if view.finish_reasons.is_empty() {
                push_reason(&mut view.finish_reasons, "finish_reason", place, beside);
            }
            if view.stop_reasons.is_empty() {
                push_reason(&mut view.stop_reasons, "stop_reason", place, beside);
            }
        }
        view
    }

    /// Returns the first of `reasons` that is in `set`, with the extras from the object around it. `extras` are pairs of a name there and
    /// the name in the record.
    #[must_use]
    pub fn detect(&self, reasons: &[EndReason<'d>], set: &ReasonSet, extras: &[(&str, &str)]) -> Option<Detection> {
        let (reason, known) = reasons.iter().find_map(|reason| Some((reason, set.find(&reason.value)?)))?;
        let shown = if has_few_copies(&reason.value, known) { &reason.value } else { known };
        let reason_value = ReasonValue::Text(shown.to_owned());
        let detection = Detection::new(refined(Category::of(known), reason.beside), reason.field, reason_value);
        Some(Detection { stage: Some(Stage::Output), extras: extras_of(reason.beside, extras), ..detection })
    }
}

/// Returns the part of a LangChain message that has its fields.
pub(crate) fn unwrap_message(message: Value<'_>) -> Value<'_> {
    ["kwargs", "data"].into_iter().find_map(|key| message.get(key).filter(Value::is_object)).unwrap_or(message)
}

fn push_reason<'d>(reasons: &mut Vec<EndReason<'d>>, field: &'static str, place: Value<'d>, beside: Value<'d>) {
    if let Some(value) = nonempty_text(place.get(field)) {
        reasons.push(EndReason { field, value, beside });
    }
}

fn array<'d>(value: Option<Value<'d>>) -> impl Iterator<Item = Value<'d>> + use<'d> {
    value.into_iter().flat_map(|value| value.items())
}

/// Returns what a provider says beside a stop. `extras` are pairs of a name there and the name in the record.
pub(super) fn extras_of(beside: Value<'_>, extras: &[(&str, &str)]) -> serde_json::Map<String, serde_json::Value> {
    extras.iter().filter_map(|(there, here)| Some(((*here).to_owned(), readable(beside.get(there)?)?))).collect()
}

/// Returns extras in known words, or `None` if they are not strict JSON of bounded size.
fn readable(value: Value<'_>) -> Option<serde_json::Value> {
    let source = if value.as_text().is_some() { return None } else { value.source() };
    (source.len() <= EXTRAS_BYTES_MAX)
        .then(|| serde_json::from_slice(source).ok())
        .flatten()
        .filter(|value: &serde_json::Value| !value.is_null())
        .map(vocabulary::in_known_words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::Parser;

    #[test]
    fn only_known_paths_are_read() {
        let body = r#"{"choices":[{"finish_reason":"stop","stop_reason":"refusal","message":{"content":"x"}}],
            "content":[{"type":"tool_use","id":"a","name":"f","input":{"stop_reason":"refusal"}}]}"#;
        let mut parser = Parser::new();
        let view = ResponseView::of_native(parser.parse(body.as_bytes(), 64).unwrap());
        assert!(view.stop_reasons.is_empty());
    }
}
