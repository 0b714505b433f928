//! Rewrites a response whose calls must not run, so that a host can keep it in its history: the calls go, the text stays, and the text for
//! the user is appended.
//!
//! Calls are removed at every place where a reader finds them. A verdict that flagged single calls removes these alone.

use serde_json::{Map, Value, json};

use super::paths::{Step, steps};
use super::{CallsAt, READERS};
use crate::decide::safety::Category;

/// The copies of calls that LangChain's integrations leave in metadata.
const RAW_COPIES: &[CallsAt] = &[
    CallsAt::openai("response_metadata.tool_calls[]"),
    CallsAt::function_call("response_metadata.function_call"),
    CallsAt::openai("response_metadata.message.tool_calls[]"),
];

/// Where text for the user stands: the object, the member, and what a list there holds. The first object that is there counts.
const TEXTS: &[(&str, &str, Block)] = &[
    ("choices[].message", "content", Block::Typed),
    ("output.choices[].message", "content", Block::Typed),
    ("outputs[].message", "content", Block::Typed),
    ("Choices[].Message", "Content", Block::Typed),
    ("candidates[].content", "parts", Block::Part),
    ("output.message", "content", Block::Part),
    ("message", "content", Block::Typed),
];

/// Where text stands at the top of a body, if the member is there.
const TOP_TEXTS: &[(&str, Block)] = &[("output", Block::Item), ("content", Block::Typed), ("text", Block::Typed), ("result", Block::Typed)];

/// What the record in a LangChain message repeats of the verdict's `safety`.
const RECORDED: &[&str] =
    &["detector", "reason_field", "reason_value", "suppressed_tool_call_count", "suppressed_tool_call_names", "extras"];

/// What a text is in a list of content.
#[derive(Debug, Clone, Copy)]
enum Block {
    /// `{"type": "text", "text": …}`.
    Typed,
    /// `{"text": …}`.
    Part,
    /// A message of its own, in the output of the Responses API.
    Item,
}

/// Rewrites a LangChain message, in any of its serialisations, by the `safety` of its verdict. The result has no calls, neither parsed nor
/// invalid nor raw; `additional_kwargs.safety_termination` records what was removed; other metadata and the id stay.
pub fn sanitise_message(message: &mut Value, safety: &Value) {
    remove_all(message, true, &|call, at| is_suppressed(call, at, safety));
    // The parts that have a message's fields: the message itself, or what its wrapper holds.
    let is_object = |value: &Value, name: &str| value.get(name).is_some_and(Value::is_object);
    let wrapper = ["kwargs", "data"].into_iter().find(|name| is_object(message, name));
    let inner = match wrapper {
        Some(name) => message.get_mut(name),
        None if message.get("messages").is_some() => {
            message.get_mut("messages").and_then(Value::as_array_mut).and_then(|all| all.last_mut())
        }
        None => Some(message),
    };
    let Some(members) = inner.and_then(Value::as_object_mut) else { return };
    if let Some(text) = user_message(safety) {
        append(members.entry("content").or_insert(Value::Null), Block::Typed, text);
    }
    let record: Map<_, _> = RECORDED.iter().filter_map(|name| Some(((*name).to_owned(), safety.get(name)?.clone()))).collect();
    if let Some(kwargs) = members.entry("additional_kwargs").or_insert(json!({})).as_object_mut() {
        kwargs.insert("safety_termination".to_owned(), record.into());
    }
}

/// Rewrites a provider's native body by the `safety` of its verdict. A body that has no place for text, and the events of a stream, lose their
/// calls and get no text.
pub fn sanitise_response(response: &mut Value, safety: &Value) {
    let is_call = |call: &Value, at: &CallsAt| is_suppressed(call, at, safety);
    response.as_array_mut().into_iter().flatten().for_each(|event| remove_all(event, false, &is_call));
    remove_all(response, false, &is_call);
    if let Value::Array(events) = response {
        events.retain(|event| !event.is_null());
    } else if let Some(text) = user_message(safety) {
        append_to_body(response, text);
    }
}

fn user_message(safety: &Value) -> Option<&str> {
    safety.get("user_message")?.as_str()
}

/// Returns whether a call is one that must not run: every call, or those that the provider flagged.
fn is_suppressed(call: &Value, at: &CallsAt, safety: &Value) -> bool {
    if safety.get("category").and_then(Value::as_str) != Some(Category::ToolFlagged.as_str()) {
        return true;
    }
    let ids = safety.get("suppressed_tool_call_ids").and_then(Value::as_array);
    let id =
        at.id.iter().find_map(|path| path.split('.').try_fold(call, |value, name| value.get(name))?.as_str().filter(|id| !id.is_empty()));
    id.is_some_and(|id| ids.is_some_and(|ids| ids.iter().any(|flagged| flagged.as_str() == Some(id))))
}

type IsCall<'a> = &'a dyn Fn(&Value, &CallsAt) -> bool;

