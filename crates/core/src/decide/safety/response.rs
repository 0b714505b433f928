//! Reading a model's response in any of its forms: why it ended, and, after a safety stop, which tools it calls and whether it has text.
//!
//! Only known paths are read, because a tool's input may contain a `stop_reason` of its own, and a user's stop string may be `refusal`.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Category, Detection, ReasonSet, vocabulary};
use tollgate_json::{Text, Value};

/// How many copies of a value verdicts repeat. Of more they show one.
const COPIES_SHOWN_MAX: usize = 4;

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

/// A tool call in a response, well-formed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledTool<'d> {
    /// Its id, where the provider gives one.
    pub id: Option<Cow<'d, str>>,
    /// The tool's name, if the call is complete enough to have one.
    pub name: Option<Cow<'d, str>>,
}

/// The reasons why a response ended. This is all that detectors look at.
#[derive(Debug, Default)]
pub struct ResponseView<'d> {
    /// The values of `finish_reason` and its other spellings, one per candidate.
    pub finish_reasons: Vec<EndReason<'d>>,
    /// The values of `stop_reason`.
    pub stop_reasons: Vec<EndReason<'d>>,
}

/// The content of a response. It is read only after a detector has found a safety stop.
#[derive(Debug)]
pub struct ResponseContent<'d> {
    /// The tool calls in order. Mirrors of the same call count once.
    pub calls: Vec<CalledTool<'d>>,
    /// Whether there is no text other than white space.
    pub is_blank: bool,
    ids: HashSet<Cow<'d, str>>,
    /// The names of the calls; `None` until a call without an id has to be compared with them.
    names: Option<HashSet<Option<Cow<'d, str>>>>,
}

impl<'d> ResponseView<'d> {
    /// Reads a provider's native body: OpenAI Chat, Anthropic Messages or Gemini. Their fields do not overlap, so all are read.
    #[must_use]
    pub fn of_native(body: Value<'d>) -> Self {
        let mut view = Self::default();
        for choice in array(body.get("choices")) {
            push_reason(&mut view.finish_reasons, "finish_reason", choice, choice);
        }
        for candidate in array(body.get("candidates")) {
            push_reason(&mut view.finish_reasons, "finishReason", candidate, candidate);
            push_reason(&mut view.finish_reasons, "finish_reason", candidate, candidate);
        }
        push_reason(&mut view.stop_reasons, "stop_reason", body, body);
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
        let extras = extras.iter().filter_map(|(there, here)| Some(((*here).to_owned(), readable(reason.beside.get(there)?)?))).collect();
        let is_short = reason.value.len() <= COPIES_SHOWN_MAX * known.len();
        let reason_value = if is_short { reason.value.to_string() } else { known.to_owned() };
        Some(Detection { category: Category::of(known), reason_field: reason.field, reason_value, extras })
    }
}

impl<'d> ResponseContent<'d> {
    fn new() -> Self {
        Self { calls: Vec::new(), is_blank: true, ids: HashSet::new(), names: None }
    }

    /// Reads the content of a provider's native body, in the forms of [`ResponseView::of_native`].
    #[must_use]
    pub fn of_native(body: Value<'d>) -> Self {
        let mut content = Self::new();
        for choice in array(body.get("choices")) {
            [choice.get("message"), choice.get("delta")].into_iter().flatten().for_each(|message| content.read_openai_message(message));
        }
        for candidate in array(body.get("candidates")) {
            let parts = candidate.get("content").and_then(|content| content.get("parts"));
            array(parts).for_each(|part| content.read_gemini_part(part));
        }
        content.read_content(body.get("content"));
        content
    }

    /// Reads the content of a LangChain AIMessage, in the forms of [`ResponseView::of_langchain`].
    #[must_use]
    pub fn of_langchain(message: Value<'d>) -> Self {
        let message = unwrap_message(message);
        let mut content = Self::new();
        for key in ["tool_calls", "invalid_tool_calls", "tool_call_chunks"] {
            array(message.get(key)).for_each(|call| content.push_call(call.get("id"), call.get("name")));
        }
        // The provider's raw calls and content blocks mirror the structured ones. A call with another id was not lifted into them.
        if let Some(kwargs) = message.get("additional_kwargs") {
            content.read_openai_calls(kwargs);
        }
        content.read_content(message.get("content"));
        content
    }

    fn read_openai_message(&mut self, message: Value<'d>) {
        self.read_openai_calls(message);
        self.read_content(message.get("content"));
    }

    /// Reads `tool_calls`, functions and custom tools alike, and the older `function_call`.
    fn read_openai_calls(&mut self, message: Value<'d>) {
        for call in array(message.get("tool_calls")) {
            let function = ["function", "custom"].into_iter().find_map(|key| call.get(key));
            self.push_call(call.get("id"), function.and_then(|function| function.get("name")).or(call.get("name")));
        }
        // It has no id. Where the host has lifted it, the same call is among the structured ones already.
        if let Some(function) = message.get("function_call").filter(|call| !call.is_null()) {
            let name = nonempty_text(function.get("name"));
            let names = self.names.get_or_insert_with(|| self.calls.iter().map(|call| call.name.clone()).collect());
            if names.insert(name.clone()) || name.is_none() {
                self.calls.push(CalledTool { id: None, name });
            }
        }
    }

