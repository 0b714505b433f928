//! The step controller: it compares every call and result with the last steps of its turn, whatever the tools are called.
//!
//! Most of its rules refuse the one call that would repeat, say why, and let the agent go on. The turn is halted where refused calls are
//! made again and again, or by rules that no single call is to blame for.

mod mask;
mod memory;
mod patience;
mod rules;
mod settings;
#[cfg(test)]
mod tests;

use memory::TALLIES_MAX;
pub use memory::{Attempt, Marks, Refusal, Step, StepMemory, Tally};
pub use settings::{Attended, Limits, StepSettings};

use std::sync::LazyLock;

use super::failure::{self, Asked};
use super::hash::{Mix, half_of};
use super::{CallContext, LoopController, LoopDecision, Observation, Signature};
use crate::decide::ruling::{Intervention, LoopCode, Rule, RuleFinding};
use crate::decide::tools::ToolPatterns;
use crate::rare::Rare;
use crate::settings::Section;
use patience::Patience;
use rules::Case;
use tollgate_json::digest::Fingerprint;

/// The rules in the order in which they are asked. The first that objects decides.
const ORDER: [Rule; 12] = [
    Rule::SameResult,
    Rule::SameCallFails,
    Rule::MissingProgram,
    Rule::SameError,
    Rule::SameErrorOverTurns,
    Rule::AlikeResult,
    Rule::NothingNew,
    Rule::FrequentCall,
    Rule::Cycle,
    Rule::IdenticalCalls,
    Rule::ErrorClass,
    Rule::NothingFound,
];

/// A controller that compares steps.
#[derive(Debug)]
pub struct Steps {
    settings: StepSettings,
    /// The limits of the rules, in the order of [`ORDER`].
    limits: [(Rule, Limits); ORDER.len()],
    /// After how many refused calls the turn is halted; 0 is never.
    denials_max: u32,
    patience: Patience,
    once: ToolPatterns,
    /// The patterns of tools whose calls are limited, each with the key of its tally and the most calls.
    limited: Vec<(ToolPatterns, u32, u32)>,
}

/// What an empty id of a call is in hashes.
static NO_ID: LazyLock<u32> = LazyLock::new(|| Fingerprint::of("").mark() as u32);

/// What a call is in hashes.
#[derive(Clone, Copy)]
struct Hashed {
    id: u32,
    call: u32,
    tool: u16,
}

impl Hashed {
    fn new(call: &Signature<'_>, context: &CallContext<'_>) -> Self {
        let mut mix = Mix::default();
        mix.word(call.tool.mark());
        let tool = mix.short();
        mix.word(call.args.first_u64());
        Self { id: context.id.map_or(0, |id| id.mark() as u32), call: mix.half(), tool }
    }

    /// Returns whether this very call is open, and was asked about before: an id alone does not say so, since some servers give every call of a
    /// response the same id or none.
    fn is_open(self, memory: &StepMemory) -> bool {
        self.id != *NO_ID && memory.open.iter().any(|open| (open.id, open.call) == (self.id, self.call))
    }
}

impl LoopController for Steps {
    const NAME: &'static str = "steps";
    const SLOT_VERSION: u32 = 1;

    type Settings = StepSettings;
    type Memory = Rare<StepMemory>;

    fn read(section: &Section<'_>) -> Option<StepSettings> {
        StepSettings::read(section)
    }

    fn new(settings: StepSettings) -> Self {
        let limits_of = |rule: Rule| settings.rules.get(rule.name()).copied().unwrap_or_default();
        Self {
            limits: ORDER.map(|rule| (rule, limits_of(rule))),
            denials_max: limits_of(Rule::Denials).halt_after,
            patience: Patience::new(&settings),
            once: ToolPatterns::new(settings.once_tools.iter().cloned()),
            limited: settings
                .calls_per_turn_max
                .iter()
                .map(|(pattern, max)| (ToolPatterns::new([pattern.clone()]), half_of(pattern.as_bytes()), *max))
                .collect(),
            settings,
        }
    }

