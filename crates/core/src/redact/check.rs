//! Comparing a record with its stand-in: whatever a decision reads has to be the same, apart from the contents themselves.

use super::{Keys, Unkept};
use crate::decide::loops::classify;
use crate::decide::safety::reading::Scan;
use crate::decide::safety::{EndReason, ResponseContent, ResponseView};
use crate::decide::signal::tokens_of;
use crate::event::decode::{Attribution, Body, Event, ModelBody, Rejection, ToolCall, ToolResult, decode};
use crate::event::record::Record;
use tollgate_json::{DEPTH_MAX, Parser};
use tollgate_passport::ToolInput;

/// Returns an error that names the first difference between two records that a decision could see.
pub(super) fn same_event(keys: &Keys, before: &Record<'_>, after: &Record<'_>) -> Result<(), Unkept> {
    let lengths = |record: &Record<'_>| {
        let headers: Vec<_> = record.headers.iter().map(|header| (header.name.len(), header.value.map(<[u8]>::len))).collect();
        (record.value.map(<[u8]>::len), headers)
    };
    require(lengths(before) == lengths(after), "lengths")?;
    let (mut parser, mut parser_after) = (Parser::new(), Parser::new());
    match (decode(before, &mut parser, usize::MAX), decode(after, &mut parser_after, usize::MAX)) {
        (Ok(before), Ok(after)) => {
            same_ids(&before, &after)?;
            same_body(keys, &before.body, &after.body)
        }
        (Err(before), Err(after)) => same_rejection(&before, &after),
        _ => Err(Unkept::Differs("whether it is an event")),
    }
}

fn require(is_same: bool, what: &'static str) -> Result<(), Unkept> {
    if is_same { Ok(()) } else { Err(Unkept::Differs(what)) }
}

fn same_rejection(before: &Rejection, after: &Rejection) -> Result<(), Unkept> {
    require(before == after, "why it is no event")
}

fn same_ids(before: &Event<'_>, after: &Event<'_>) -> Result<(), Unkept> {
    let ids = |event: &Event<'_>| (event.thread_id.to_string(), event.event_id.to_string(), event.turn_id.as_deref().map(str::to_owned));
    require(ids(before) == ids(after), "its ids")?;
    require(
        (before.time_ms, before.record_ms, before.attended) == (after.time_ms, after.record_ms, after.attended),
        "its time, or whether it is attended",
    )?;
    let Attribution { agent_id, is_subagent, user_id, user_role, tenant_id, run_id } = &before.attribution;
    let other = &after.attribution;
    let lengths = |id: &Option<std::borrow::Cow<'_, str>>| id.as_ref().map(|id| id.len());
    let is_same = (agent_id, is_subagent, tenant_id, run_id) == (&other.agent_id, &other.is_subagent, &other.tenant_id, &other.run_id);
    require(is_same, "its agent, tenant or run")?;
    require((lengths(user_id), lengths(user_role)) == (lengths(&other.user_id), lengths(&other.user_role)), "whether it has a user")
}

fn same_body(keys: &Keys, before: &Body<'_>, after: &Body<'_>) -> Result<(), Unkept> {
    match (before, after) {
        (Body::ToolCall(before), Body::ToolCall(after)) => same_call(before, after),
        (Body::ToolResult(before), Body::ToolResult(after)) => same_result(before, after),
        (Body::ModelResponse(before), Body::ModelResponse(after)) => same_response(keys, before, after),
        _ => require(std::mem::discriminant(before) == std::mem::discriminant(after), "its type"),
    }
}

fn same_call(before: &ToolCall<'_>, after: &ToolCall<'_>) -> Result<(), Unkept> {
    require((&before.tool_call_id, &before.tool_name) == (&after.tool_call_id, &after.tool_name), "the call's id or tool")?;
    same_input(&before.input, &after.input)
}

fn same_input(before: &ToolInput<'_>, after: &ToolInput<'_>) -> Result<(), Unkept> {
    let shape = |text: &[u8]| Parser::new().parse(text, DEPTH_MAX).ok().map(|value| value.shape());
    let is_same = match (before, after) {
        (ToolInput::Absent { null: before }, ToolInput::Absent { null: after }) => before == after,
        (ToolInput::Value(before), ToolInput::Value(after)) => before.shape() == after.shape(),
        (ToolInput::Encoded(before), ToolInput::Encoded(after)) => shape(before.as_bytes()) == shape(after.as_bytes()),
        _ => false,
    };
    require(is_same, "the shape of its arguments")
}

fn same_result(before: &ToolResult<'_>, after: &ToolResult<'_>) -> Result<(), Unkept> {
    require((&before.tool_call_id, &before.tool_name) == (&after.tool_call_id, &after.tool_name), "the call's id or tool")?;
    same_input(&before.input, &after.input)?;
    let class = |result: &ToolResult<'_>| classify(&result.tool_name, result.result.as_ref());
    require(before.failed == after.failed && class(before) == class(after), "whether it failed")?;
    let length = |result: &ToolResult<'_>| result.result.as_ref().map(|text| text.as_bytes().len());
    require(length(before) == length(after), "its result's length")
}

fn same_response(keys: &Keys, before: &ModelBody<'_>, after: &ModelBody<'_>) -> Result<(), Unkept> {
    let is_same_form = std::mem::discriminant(before) == std::mem::discriminant(after);
    require(is_same_form, "the form of its response")?;
    let views = (ResponseView::of(before), ResponseView::of(after));
    let contents = (ResponseContent::of(before), ResponseContent::of(after));
    let scans = (Scan::of(before), Scan::of(after));
    require(scans.0.says_as(&scans.1), "why its response ended")?;
    let known = |reason: &EndReason<'_>| (reason.field, keys.reasons.find(&reason.value).map(|_| reason.value.to_string()));
    let reasons = |view: &ResponseView<'_>| {
        let list = |reasons: &[EndReason<'_>]| reasons.iter().map(known).collect::<Vec<_>>();
        (list(&view.finish_reasons), list(&view.stop_reasons))
    };
    require(reasons(&views.0) == reasons(&views.1), "why its response ended")?;
    require(tokens_of(before) == tokens_of(after), "how many tokens its response took")?;
    let is_same = (&contents.0.calls, contents.0.is_blank) == (&contents.1.calls, contents.1.is_blank);
    require(is_same, "the calls of its response")
}
