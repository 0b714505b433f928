//! One configuration at work on recorded threads, and what its verdicts would have cut off.

use std::collections::HashSet;

use serde::Serialize;
use tollgate_core::decide::evaluate::evaluate;
use tollgate_core::decide::loops::{Marks, Step};
use tollgate_core::decide::policy::{Policy, PolicySettings};
use tollgate_core::decide::ruling::{Action, LoopCode};
use tollgate_core::decide::thread::Thread;
use tollgate_core::event::decode::{Body, Event};
use tollgate_core::settings::Faults;

/// What a configuration did to a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Calls that were made.
    pub calls: u32,
    /// Results with a warning.
    pub warnings: u32,
    /// Calls that were refused, before any halt of their turn.
    pub denials: u32,
    /// Turns that were halted.
    pub halts: u32,
    /// Calls that were refused or came after a halt of their turn.
    pub spared: u32,
    /// Refused calls whose recorded result is a success with something new.
    pub new_denied: u32,
    /// Calls after a halt of their turn whose recorded result is a success with something new.
    pub new_cut_off: u32,
    /// The lap of the call that was stopped first, for conversations that have laps.
    #[serde(skip)]
    pub first_lap: Option<u32>,
}

impl Outcome {
    /// Returns whether anything was refused or halted.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.denials + self.halts > 0
    }

    /// Returns whether anything new was lost.
    #[must_use]
    pub fn is_harmed(&self) -> bool {
        self.new_denied + self.new_cut_off > 0
    }
}

/// A step of a thread as `explain` shows it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Explained {
    /// The call's number in the thread.
    pub call: u32,
    /// The tool.
    pub tool: String,
    /// What the controllers said of the call.
    pub on_call: String,
    /// How often what the deciding rule counts had happened.
    pub call_count: u32,
    /// What the result is: `new`, `known` or `nothing`, and whether it failed.
    pub result: String,
    /// What the controllers said of the result.
    pub on_result: String,
    /// How often what the deciding rule counts had happened.
    pub result_count: u32,
}

/// Sees what each result is, and stops nothing.
#[derive(Debug)]
pub(super) struct Observer {
    policy: Policy,
}

/// The state of one thread under an observer.
#[derive(Debug, Default)]
pub(super) struct Observed {
    thread: Thread,
    turn: Option<String>,
}

impl Observer {
    pub(super) fn new() -> Result<Self, Faults> {
        // All rules are off, so that every step is remembered and none is refused.
        Ok(Self { policy: policy("{preset: gemini_cli, rules: {identical_calls: {halt_after: 0}}}")? })
    }

    /// Brings an event to its thread. Returns whether a new turn began, and the step of a result.
    pub(super) fn note(&self, observed: &mut Observed, event: &Event<'_>) -> (bool, Option<Step>) {
        // What cannot be decided is no step.
        let is_read = evaluate(&self.policy, &mut observed.thread, event, &mut Vec::new()).is_ok();
        let turn = Some(format!("{:?}{:?}", observed.thread.turn.id, observed.thread.turn.started_by));
        let is_new_turn = observed.turn != turn;
        observed.turn = turn;
        let is_result = is_read && matches!(event.body, Body::ToolResult(_));
        (is_new_turn, observed.thread.turn.memory().loops.steps.steps.last().copied().filter(|_| is_result))
    }
}

/// Returns the policy of a section `tool_loop_guardrails`, with every other part of the gate off.
pub(super) fn policy(section: &str) -> Result<Policy, Faults> {
    let text = format!("safety_finish_reason: {{enabled: false}}\ntool_loop_guardrails: {section}\n");
    Ok(Policy::new(&PolicySettings::from_yaml(&text)?))
}

/// The state of one thread under one configuration.
#[derive(Debug, Default)]
pub(super) struct SideState {
    thread: Thread,
    /// The calls that may not run and have no result yet.
    stopped: HashSet<String>,
    is_halted: bool,
    pub(super) outcome: Outcome,
}

/// The code of a verdict with its count, if it is more than a plain allow.
#[derive(Default)]
pub(super) struct VerdictCode {
    pub(super) code: String,
    pub(super) count: u32,
}