    fn before_call(&self, memory: &mut Rare<StepMemory>, call: &Signature<'_>, context: &CallContext<'_>) -> LoopDecision {
        let hashed = Hashed::new(call, context);
        if memory.steps.last().is_some_and(|step| step.round == memory.round) {
            memory.round = memory.round.wrapping_add(1);
        }
        let case = Case::of_call(memory, hashed.call, hashed.tool, hashed.id);
        let is_repeated = case.last.is_some() || case.open > 0;
        let marks = if is_repeated { self.patience.marks(call.tool_name, context) } else { Marks::default() };
        let objection = self
            .objection(memory, hashed, call.tool_name)
            .or_else(|| if is_repeated { self.refusal(&case, marks, call.tool_name) } else { None });
        let Some((rule, count, is_halt)) = objection.filter(|_| !context.only_warns) else {
            let is_counted = self.begin(memory, hashed, marks.of_attempt(Asked::of(context)), call.tool_name);
            return LoopDecision::allow(0).with_stop_due(is_counted);
        };
        memory.denials = memory.denials.saturating_add(1);
        let is_over = self.denials_max > 0 && memory.denials > self.denials_max;
        let (rule, count) = if is_over { (Rule::Denials, memory.denials - 1) } else { (rule, count) };
        let halts = (is_halt || is_over) && !self.never_halts(context);
        found(rule, if halts { Intervention::Halt } else { Intervention::Deny }, count)
    }

    fn after_call(
        &self,
        memory: &mut Rare<StepMemory>,
        call: &Signature<'_>,
        context: &CallContext<'_>,
        result: &Observation<'_>,
    ) -> LoopDecision {
        let hashed = Hashed::new(call, context);
        let attempt = memory.end(hashed.id, hashed.call);
        let is_known_call = memory.steps.iter().any(|step| step.call == hashed.call);
        let waits = || if is_known_call { self.patience.marks(call.tool_name, context) } else { Marks::default() };
        let blank = Attempt { id: hashed.id, call: hashed.call, round: memory.round, marks: Marks::default() };
        let marks = attempt.map_or_else(waits, |attempt| attempt.marks.of_call());
        let (step, has_not_run) = step_of(memory, hashed, &attempt.unwrap_or(blank), marks, result, context);
        let is_failure = step.marks.has(Marks::FAILED);
        if !is_failure && !step.marks.has(Marks::KNOWN) {
            memory.denials = 0;
        }
        if is_failure {
            memory.count_refusal(step.call, step.masked);
        }
        // Another try is due where the first one failed for certain.
        if has_not_run && self.once.matches(call.tool_name) {
            memory.tallies.retain(|tally| tally.key != step.call);
        }
        memory.push(step);
        self.judge(memory, hashed, call.tool_name, context, marks)
    }
}

impl Steps {
    /// Returns whether no turn is halted, because a person watches.
    fn never_halts(&self, context: &CallContext<'_>) -> bool {
        context.is_attended && self.settings.attended != Attended::Halt
    }

    /// Returns the limit on calls that this one would exceed, with the count.
    fn objection(&self, memory: &StepMemory, hashed: Hashed, tool_name: &str) -> Option<(Rule, u32, bool)> {
        if self.once.matches(tool_name) && !hashed.is_open(memory) {
            let made = memory.tally(hashed.call);
            // A call that there is no room to tally may have been made.
            let made = if made == 0 && memory.is_tallied_out() { TALLIES_MAX } else { made };
            if made > 0 {
                return Some((Rule::Once, made, false));
            }
        }
        let exceeded = self.limited.iter().find(|(tools, key, max)| memory.tally(*key) >= *max && tools.matches(tool_name))?;
        Some((Rule::CallsPerTurn, memory.tally(exceeded.1), false))
    }

    /// Returns the rule that refuses a call, with its count, and whether it halts the turn.
    fn refusal(&self, case: &Case<'_>, marks: Marks, tool_name: &str) -> Option<(Rule, u32, bool)> {
        self.limits.iter().find_map(|(rule, limits)| {
            // This call counts too where its results do not matter.
            let halt_after = if *rule == Rule::IdenticalCalls { limits.halt_after.saturating_sub(1) } else { 0 };
            let least = [limits.deny_after, halt_after].into_iter().filter(|limit| *limit > 0).min()?;
            let count = case.count(*rule, limits.window);
            let patient = |limit: u32| self.patience.limit(*rule, limit, marks, case, tool_name);
            let is_halt = halt_after > 0 && count >= patient(halt_after);
            // Nothing is said of results where none has come.
            let said = if *rule == Rule::SameResult && case.last.is_none() { Rule::IdenticalCalls } else { *rule };
            (is_halt || (limits.deny_after > 0 && count >= patient(least))).then_some((said, count, is_halt))
        })
    }

