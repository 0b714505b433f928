//! The content of a response: its tool calls, well-formed or not, and whether it has text. It is read only where it matters, after a stop.

use std::borrow::Cow;
use std::collections::HashSet;

use tollgate_json::Value;

use super::paths::{Place, Visit};
use super::scan::paths_of;
use super::test::{dig, text_of};
use super::{CallsAt, CallsKind, Reader};
use crate::event::decode::ModelBody;

/// A tool call in a response, well-formed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledTool<'d> {
    /// Its id, where the provider gives one.
    pub id: Option<Cow<'d, str>>,
    /// The tool's name, if the call is complete enough to have one.
    pub name: Option<Cow<'d, str>>,
}

/// The content of a response.
#[derive(Debug)]
pub struct ResponseContent<'d> {
    /// The tool calls in order. Mirrors of the same call count once.
    pub calls: Vec<CalledTool<'d>>,
    /// Whether there is no text other than white space.
    pub is_blank: bool,
}

impl<'d> ResponseContent<'d> {
    /// Reads the content of a body.
    #[must_use]
    pub fn of(body: &ModelBody<'d>) -> Self {
        let mut found = FoundContent { calls: Vec::new(), is_blank: true };
        let (paths, value) = paths_of(body);
        paths.walk(value, &mut found);
        found.calls.sort_by_key(|call| call.rank);
        Self { calls: without_mirrors(found.calls), is_blank: found.is_blank }
    }
}

struct FoundContent<'d> {
    calls: Vec<FoundCall<'d>>,
    is_blank: bool,
}

struct FoundCall<'d> {
    rank: usize,
    kind: CallsKind,
    call: CalledTool<'d>,
}

impl<'d> Visit<'d> for FoundContent<'d> {
    fn call(&mut self, place: &Place<CallsAt>, value: Value<'d>) {
        let at = place.at;
        if !at.counts(value) {
            return;
        }
        let first = |paths: &[&str]| paths.iter().find_map(|path| nonempty_text(dig(value, path)));
        let of_type = || {
            let kind = value.get(at.type_member)?;
            at.types.iter().find(|(known, _)| kind.is_text(known)).and_then(|(_, name)| *name).map(Cow::Borrowed)
        };
        let call = CalledTool { id: first(at.id), name: of_type().or_else(|| first(at.name)) };
        self.calls.push(FoundCall { rank: place.rank, kind: at.kind, call });
    }

    fn text(&mut self, _: &'static Reader, value: Value<'d>) {
        let is_blank = |text: Option<Value<'d>>| match text.filter(|text| text.as_text().is_some()) {
            None => true,
            // The first character of nearly every text tells.
            Some(text) if text.source().first().is_some_and(u8::is_ascii_alphanumeric) => false,
            Some(text) => text_of(text).is_some_and(|text| text.trim().is_empty()),
        };
        self.is_blank &= is_blank(Some(value)) && is_blank(value.get("text"));
        self.is_blank &= value.items().all(|block| is_blank(Some(block)) && is_blank(block.get("text")));
    }
}

/// Returns the calls without those that stand for a call before them: the same id again, the pieces of a call behind its first, and a mirror
/// without an id.
fn without_mirrors(found: Vec<FoundCall<'_>>) -> Vec<CalledTool<'_>> {
    let mut ids = HashSet::new();
    let mut names: HashSet<Option<Cow<'_, str>>> = HashSet::new();
    let mut calls: Vec<CalledTool<'_>> = Vec::with_capacity(found.len());
    for FoundCall { kind, call, .. } in found {
        let is_known = match (&call.id, kind) {
            (Some(id), _) => !ids.insert(id.clone()),
            (None, CallsKind::Pieces) => call.name.is_none() && !calls.is_empty(),
            (None, CallsKind::Mirror) => call.name.is_some() && names.contains(&call.name),
            (None, CallsKind::Whole) => false,
        };
        if !is_known {
            names.insert(call.name.clone());
            calls.push(call);
        }
    }
    calls
}

/// Returns a text that is not empty.
pub(crate) fn nonempty_text(value: Option<Value<'_>>) -> Option<Cow<'_, str>> {
    value.and_then(text_of).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::Parser;

    fn calls(text: &str, langchain: bool) -> Vec<(String, String)> {
        let mut parser = Parser::new();
        let root = parser.parse(text.as_bytes(), 64).unwrap();
        let content = ResponseContent::of(&if langchain { ModelBody::Message(root) } else { ModelBody::Response(root) });
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
}
