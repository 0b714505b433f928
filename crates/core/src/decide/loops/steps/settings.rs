//! The settings of the step controller: thresholds of its rules, and what it is patient with.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::is_zero;
use super::memory::STEPS_MAX;
use super::rules::counted_max;
use crate::decide::ruling::{Intervention, Rule, RuleFinding};
use crate::decide::tools::{read_numbers_of_tools, read_tools};
use crate::settings::Section;

/// The thresholds of a rule. 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// After how many repetitions the agent is warned.
    #[serde(skip_serializing_if = "is_zero")]
    pub warn_after: u32,
    /// After how many repetitions the next one is refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub deny_after: u32,
    /// After how many repetitions the turn is halted.
    #[serde(skip_serializing_if = "is_zero")]
    pub halt_after: u32,
    /// Among how many of the last steps repetitions are counted; 0 counts those in a row.
    #[serde(skip_serializing_if = "is_zero")]
    pub window: u32,
}

/// What may stop a run that a person watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Attended {
    /// The same as an unattended run.
    Halt,
    /// Calls are refused, and a halt is a warning.
    Deny,
    /// Everything is a warning.
    Warn,
}

/// The settings. Their serialised form is part of the policy's digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepSettings {
    /// The thresholds of the rules in force.
    pub rules: BTreeMap<&'static str, Limits>,
    /// After how many repetitions a call that waits for something is taken for one that repeats; 0 has no patience with it.
    pub waiting_after: u32,
    /// After how many repetitions a failure that may pass is taken for one that does not; 0 has no patience with it.
    pub passing_after: u32,
    /// After how many repetitions an action is taken for one without an effect; 0 has no patience with it.
    pub acting_after: u32,
    /// The same for calls of certain tools, whatever their names say.
    pub waiting_tools: BTreeMap<String, u32>,
    /// Tools each of whose calls may be made once in a turn.
    pub once_tools: BTreeSet<String>,
    /// How many calls of tools a turn may make.
    pub calls_per_turn_max: BTreeMap<String, u32>,
    /// What may stop a run that a person watches.
    pub attended: Attended,
}

/// The words for [`Attended`] in a configuration.
const ATTENDED: [(&str, Attended); 3] = [("halt", Attended::Halt), ("deny", Attended::Deny), ("warn", Attended::Warn)];

/// Returns whether a rule has no threshold for refusing: no single call is to blame, or there is nothing to count but calls.
fn is_without_denial(rule: Rule) -> bool {
    matches!(rule, Rule::ErrorClass | Rule::NothingFound)
}

impl StepSettings {
    /// Reads the settings; `None` where the preset has no rules.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        if !section.has_default("waiting_after") {
            return None;
        }
        let rules = section.section("rules");
        let of_rules = Rule::ALL.iter().filter(|rule| !matches!(rule, Rule::Once | Rule::CallsPerTurn));
        let limits = of_rules.map(|rule| (rule.name(), read_limits(&rules.section(rule.name()), *rule)));
        let rules = limits.filter(|(_, limits)| *limits != Limits { window: limits.window, ..Limits::default() }).collect();
        let patience = |key: &'static str| {
            let number = section.u32(key);
            refuse_uncounted(section, key, number, STEPS_MAX as u32);
            number
        };
        let waiting_tools = read_numbers_of_tools(section, "waiting_tools");
        refuse_uncounted(section, "waiting_tools", waiting_tools.values().copied().max().unwrap_or_default(), STEPS_MAX as u32);
        Some(Self {
            rules,
            waiting_after: patience("waiting_after"),
            passing_after: patience("passing_after"),
            acting_after: patience("acting_after"),
            waiting_tools,
            once_tools: read_tools(section, "once_tools").unwrap_or_default().into_iter().collect(),
            calls_per_turn_max: read_numbers_of_tools(section, "calls_per_turn_max"),
            attended: section.word("attended", &ATTENDED).unwrap_or(Attended::Halt),
        })
    }
}

impl StepSettings {
    /// Returns whether these settings can lead to a finding.
    #[must_use]
    pub fn can_find(&self, finding: RuleFinding) -> bool {
        let limits = self.rules.get(finding.rule.name()).copied().unwrap_or_default();
        match (finding.rule, finding.intervention) {
            (Rule::Once, intervention) => intervention == Intervention::Deny && !self.once_tools.is_empty(),
            (Rule::CallsPerTurn, intervention) => intervention == Intervention::Deny && !self.calls_per_turn_max.is_empty(),
            (_, Intervention::Warn) => limits.warn_after > 0,
            (_, Intervention::Deny | Intervention::Block) => limits.deny_after > 0,
            (_, Intervention::Halt) => limits.halt_after > 0,
        }
    }
}

fn read_limits(section: &Section<'_>, rule: Rule) -> Limits {
    let number = |key: &'static str| if section.value(key).is_some() { section.u32(key) } else { section.u32_or(key, 0) };
    if rule == Rule::Denials {
        return Limits { halt_after: number("halt_after"), ..Limits::default() };
    }
    let deny_after = if is_without_denial(rule) { 0 } else { number("deny_after") };
    let window = if rule == Rule::IdenticalCalls { number("window") } else { 0 };
    let limits = Limits { warn_after: number("warn_after"), deny_after, halt_after: number("halt_after"), window };
    check(section, rule, limits);
    limits
}

/// Refuses a threshold that the user wrote and that is never reached, because a stop comes before it or because so many repetitions are not
/// counted. A call is refused one step after its warning, so that both may have the same number; a halt comes in place of the warning.
fn check(section: &Section<'_>, rule: Rule, limits: Limits) {
    let Limits { warn_after, deny_after, halt_after, window } = limits;
    let is_late = [
        ("warn_after", "deny_after", deny_after > 0 && warn_after > deny_after),
        ("warn_after", "halt_after", halt_after > 0 && warn_after >= halt_after),
        ("halt_after", "deny_after", deny_after > 0 && halt_after > deny_after),
    ];
    for (key, stop, is_late) in is_late {
        if is_late && section.is_written(key) {
            let found = format!("a number that is never reached, because `{}` comes first", section.path_of(stop));
            section.fault(key, found, "write a smaller number, or 0 to leave it out");
        }
    }
    let counted = counted_max(rule, window);
    // A halt by this rule counts the call too that is halted.
    let halt_max = if rule == Rule::IdenticalCalls { counted.saturating_add(1) } else { counted };
    for (key, number, max) in
        [("warn_after", warn_after, counted), ("deny_after", deny_after, counted), ("halt_after", halt_after, halt_max)]
    {
        refuse_uncounted(section, key, number, max);
        if number > max && !section.is_written(key) && section.is_written("window") {
            let found = format!("a window in which `{}` is never reached", section.path_of(key));
            section.fault("window", found, "write a larger window, or that number too");
        }
    }
    refuse_uncounted(section, "window", window, STEPS_MAX as u32);
}

/// Refuses a number that the user wrote and that is larger than what is counted.
fn refuse_uncounted(section: &Section<'_>, key: &'static str, number: u32, max: u32) {
    if number > max && section.is_written(key) {
        section.fault(key, format!("a number that is never reached, because {max} are counted at most"), format!("write {max} or less"));
    }
}