    /// Judges the step that was pushed last.
    fn judge(&self, memory: &StepMemory, hashed: Hashed, tool_name: &str, context: &CallContext<'_>, marks: Marks) -> LoopDecision {
        let case = Case::of_result(memory, hashed.call, hashed.tool);
        let mut warning = None;
        for (rule, limits) in self.limits.iter().filter(|(_, limits)| limits.warn_after > 0 || limits.halt_after > 0) {
            let count = case.count(*rule, limits.window);
            let is_due = |limit: u32| limit > 0 && count >= limit && count >= self.patience.limit(*rule, limit, marks, &case, tool_name);
            if is_due(limits.halt_after) && !self.never_halts(context) {
                return found(*rule, Intervention::Halt, count);
            }
            if warning.is_none() && (is_due(limits.warn_after) || is_due(limits.halt_after)) {
                warning = Some((*rule, count));
            }
        }
        let may_repeat = case.last.is_some_and(|last| last.marks.has(Marks::KNOWN) || last.marks.has(Marks::FAILED));
        let is_stop_due = may_repeat && self.refusal(&case, marks, tool_name).is_some() && !context.only_warns;
        let decision = warning.map_or(LoopDecision::allow(0), |(rule, count)| found(rule, Intervention::Warn, count));
        decision.with_stop_due(is_stop_due)
    }

    /// Notes that a call is let run. Returns whether it was counted, so that it, or the next call of its tool, is refused from now on.
    fn begin(&self, memory: &mut StepMemory, hashed: Hashed, marks: Marks, tool_name: &str) -> bool {
        let is_again = hashed.is_open(memory);
        memory.begin(Attempt { id: hashed.id, call: hashed.call, round: memory.round, marks });
        if is_again {
            return false;
        }
        let mut is_counted = self.once.matches(tool_name);
        if is_counted && !memory.is_tallied_out() {
            memory.count(hashed.call);
        }
        for (_, key, _) in self.limited.iter().filter(|(tools, ..)| tools.matches(tool_name)) {
            memory.count(*key);
            is_counted = true;
        }
        is_counted
    }
}

/// Returns the step of a result, and whether the call has not run for certain.
fn step_of(
    memory: &StepMemory,
    hashed: Hashed,
    attempt: &Attempt,
    marks: Marks,
    result: &Observation<'_>,
    context: &CallContext<'_>,
) -> (Step, bool) {
    let same_call = || memory.steps.iter().filter(|step| step.call == hashed.call);
    let arguments = context.arguments();
    let asked = if arguments.is_empty() { attempt.marks.asked() } else { Asked::of(context) };
    let is_repeated = same_call().next().is_some();
    let result = failure::Result { text: result.text(), declared: result.declared, arguments, asked, is_repeated };
    let (seen, masked) = failure::look(&result, |seen, text| (seen, mask::masked(text)));
    let is_known = same_call().any(|step| step.masked == masked.hash);
    let marks = marks
        .with(Marks::FAILED, seen.class.is_some())
        .with(Marks::PASSING, seen.is_passing)
        .with(Marks::MISSING, seen.is_missing)
        .with(Marks::NOTHING, seen.is_nothing)
        .with(Marks::UNCLEAR, seen.is_unclear)
        .with(Marks::KNOWN, is_known);
    let class = seen.class.unwrap_or(masked.numbers);
    let (round, sketch) = (attempt.round, masked.sketch);
    (Step { call: hashed.call, masked: masked.hash, tool: hashed.tool, class, sketch, round, marks }, seen.has_not_run)
}

fn found(rule: Rule, intervention: Intervention, count: u32) -> LoopDecision {
    LoopDecision::found(LoopCode::Rule(RuleFinding { rule, intervention }), count)
}
