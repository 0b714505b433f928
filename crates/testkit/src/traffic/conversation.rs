//! Decides what one thread does next: turns of model responses, the calls that they ask for, and their results.
//!
//! ```text
//! turn_start ─▶ response ─▶ calls ─▶ results ─▶ response … ─▶ last response ─▶ turn_end
//!                  │           └ denied: no result
//!                  ├ cut off by its provider: the turn ends
//!                  └ a loop: the same call fails, is repeated, and is stopped when it comes a third time: the turn ends
//! ```

use std::collections::VecDeque;

use super::{MixSettings, Random};

/// One event to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    TurnStart,
    Response { calls: Vec<Call>, is_cut_off: bool },
    Call(Call),
    Result(Call, Outcome),
    TurnEnd,
}

/// A tool call. Its arguments follow from `seed` and `bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// Its number in the thread.
    pub(super) number: u32,
    pub(super) tool: Tool,
    pub(super) seed: u64,
    /// The size of its arguments.
    pub(super) bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// One of [`super::write::TOOLS`].
    Usual(usize),
    /// A tool that the bench's policy denies.
    Denied,
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    /// It has the same result as the same call before.
    SameAgain,
    Failure,
}

/// A thread of the traffic: where it is in its turn, and what it may repeat.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversation {
    /// The number of its turn.
    pub(super) turn: u32,
    /// Steps that the turn still takes.
    steps: usize,
    is_running: bool,
    calls: u32,
    planned: VecDeque<Step>,
}

/// The fewest steps of a turn, and how many more it may take.
const STEPS: (usize, usize) = (6, 16);
/// The most parallel calls of a step.
const CALLS_MAX: usize = 2;
/// The calls of a step that is no loop, on average.
const CALLS_MEAN: f64 = (1 + CALLS_MAX) as f64 / 2.0;
/// The fewest and the most bytes of a call's arguments.
const ARGUMENTS: (usize, usize) = (60, 3_500);
/// The most bytes of the arguments of all calls of one response.
const ARGUMENTS_TOTAL: usize = 5_500;
/// The share of results that are failures, loops aside.
const FAILURES: f64 = 0.03;
/// How many calls a loop has, and how many of them repeat one.
const LOOP_CALLS: f64 = 3.0;
const LOOP_REPEATS: f64 = 2.0;

impl Conversation {
    /// Returns a conversation that has been going on for a while, so that the traffic does not begin with everybody's first words.
    pub(super) fn running(random: &mut Random) -> Self {
        Self { turn: 1, steps: random.below(STEPS.0 + STEPS.1), is_running: true, ..Self::default() }
    }

    /// Returns the next event of the thread.
    pub(super) fn next(&mut self, settings: &MixSettings, random: &mut Random) -> Step {
        loop {
            match self.planned.pop_front() {
                Some(step) => return step,
                None => self.plan(settings, random),
            }
        }
    }

    fn plan(&mut self, settings: &MixSettings, random: &mut Random) {
        if !self.is_running {
            self.turn += 1;
            (self.steps, self.is_running) = (STEPS.0 + random.below(STEPS.1), true);
            self.planned.push_back(Step::TurnStart);
            return;
        }
        let is_last = self.steps == 0;
        self.steps = self.steps.saturating_sub(1);
        if random.chance(settings.safety_stops) {
            let calls = self.calls(random);
            self.planned.push_back(Step::Response { calls, is_cut_off: true });
            return self.end();
        }
        if is_last {
            self.planned.push_back(Step::Response { calls: Vec::new(), is_cut_off: false });
            return self.end();
        }
        if random.chance(loop_chance(settings.loops)) {
            return self.plan_loop(random);
        }
        let calls = self.calls(random);
        let tool_of = |call: Call, random: &mut Random| match random.chance(settings.denials) {
            true => Call { tool: Tool::Denied, ..call },
            false => call,
        };
        let calls: Vec<_> = calls.into_iter().map(|call| tool_of(call, random)).collect();
        self.planned.push_back(Step::Response { calls: calls.clone(), is_cut_off: false });
        self.planned.extend(calls.iter().copied().map(Step::Call));
        for call in calls.into_iter().filter(|call| call.tool != Tool::Denied) {
            let outcome = if random.chance(FAILURES) { Outcome::Failure } else { Outcome::Success };
            self.planned.push_back(Step::Result(call, outcome));
        }
    }

    /// Plans the same call three times: it fails, or a read-only one brings the same again, and the third is stopped.
    fn plan_loop(&mut self, random: &mut Random) {
        let is_failure = random.chance(0.5);
        let first = Call {
            tool: Tool::Usual(if is_failure { super::write::FAILING_TOOL } else { super::write::READING_TOOL }),
            ..self.call(random)
        };
        let outcome = if is_failure { Outcome::Failure } else { Outcome::SameAgain };
        for repeat in 0..3 {
            let call = Call { number: first.number + repeat, ..first };
            self.calls = call.number + 1;
            self.planned.push_back(Step::Response { calls: vec![call], is_cut_off: false });
            self.planned.push_back(Step::Call(call));
            if repeat < 2 {
                self.planned.push_back(Step::Result(call, outcome));
            }
        }
        self.end();
    }

    fn end(&mut self) {
        self.planned.push_back(Step::TurnEnd);
        self.is_running = false;
    }

    fn calls(&mut self, random: &mut Random) -> Vec<Call> {
        let count = 1 + random.below(CALLS_MAX);
        (0..count)
            .map(|_| {
                let call = self.call(random);
                Call { bytes: call.bytes.min(ARGUMENTS_TOTAL / count), ..call }
            })
            .collect()
    }

    fn call(&mut self, random: &mut Random) -> Call {
        let number = self.calls;
        self.calls += 1;
        let tool = Tool::Usual(random.below(super::write::TOOLS.len()));
        Call { number, tool, seed: random.bits(), bytes: random.size(ARGUMENTS.0, ARGUMENTS.1) }
    }
}

/// Returns how often a step has to begin a loop, so that this share of all calls are repeats in one.
fn loop_chance(share: f64) -> f64 {
    CALLS_MEAN * share / (LOOP_REPEATS - (LOOP_CALLS - CALLS_MEAN) * share)
}
