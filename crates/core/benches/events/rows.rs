//! The whole-event rows: which events are measured, and in which state of their threads.
//!
//! The time, the allocations and the instructions of a row are those of the same events. Every row has a prelude that brings the processor
//! to the state in question, and events that are then measured, one or two for each of the threads. A row knows the code that its verdicts
//! carry, and [`Row::check`] compares it, so that a row measures what its name says.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::deciding::Outcome;
use tollgate_core::decode::{Attribution, ToolInput};
use tollgate_core::guardrail::{GuardrailRequest, OapPassport};
use tollgate_core::passport::{Passport, Terms};
use tollgate_core::policy::Policy;

use super::{At, Feed, policy, policy_with, policy_with_a_suspension};

/// How many threads live at once: as in a worker, their state does not fit into the first-level cache.
pub const THREADS: usize = 1_000;
/// How many calls, each with its result, a turn has had when its next event is measured.
const CALLS_BEFORE: usize = 3;

/// One row, ready to be measured.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    pub policy: Arc<Policy>,
    /// The events that come first and are not measured.
    pub prelude: Vec<String>,
    /// The events that are measured.
    pub measured: Vec<String>,
    /// The code of every verdict on a measured event.
    pub code: &'static str,
}

impl Row {
    /// Returns a processor in the row's state.
    pub fn prepare(&self) -> Feed {
        let mut feed = Feed::new(&self.policy);
        feed.apply_all(&self.prelude);
        feed
    }

    /// Returns the mean length of the measured events, in bytes.
    pub fn bytes(&self) -> usize {
        self.measured.iter().map(String::len).sum::<usize>() / self.measured.len()
    }

    /// Fails unless every measured event gets the verdict that the row is named after.
    pub fn check(&self) {
        let mut feed = self.prepare();
        for event in &self.measured {
            let applied = feed.apply(event);
            let is_expected = matches!(&applied, Outcome::Verdict { decided, .. } if decided.code == self.code);
            assert!(is_expected, "{}: {applied:?} on {event}", self.name);
        }
    }
}

/// A function that makes a row; rows are large, so one is made at a time.
pub type MakeRow = fn() -> Row;

/// Every row. The target is about the first one.
pub const ROWS: [MakeRow; 12] = [
    || Row { name: "tool_call", policy: policy(), prelude: running(), measured: next(At::tool_call), code: "allow" },
    || Row { name: "tool_call, first of a thread", policy: policy(), prelude: gone(), measured: next(At::tool_call), code: "allow" },
    || Row { name: "tool_result", policy: policy(), prelude: called(At::tool_call), measured: next(At::tool_result), code: "allow" },
    || Row { name: "call + result", policy: policy(), prelude: running(), measured: pairs(), code: "allow" },
    || Row { name: "model_response", policy: policy(), prelude: running(), measured: next(At::model_response), code: "allow" },
    || Row {
        name: "model_response, cut off",
        policy: policy(),
        prelude: running(),
        measured: next(At::cut_off_response),
        code: "safety_terminated",
    },
    || Row {
        name: "tool_call, of a response cut off",
        policy: policy(),
        prelude: called(At::cut_off_response),
        measured: next(At::tool_call),
        code: "suppressed_tool_call",
    },
    || Row {
        name: "tool_call, stopped as a loop",
        policy: policy(),
        prelude: failing(),
        measured: next(again),
        code: "repeated_exact_failure_block",
    },
    || Row {
        name: "tool_call, sent again",
        policy: policy(),
        prelude: called(At::tool_call),
        measured: next(At::tool_call),
        code: "allow",
    },
    || Row {
        name: "tool_call, under a passport",
        policy: policy_with(passport(&passport_of(100))),
        prelude: running(),
        measured: next(At::tool_call),
        code: "allow",
    },
    || Row {
        name: "tool_call, user known",
        policy: policy_with_a_suspension(),
        prelude: running(),
        measured: next(At::tool_call),
        code: "allow",
    },
    || Row {
        name: "tool_call, user new",
        policy: policy_with_a_suspension(),
        prelude: running(),
        measured: next(At::tool_call).into_iter().enumerate().map(|(number, event)| of_user(&event, number)).collect(),
        code: "allow",
    },
];

fn threads() -> impl Iterator<Item = usize> {
    0..THREADS
}

/// Returns the events that bring every thread into a turn with some calls and their results.
fn running() -> Vec<String> {
    let turn = |thread| {
        let at = move |call| At { thread, turn: 1, call };
        let calls = (0..CALLS_BEFORE).flat_map(move |call| [at(call).tool_call(), at(call).tool_result()]);
        [at(0).turn_start()].into_iter().chain(calls)
    };
    threads().flat_map(turn).collect()
}

