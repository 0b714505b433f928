//! OPA's Data API: the Vercel AI SDK's policy package, and whoever else asks OPA about one call of a tool.
//!
//! The end of the path chooses the shape of the result, since each asker takes another shape for leave to go on.

use serde_json::{Value, json};
use tollgate_json::Parser;

use crate::body::{Fault, Members};
use crate::event::{Call, Place};
use crate::ruling::{Ruling, cut, ok};
use crate::{Answer, Event, Question, Request, Wire};

#[derive(Debug)]
pub(crate) struct DataApi;

pub(crate) static DATA_API: DataApi = DataApi;

const TEXT_MAX: usize = 10_000;

impl Wire for DataApi {
    fn name(&self) -> &'static str {
        "opa"
    }

    fn read(&self, request: &Request<'_>) -> Result<Question, Answer> {
        let shape = Shape::of(request.path);
        let event = read(request, shape).map_err(|fault| ok(shape.result(&Ruling::denied(fault))))?;
        Ok(Question { events: vec![event], answer: Box::new(move |outcome| ok(shape.result(&Ruling::of(outcome, 1)))) })
    }
}

/// The shape of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `true` or `false`: behind a path that ends in `allow`. To some askers any object is leave to go on.
    Boolean,
    /// An object for all readers of objects: behind a path that ends in `decision`.
    Object,
    /// A denial in an object: no asker is known to ask at this path.
    Unknown,
}

impl Shape {
    fn of(path: &str) -> Self {
        match path.trim_end_matches('/').rsplit('/').next() {
            Some("allow") => Self::Boolean,
            Some("decision") => Self::Object,
            _ => Self::Unknown,
        }
    }

    /// Writes the result. Without a result OPA means that the policy is undefined, which some askers read as leave to go on.
    fn result(self, ruling: &Ruling) -> Value {
        let denial = ruling.denial.as_deref().or(ruling.stop_reason()).map(|reason| cut(reason, TEXT_MAX));
        let allows = denial.is_none();
        match self {
            Self::Boolean => json!({"result": allows}),
            Self::Object => {
                let decision = if allows { "allow" } else { "deny" };
                json!({"result": {"allow": allows, "decision": decision, "reason": denial.unwrap_or_default()}})
            }
            // An asker for a list of tools takes the empty list.
            Self::Unknown => json!({"result": {"allow": false, "decision": "deny", "reason": denial.unwrap_or_default(), "tools": []}}),
        }
    }
}

/// The names of the members of a call in an input.
struct Names {
    tool: (&'static str, Option<&'static str>),
    arguments: &'static str,
    call: &'static str,
    thread: (&'static str, Option<&'static str>),
    turn: &'static str,
}

/// What the AI SDK's package sends, with `toolCallId` added by the deployment's `toInput`.
const AI_SDK: Names = Names {
    tool: ("tool", Some("name")),
    arguments: "args",
    call: "toolCallId",
    thread: ("runtimeContext", Some("threadId")),
    turn: "turnId",
};

/// The names of the gate's own events.
const OWN: Names =
    Names { tool: ("tool_name", None), arguments: "tool_input", call: "tool_call_id", thread: ("thread_id", None), turn: "turn_id" };

fn read(request: &Request<'_>, shape: Shape) -> Result<Event, Fault> {
    if shape == Shape::Unknown {
        return Err(Fault::new(
            "path",
            "found a path that ends in neither allow nor decision",
            "ask at /v1/data/tollgate/allow or …/decision",
        ));
    }
    let mut parser = Parser::new();
    let input = Members::parse(&mut parser, request.body)?.object("input")?;
    let names = match (input.has(AI_SDK.tool.0), input.has(OWN.tool.0)) {
        (true, false) => AI_SDK,
        (false, true) => OWN,
        (false, false) => {
            return Err(Fault::new("input.tool", "is missing", "send tool.name, args, toolCallId and runtimeContext.threadId"));
        }
        (true, true) => return Err(Fault::new("input", "found both tool and tool_name", "send the tool under one name")),
    };
    names.event(&input)
}

impl Names {
    fn event(&self, input: &Members<'_>) -> Result<Event, Fault> {
        let (tool, _) = inner(input, self.tool)?;
        let (thread, beside) = inner(input, self.thread)?;
        if thread.contains('/') {
            return Err(Fault::new(format!("input.{}", self.thread.0), "found a slash in the thread's id", "send an id without a slash"));
        }
        let id = input.text(self.call)?;
        let mut place = Place::new(&thread, None)?;
        place.turn = beside.optional_text(self.turn)?;
        // The same call may be asked about again, with the messages that came meanwhile. It is one event.
        let call = Call { id, tool, arguments: input.arguments(self.arguments)? };
        Ok(call.asked(&place, place.turn.as_deref()))
    }
}

/// Returns the text of a member, or of a member of it, and the object that it stands in.
fn inner<'d>(input: &Members<'d>, (outer, name): (&str, Option<&str>)) -> Result<(String, Members<'d>), Fault> {
    match name {
        Some(name) => {
            let object = input.object(outer)?;
            Ok((object.text(name)?, object))
        }
        None => Ok((input.text(outer)?, input.clone())),
    }
}