/// Removes the calls of a body at the places of all readers, in its wrappers too.
fn remove_all(body: &mut Value, is_message: bool, is_suppressed: IsCall<'_>) {
    let readers = || READERS.iter().filter(|reader| reader.is_message == is_message);
    let copies = if is_message { RAW_COPIES } else { &[] };
    for at in readers().flat_map(|reader| reader.calls).chain(copies) {
        let is_call = |value: &Value| counts(value, at) && is_suppressed(value, at);
        let path: Vec<Step> = steps(at.path).collect();
        if path.is_empty() && is_call(body) {
            *body = Value::Null;
            return;
        }
        // LangChain's own lists stay, empty.
        let keeps_empty = is_message && path.len() == 2;
        remove(body, &path, keeps_empty, &is_call);
    }
    for wrapper in readers().flat_map(|reader| reader.wrappers) {
        at_each(body, &steps(wrapper).collect::<Vec<_>>(), &mut |inner| {
            if inner.is_object() {
                remove_all(inner, is_message, is_suppressed);
            }
        });
    }
}

/// Returns whether a value is a call that the host runs.
fn counts(value: &Value, at: &CallsAt) -> bool {
    let is_of_type = || {
        let kind = value.get(at.type_member).and_then(Value::as_str);
        at.types.iter().any(|(known, _)| kind == Some(known))
    };
    value.is_object() && (at.types.is_empty() || is_of_type())
}

/// Removes the calls at a path. An empty list of calls goes too, because APIs refuse it, unless it is to be kept; so does an item of a list
/// that was a call and nothing else.
fn remove(value: &mut Value, path: &[Step], keeps_empty: bool, is_call: &dyn Fn(&Value) -> bool) {
    match path {
        [Step::Member(name)] => {
            if value.get(name).is_some_and(is_call) {
                value.as_object_mut().map(|members| members.remove(*name));
            }
        }
        [Step::Member(name @ "tool_calls"), Step::Items] => {
            let Some(calls) = value.get_mut(name).and_then(Value::as_array_mut) else { return };
            calls.retain(|call| !is_call(call));
            if calls.is_empty() && !keeps_empty {
                value.as_object_mut().map(|members| members.remove(*name));
            }
        }
        [Step::Items] => {
            if let Some(items) = value.as_array_mut() {
                items.retain(|item| !is_call(item));
            }
        }
        [Step::Items, Step::Member(name)] => {
            let has_text = |item: &Value| item.get("text").or_else(|| item.get("content")).is_some();
            if let Some(items) = value.as_array_mut() {
                items.retain(|item| has_text(item) || !item.get(name).is_some_and(is_call));
                items.iter_mut().for_each(|item| remove(item, &[Step::Member(name)], keeps_empty, is_call));
            }
        }
        [first, rest @ ..] => at_each(value, &[*first], &mut |inner| remove(inner, rest, keeps_empty, is_call)),
        [] => {}
    }
}

/// Calls a function for every value at a path.
fn at_each(value: &mut Value, path: &[Step], then: &mut dyn FnMut(&mut Value)) {
    let Some((first, rest)) = path.split_first() else { return then(value) };
    match first {
        Step::Member(name) => value.get_mut(*name).into_iter().for_each(|inner| at_each(inner, rest, then)),
        Step::Items => value.as_array_mut().into_iter().flatten().for_each(|inner| at_each(inner, rest, then)),
        Step::Last => value.as_array_mut().and_then(|items| items.last_mut()).into_iter().for_each(|inner| at_each(inner, rest, then)),
    }
}

/// Appends the text for the user to a native body, or to the body in its wrapper. Returns whether there was a place for it.
fn append_to_body(body: &mut Value, text: &str) -> bool {
    let mut is_done = false;
    for (holder, member, block) in TEXTS {
        at_each(body, &steps(holder).collect::<Vec<_>>(), &mut |holder| {
            if let Some(members) = holder.as_object_mut() {
                append(members.entry(*member).or_insert(Value::Null), *block, text);
                is_done = true;
            }
        });
        if is_done {
            return true;
        }
    }
    for (member, block) in TOP_TEXTS {
        if let Some(content) = body.get_mut(*member).filter(|content| content.is_string() || content.is_array()) {
            append(content, *block, text);
            return true;
        }
    }
    READERS.iter().filter(|reader| !reader.is_message).flat_map(|reader| reader.wrappers).any(|wrapper| {
        at_each(body, &steps(wrapper).collect::<Vec<_>>(), &mut |inner| is_done |= inner.is_object() && append_to_body(inner, text));
        is_done
    })
}

/// Appends a text to content, behind a blank line.
fn append(content: &mut Value, block: Block, text: &str) {
    match content {
        Value::String(before) if !before.is_empty() => before.extend(["\n\n", text]),
        Value::String(_) | Value::Null => *content = text.into(),
        Value::Array(items) => items.push(match block {
            Block::Typed => json!({"type": "text", "text": format!("\n\n{text}")}),
            Block::Part => json!({"text": text}),
            Block::Item => json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
        }),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}