/// Returns the next event of each of these threads.
fn next(event: fn(At) -> String) -> Vec<String> {
    threads().map(|thread| event(At { thread, turn: 1, call: CALLS_BEFORE })).collect()
}

/// Returns these threads with one event more.
fn called(event: fn(At) -> String) -> Vec<String> {
    [running(), next(event)].concat()
}

fn pairs() -> Vec<String> {
    let pair = |thread| {
        let at = At { thread, turn: 1, call: CALLS_BEFORE };
        [at.tool_call(), at.tool_result()]
    };
    threads().flat_map(pair).collect()
}

/// Returns events of other threads that have come and gone, so that the store has room for new ones.
fn gone() -> Vec<String> {
    let at = |thread| At { thread: THREADS + thread, turn: 1, call: 0 };
    let began = threads().flat_map(|thread| [at(thread).tool_call(), at(thread).tool_result()]);
    began.chain(threads().map(|thread| at(thread).turn_end())).collect()
}

/// Returns the turn's last call again: another call by its id, the same one by its arguments.
fn again(at: At) -> String {
    let last = At { call: CALLS_BEFORE - 1, ..at };
    last.tool_call().replace(&last.call_id(), &at.call_id()).replace("/tool_call\"", "/again\"")
}

/// Returns threads in which that call has failed as often as it may, each time under an id of its own.
fn failing() -> Vec<String> {
    let fails = |thread| {
        let last = At { thread, turn: 1, call: CALLS_BEFORE - 1 };
        let attempt = |attempt: usize| {
            let id = At { call: 100 + attempt, ..last }.call_id();
            let events = [last.tool_call(), last.failed_result()];
            // The events' own ids hold the number of the call between slashes.
            events.map(|event| event.replace(&last.call_id(), &id).replace(&format!("/c{:06}/", last.call), &format!("/{id}/")))
        };
        [attempt(1), attempt(2)].concat()
    };
    [running(), threads().flat_map(fails).collect()].concat()
}

fn of_user(event: &str, number: usize) -> String {
    // As long as the one that it replaces.
    event.replace("user-4711", &format!("us-{number:06}"))
}

/// Returns a provider that has this passport for every agent.
pub fn passport(document: &Value) -> OapPassport {
    OapPassport::new(Arc::default(), Some(Passport::read(document.to_string().as_bytes()).map(Arc::new)), Terms::default())
}

/// Returns the request of a call that a provider is asked about alone, without an event around it.
pub fn request_of<'e>(tool_name: &'e str, tool_input: &'e ToolInput<'e>, attribution: &'e Attribution<'e>) -> GuardrailRequest<'e> {
    GuardrailRequest {
        tool_name,
        tool_input,
        tool_call_id: "c",
        thread_id: "t",
        turn_id: None,
        time_ms: Some(0),
        latest_ms: Some(0),
        attribution,
        passport: None,
    }
}

/// Returns a passport whose lists have so many entries each.
pub fn passport_of(entries: usize) -> Value {
    let list = |entry: &dyn Fn(usize) -> String| (0..entries).map(entry).collect::<Vec<String>>();
    let ids = ["system.command.execute", "data.file.read", "web.fetch", "mcp.tool.execute", "messaging.send"];
    let capabilities: Vec<Value> = ids.map(|id| json!({"id": id})).into();
    json!({
        "spec_version": "oap/1.0", "status": "active",
        "capabilities": capabilities,
        "limits": {
            "system.command.execute": {
                "allowed_commands": list(&|n| format!("tool-{n}")), "blocked_patterns": list(&|n| format!("danger-{n} --force")),
            },
            "data.file.read": {
                "allowed_paths": list(&|n| if n % 2 == 0 { format!("/work/project-{}", n / 2) } else { format!("/data/set-{n}/*/out-{n}.csv") }),
                "blocked_patterns": list(&|n| format!("**/private-{n}/**")),
            },
            "web.fetch": {"allowed_domains": list(&|n| format!("host-{n}.example.com")), "blocked_domains": list(&|n| format!("*.bad-{n}.example"))},
            "mcp.tool.execute": {"allowed_servers": list(&|n| format!("server-{n}")), "allowed_tools": list(&|n| format!("get_{n}_*"))},
            "messaging.send": {"allowed_recipients": list(&|n| format!("person-{n}@example.com"))},
        },
    })
}