impl SideState {
    /// Decides on an event, and counts what follows. `step` is what the observer saw of a result.
    pub(super) fn note(&mut self, policy: &Policy, event: &Event<'_>, is_new_turn: bool, step: Option<Step>) -> Option<VerdictCode> {
        if is_new_turn {
            self.is_halted = false;
        }
        let mut verdict = Vec::new();
        let decided = evaluate(policy, &mut self.thread, event, &mut verdict).ok().flatten()?;
        let is_new = step.is_some_and(|step| !step.marks.has(Marks::FAILED) && !step.marks.has(Marks::KNOWN));
        let halts = LoopCode::is_halt(&decided.code);
        match &event.body {
            Body::ToolCall(call) => self.call(&call.tool_call_id, &event.event_id, decided.action, halts),
            Body::ToolResult(result) => {
                self.result(&result.tool_call_id, is_new);
                if !self.is_halted && decided.action == Action::Warn {
                    self.outcome.warnings += 1;
                }
                if halts && !self.is_halted {
                    (self.is_halted, self.outcome.halts) = (true, self.outcome.halts + 1);
                    self.outcome.first_lap = self.outcome.first_lap.or_else(|| lap_of(&event.event_id));
                }
            }
            _ => return None,
        }
        let count = serde_json::from_slice::<serde_json::Value>(&verdict).ok().and_then(|verdict| verdict.get("count")?.as_u64());
        Some(VerdictCode { code: decided.code.into_owned(), count: count.and_then(|count| u32::try_from(count).ok()).unwrap_or_default() })
    }

    fn call(&mut self, id: &str, event_id: &str, action: Action, halts: bool) {
        self.outcome.calls += 1;
        let is_stopped = matches!(action, Action::Block | Action::Halt);
        // A call that was refused live has no result, so that the call itself counts.
        self.outcome.spared += u32::from(is_stopped || self.is_halted);
        if self.is_halted || !is_stopped {
            return;
        }
        self.stopped.insert(id.to_owned());
        self.outcome.denials += 1;
        self.outcome.first_lap = self.outcome.first_lap.or_else(|| lap_of(event_id));
        if halts {
            (self.is_halted, self.outcome.halts) = (true, self.outcome.halts + 1);
        }
    }

    fn result(&mut self, id: &str, is_new: bool) {
        if self.stopped.remove(id) {
            self.outcome.new_denied += u32::from(is_new);
        } else if self.is_halted {
            self.outcome.new_cut_off += u32::from(is_new);
        }
    }
}

/// Returns the lap that an event's id of a conversation names.
fn lap_of(event_id: &str) -> Option<u32> {
    event_id.split('.').nth(1)?.parse().ok()
}

/// Explains the steps of one thread under a policy.
#[derive(Debug)]
pub struct Explainer {
    policy: Policy,
    observer: Observer,
    observed: Observed,
    side: SideState,
    steps: Vec<(String, Explained)>,
}

impl Explainer {
    /// Returns an explainer that has seen nothing.
    ///
    /// # Errors
    /// The settings of the observer cannot be read, which a test rules out.
    pub fn new(policy: Policy) -> Result<Self, Faults> {
        let (observed, side) = (Observed::default(), SideState::default());
        Ok(Self { policy, observer: Observer::new()?, observed, side, steps: Vec::new() })
    }

    /// Takes the thread's next event.
    pub fn note(&mut self, event: &Event<'_>) {
        let (is_new_turn, step) = self.observer.note(&mut self.observed, event);
        let said = self.side.note(&self.policy, event, is_new_turn, step).unwrap_or_default();
        match &event.body {
            Body::ToolCall(call) => {
                let (call_number, tool) = (self.side.outcome.calls, call.tool_name.to_string());
                let explained = Explained { call: call_number, tool, on_call: said.code, call_count: said.count, ..Explained::default() };
                self.steps.push((call.tool_call_id.to_string(), explained));
            }
            Body::ToolResult(result) => {
                let open = self.steps.iter_mut().rfind(|(id, step)| *id == result.tool_call_id && step.on_result.is_empty());
                if let (Some((_, explained)), Some(step)) = (open, step) {
                    explained.result = described(step.marks);
                    (explained.on_result, explained.result_count) = (said.code, said.count);
                }
            }
            _ => {}
        }
    }

    /// Returns the steps.
    #[must_use]
    pub fn finish(self) -> Vec<Explained> {
        self.steps.into_iter().map(|(_, step)| step).collect()
    }
}

fn described(marks: Marks) -> String {
    let words = [
        (Marks::KNOWN, "known"),
        (Marks::FAILED, "failed"),
        (Marks::PASSING, "may pass"),
        (Marks::MISSING, "program missing"),
        (Marks::NOTHING, "nothing found"),
    ];
    let said: Vec<_> = words.into_iter().filter(|(mark, _)| marks.has(*mark)).map(|(_, word)| word).collect();
    if said.is_empty() { "new".to_owned() } else { said.join(", ") }
}
