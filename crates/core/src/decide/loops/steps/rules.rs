//! What the rules count, from the steps of a turn. Every count looks at the last 64 steps at most.

use super::mask::are_alike;
use super::memory::{Marks, STEPS_MAX, Step, StepMemory};
use crate::decide::ruling::Rule;

/// The periods of cycles that are looked for, in steps.
const PERIODS: std::ops::RangeInclusive<usize> = 2..=8;
/// How many steps [`Rule::FrequentCall`] looks at.
const FREQUENT_WINDOW: usize = 8;
/// How many kinds of errors [`Rule::ErrorClass`] takes together.
const CLASSES: usize = 2;

/// Returns how many repetitions a rule counts at most. `window` is the rule's window, for those that have one.
pub fn counted_max(rule: Rule, window: u32) -> u32 {
    let steps = match rule {
        Rule::SameErrorOverTurns | Rule::Denials | Rule::Once | Rule::CallsPerTurn => return u32::MAX,
        Rule::FrequentCall => FREQUENT_WINDOW,
        Rule::Cycle => STEPS_MAX / PERIODS.start(),
        Rule::IdenticalCalls if window > 0 => STEPS_MAX.min(window as usize),
        _ => STEPS_MAX,
    };
    steps as u32
}

/// A call that is asked about, or whose result has just come, among the steps of its turn.
#[derive(Clone, Copy)]
pub struct Case<'m> {
    /// What is remembered.
    pub memory: &'m StepMemory,
    /// The call.
    pub call: u32,
    /// Its tool.
    pub tool: u16,
    /// The last step with the same call.
    pub last: Option<&'m Step>,
    /// Attempts of the same call that have no result yet.
    pub open: u32,
    /// The last of these attempts, behind which no other call was begun. A host that tells no results has every call of the turn open.
    open_in_a_row: u32,
    /// Whether the result of the call is the last step.
    is_result: bool,
}

impl<'m> Case<'m> {
    /// Returns the case of a call that is asked about. An attempt with its id is the call itself.
    pub fn of_call(memory: &'m StepMemory, call: u32, tool: u16, id: u32) -> Self {
        Self { is_result: false, ..Self::new(memory, call, tool, Some(id)) }
    }

    /// Returns the case of a call whose result is the last step.
    pub fn of_result(memory: &'m StepMemory, call: u32, tool: u16) -> Self {
        Self::new(memory, call, tool, None)
    }

    fn new(memory: &'m StepMemory, call: u32, tool: u16, except: Option<u32>) -> Self {
        let last = memory.steps.iter().rfind(|step| step.call == call);
        let is_recent = |round: u8| memory.round.wrapping_sub(round) <= 1;
        let others = || memory.open.iter().rev().filter(|open| Some(open.id) != except && is_recent(open.round));
        let open = others().filter(|open| open.call == call).count() as u32;
        let open_in_a_row = others().take_while(|open| open.call == call).count() as u32;
        Self { memory, call, tool, last, open, open_in_a_row, is_result: true }
    }

    /// Returns how often what a rule counts has happened. `window` is the rule's window, for those that have one.
    pub fn count(&self, rule: Rule, window: u32) -> u32 {
        match rule {
            Rule::SameResult => self.same_results() + self.open_in_a_row,
            Rule::SameCallFails => self.in_a_row(|step| step.marks.has(Marks::FAILED)),
            Rule::SameError => self.errors(false),
            Rule::MissingProgram => self.errors(true),
            Rule::SameErrorOverTurns => self.errors_over_turns(),
            Rule::NothingNew => self.last_steps(|step| step.marks.has(Marks::KNOWN)),
            Rule::Cycle => self.laps(),
            Rule::FrequentCall => self.frequency(),
            Rule::AlikeResult => self.alike(),
            Rule::ErrorClass => self.class_failures(),
            Rule::NothingFound => self.nothing_found(),
            Rule::IdenticalCalls => self.identical(window),
            Rule::Denials => self.memory.denials,
            Rule::Once | Rule::CallsPerTurn => 0,
        }
    }

    fn latest(&self) -> impl Iterator<Item = &'m Step> + use<'m> {
        self.memory.steps.iter().rev()
    }

    fn last_steps(&self, holds: impl Fn(&Step) -> bool) -> u32 {
        self.latest().take_while(|step| holds(step)).count() as u32
    }

    /// Counts the last steps that are this call and of which something holds.
    fn in_a_row(&self, holds: impl Fn(&Step) -> bool) -> u32 {
        self.last_steps(|step| step.call == self.call && holds(step))
    }