    fn read_gemini_part(&mut self, part: Value<'d>) {
        if let Some(call) = part.get("functionCall").or(part.get("function_call")).filter(|call| !call.is_null()) {
            self.push_call(call.get("id"), call.get("name"));
        }
        self.read_text(part.get("text"));
    }

    /// Reads a message's content: text, or blocks of which some are text and some are calls. Tools that the provider runs itself
    /// (`server_tool_use`, `mcp_tool_use`) are not run by the host, so they are left out.
    fn read_content(&mut self, content: Option<Value<'d>>) {
        self.read_text(content);
        for block in array(content) {
            self.read_text(Some(block));
            self.read_text(block.get("text"));
            if block.get("type").is_some_and(|kind| kind.is_text("tool_use") || kind.is_text("tool_call") || kind.is_text("function_call"))
            {
                self.push_call(block.get("id").or(block.get("call_id")), block.get("name"));
            }
        }
    }

    fn read_text(&mut self, text: Option<Value<'d>>) {
        let Some(text) = text.and_then(|value| value.as_text()) else { return };
        let is_blank = match text.into_str() {
            Some(text) => text.trim().is_empty(),
            None => false,
        };
        self.is_blank &= is_blank;
    }

    /// Adds a call, unless one with the same id is there already.
    fn push_call(&mut self, id: Option<Value<'d>>, name: Option<Value<'d>>) {
        let (id, name) = (nonempty_text(id), nonempty_text(name));
        if id.as_ref().is_none_or(|id| self.ids.insert(id.clone())) {
            self.names.iter_mut().for_each(|names| _ = names.insert(name.clone()));
            self.calls.push(CalledTool { id, name });
        }
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

fn nonempty_text<'d>(value: Option<Value<'d>>) -> Option<Cow<'d, str>> {
    value.and_then(|value| value.as_text()).and_then(Text::into_str).filter(|text| !text.is_empty())
}

fn array<'d>(value: Option<Value<'d>>) -> impl Iterator<Item = Value<'d>> + use<'d> {
    value.into_iter().flat_map(|value| value.items())
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

    fn calls(text: &str, langchain: bool) -> Vec<(String, String)> {
        let mut parser = Parser::new();
        let root = parser.parse(text.as_bytes(), 64).unwrap();
        let content = if langchain { ResponseContent::of_langchain(root) } else { ResponseContent::of_native(root) };
        content
            .calls
            .iter()
            .map(|call| (call.id.clone().unwrap_or_default().into_owned(), call.name.clone().unwrap_or_default().into_owned()))
            .collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect()
    }

    #[test]
    fn openai_calls_of_every_kind_are_counted() {
        let body = r#"{"choices":[{"finish_reason":"content_filter","message":{"content":null,"tool_calls":[
            {"id":"a","function":{"name":"f","arguments":"{\"pa"}},{"id":"b","custom":{"name":"g","input":"x"}},{"id":"c"}]}},
            {"message":{"content":"x","function_call":{"name":"h","arguments":""}}}]}"#;
        assert_eq!(calls(body, false), pairs(&[("a", "f"), ("b", "g"), ("c", ""), ("", "h")]));
    }

    #[test]
    fn anthropic_counts_only_what_the_host_runs() {
        let body = r#"{"stop_reason":"refusal","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"f","input":{}},
            {"type":"server_tool_use","id":"s","name":"web_search"}]}"#;
        assert_eq!(calls(body, false), pairs(&[("a", "f")]));
    }

    #[test]
    fn gemini_calls_need_no_id() {
        let body =
            r#"{"candidates":[{"finishReason":"SAFETY","content":{"parts":[{"functionCall":{"name":"f","args":{}}},{"text":" "}]}}]}"#;
        assert_eq!(calls(body, false), pairs(&[("", "f")]));
    }

    #[test]
    fn langchain_counts_calls_that_do_not_parse_and_mirrors_once() {
        let message = r#"{"type":"ai","data":{"content":[{"type":"tool_use","id":"a","name":"f"},{"type":"tool_use","id":"d","name":"i"}],
            "tool_calls":[{"id":"a","name":"f","args":{}}],"invalid_tool_calls":[{"id":"b","name":"g","args":"{\"pa"}],
            "additional_kwargs":{"tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"c","function":{"name":"h"}}]}}}"#;
        assert_eq!(calls(message, true), pairs(&[("a", "f"), ("b", "g"), ("c", "h"), ("d", "i")]));
    }

    #[test]
    fn only_known_paths_are_read() {
        let body = r#"{"choices":[{"finish_reason":"stop","stop_reason":"refusal","message":{"content":"x"}}],
            "content":[{"type":"tool_use","id":"a","name":"f","input":{"stop_reason":"refusal"}}]}"#;
        let mut parser = Parser::new();
        let view = ResponseView::of_native(parser.parse(body.as_bytes(), 64).unwrap());
        assert!(view.stop_reasons.is_empty());
    }
}
