//! LiteLLM's generic guardrail API. It asks before a request to a model, with the results of tools in it, and after the response, with its
//! calls. The calls of a response are allowed or blocked together.

use std::collections::HashMap;

use serde_json::{Value, json};
use tollgate_json::Parser;

use crate::body::{Fault, Members, result_text};
use crate::event::{Call, Place, event_id};
use crate::ruling::{Ruling, cut, ok};
use crate::{Answer, Event, Question, Request, Wire};

#[derive(Debug)]
pub(crate) struct Guardrail;

pub(crate) static GUARDRAIL: Guardrail = Guardrail;

const TEXT_MAX: usize = 10_000;

impl Wire for Guardrail {
    fn name(&self) -> &'static str {
        "litellm"
    }

    fn read(&self, request: &Request<'_>) -> Result<Question, Answer> {
        let events = events(request).map_err(|fault| ok(answer(&Ruling::denied(fault))))?;
        let expected = events.iter().filter(|event| event.get("type").is_none_or(|kind| kind != "turn_start")).count();
        Ok(Question { events, answer: Box::new(move |outcome| ok(answer(&Ruling::of(outcome, expected)))) })
    }
}

/// Writes the answer. Without an action LiteLLM goes on.
fn answer(ruling: &Ruling) -> Value {
    match ruling.denial.as_deref().or(ruling.stop_reason()) {
        Some(reason) => json!({"action": "BLOCKED", "blocked_reason": cut(reason, TEXT_MAX)}),
        None => json!({"action": "NONE"}),
    }
}

fn events(request: &Request<'_>) -> Result<Vec<Event>, Fault> {
    if !request.path.is_empty() {
        return Err(Fault::new("path", "found more than the wire's path", "post to /beta/litellm_basic_guardrail_api"));
    }
    let mut parser = Parser::new();
    let body = Members::parse(&mut parser, request.body)?;
    match body.text("input_type")?.as_str() {
        "request" => of_request(&body),
        "response" => of_response(&body),
        _ => Err(Fault::new("input_type", "found another text than request or response", "send what LiteLLM sends")),
    }
}

/// Returns the thread: LiteLLM's trace, which spans the requests of a conversation where the client names it.
fn place(body: &Members<'_>) -> Result<Place, Fault> {
    Place::new(&body.id("litellm_trace_id")?, None)
}

/// Returns the id of the request to the model, which LiteLLM sends with the response too. It is a part of each event's id, since servers of
/// models may number the calls of each response anew.
fn request_id(body: &Members<'_>) -> Result<Option<String>, Fault> {
    body.optional_text("litellm_call_id")
}

/// Returns the calls of a response. Calls are told apart by their ids alone.
fn of_response(body: &Members<'_>) -> Result<Vec<Event>, Fault> {
    let calls: Vec<Read> = body.objects("tool_calls")?.iter().map(Read::of).collect::<Result<_, _>>()?;
    let mut ids: Vec<&str> = calls.iter().map(|call| call.0.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() < calls.len() {
        return Err(Fault::new("tool_calls[].id", "found two calls with one id", "give each call of a response an id of its own"));
    }
    calls.iter().map(|call| Ok(call.0.asked(&place(body)?, request_id(body)?.as_deref()))).collect()
}

/// Returns the events of a request to a model: the results behind the model's last message, or the start of a turn. Agents write reminders
/// and the beginning of an answer behind results. So a text there is a prompt only if the model's last message makes no call.
fn of_request(body: &Members<'_>) -> Result<Vec<Event>, Fault> {
    let messages = body.objects("structured_messages")?;
    let roles: Vec<String> = messages.iter().map(|message| message.text("role")).collect::<Result<_, _>>()?;
    let end = roles.iter().rposition(|role| role != "assistant").unwrap_or(0);
    let behind = roles.iter().take(end).rposition(|role| role == "assistant").map_or(0, |last| last + 1);
    let calls = messages.split_at(behind).0.last().map_or(Ok(Vec::new()), |message| message.objects("tool_calls"))?;
    let mut results = messages.iter().zip(&roles).skip(behind).filter(|(_, role)| *role == "tool").map(|(message, _)| message).peekable();
    if results.peek().is_none() {
        // A request without a trace belongs to no thread, so there is no turn to start.
        let starts = calls.is_empty() && body.get("litellm_trace_id").is_some() && roles.last().is_some_and(|role| role == "user");
        let id = request_id(body)?.map(|request| event_id(&[&request, "start"]));
        return if starts { Ok(vec![place(body)?.event("turn_start", id)]) } else { Ok(Vec::new()) };
    }
    // The results of a request that is sent again come under another id. The gate counts the first result of a call.
    let (place, request) = (place(body)?, request_id(body)?);
    let calls: Vec<Read> = calls.iter().map(Read::of).collect::<Result<_, _>>()?;
    // Of two calls with one id the first counts.
    let by_id: HashMap<&str, &Read> = calls.iter().rev().map(|call| (call.0.id.as_str(), call)).collect();
    let event = |result: &Members<'_>| {
        let call = by_id.get(result.text("tool_call_id")?.as_str()).ok_or_else(result_without_call)?;
        Ok(call.0.answered(&place, request.as_deref(), result.get("content").map(result_text), None))
    };
    results.map(event).collect()
}

fn result_without_call() -> Fault {
    Fault::new(
        "structured_messages[].tool_call_id",
        "found a result without its call",
        "send the message of the assistant that made the call before the results",
    )
}

/// A call as OpenAI writes it.
struct Read(Call);

impl Read {
    fn of(call: &Members<'_>) -> Result<Self, Fault> {
        let function = call.object("function")?;
        Ok(Self(Call { id: call.text("id")?, tool: function.text("name")?, arguments: function.arguments_or_text("arguments")? }))
    }
}