    fn same_results(&self) -> u32 {
        let Some(last) = self.last else { return 0 };
        self.in_a_row(|step| step.masked == last.masked)
    }

    /// Counts this call's last error in the turn, wherever it came.
    fn errors(&self, of_missing_program: bool) -> u32 {
        let Some(last) = self.last.filter(|last| last.marks.has(Marks::FAILED)) else { return 0 };
        if last.marks.has(Marks::MISSING) != of_missing_program {
            return 0;
        }
        self.latest().filter(|step| step.call == self.call && step.masked == last.masked).count() as u32
    }

    fn errors_over_turns(&self) -> u32 {
        let Some(last) = self.last.filter(|last| last.marks.has(Marks::FAILED)) else { return 0 };
        let known = self.memory.refusals.iter().find(|known| (known.call, known.masked) == (self.call, last.masked));
        // What came in this turn alone is for the rules of a turn.
        let here = self.errors(false) + self.errors(true);
        known.map_or(0, |known| known.count).max(here) * u32::from(known.is_some_and(|known| known.count > here))
    }

    /// Counts the laps of a cycle that end with the last step, where this call ends the lap or is about to begin the next one.
    fn laps(&self) -> u32 {
        let steps = self.memory.steps.as_slice();
        let same = |one: &Step, other: &Step| {
            one.call == other.call && (one.masked == other.masked || (one.marks.has(Marks::FAILED) && other.marks.has(Marks::FAILED)))
        };
        let laps_of = |period: usize| {
            let start = steps.len().checked_sub(period)?;
            let lap = steps.get(start..)?;
            let edge = if self.is_result { lap.last() } else { lap.first() };
            if edge?.call != self.call || lap.iter().all(|step| same(step, lap.first().unwrap_or(step))) {
                return None;
            }
            let repeated = steps.iter().zip(steps.get(period..)?).rev().take_while(|(one, other)| same(one, other)).count();
            Some((repeated / period + 1) as u32)
        };
        PERIODS.filter_map(laps_of).max().unwrap_or(0)
    }

    /// Counts this call's last result among the last few steps. A success that brought something new is progress, and what lies before it
    /// does not count.
    fn frequency(&self) -> u32 {
        let Some(last) = self.last else { return 0 };
        let is_it = |step: &Step| step.call == self.call && step.masked == last.masked;
        let is_progress = |step: &Step| !step.marks.has(Marks::FAILED) && !step.marks.has(Marks::KNOWN) && !is_it(step);
        self.latest().take(FREQUENT_WINDOW).take_while(|step| !is_progress(step)).filter(|step| is_it(step)).count() as u32
    }

    fn alike(&self) -> u32 {
        let mut count = 0;
        let mut before: Option<&Step> = None;
        for step in self.latest().take_while(|step| step.call == self.call) {
            if before.is_some_and(|before| !are_alike(before.sketch, step.sketch)) {
                break;
            }
            before = Some(step);
            count += 1;
        }
        count
    }

    /// Counts the different calls of this tool that failed since its last success, by rounds: calls of one response are one attempt. They
    /// end where a third kind of error comes. For a call that fails again, that call is to blame.
    fn class_failures(&self) -> u32 {
        let mut classes: [Option<u16>; CLASSES] = [None; CLASSES];
        let mut counted: Vec<&Step> = Vec::new();
        for step in self.latest().filter(|step| step.tool == self.tool) {
            let is_known = classes.contains(&Some(step.class));
            let room = classes.iter_mut().find(|class| class.is_none());
            match room {
                _ if !step.marks.has(Marks::FAILED) => break,
                _ if is_known => {}
                Some(room) => *room = Some(step.class),
                None => break,
            }
            if !counted.iter().any(|other| other.call == step.call || other.round == step.round) {
                counted.push(step);
            }
        }
        counted.len() as u32
    }

    /// Counts the last look-ups that found nothing, by rounds.
    fn nothing_found(&self) -> u32 {
        let (mut count, mut round) = (0, None);
        for step in self.latest().take_while(|step| step.marks.has(Marks::NOTHING)) {
            count += u32::from(round != Some(step.round));
            round = Some(step.round);
        }
        count
    }

    /// Counts the same call, whatever its results: among the last `window` steps, or in a row where the window is 0.
    fn identical(&self, window: u32) -> u32 {
        match window as usize {
            0 => self.in_a_row(|_| true) + self.open_in_a_row,
            window => self.latest().take(window).filter(|step| step.call == self.call).count() as u32 + self.open,
        }
    }
}
