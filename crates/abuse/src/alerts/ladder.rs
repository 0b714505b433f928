//! Ladders: a firing takes a subject a step up, and each while without one takes it a step down. Thresholds stay what they are.

use crate::rules::{Mode, Rule, Step};

/// Where a firing takes a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Climb {
    /// The step, counted from 1.
    pub step: u32,
    /// Whether it is a higher one than before.
    pub is_higher: bool,
    /// For how long the step suspends, in milliseconds; `None` for a warning.
    pub suspends_ms: Option<i64>,
}

/// Returns where a firing takes a subject that is on a step; 0 for one that is on none.
pub(crate) fn climb(rule: &Rule, from: u32) -> Climb {
    let steps = &rule.ladder.steps;
    let top = u32::try_from(steps.len()).unwrap_or(u32::MAX).max(1);
    let step = from.saturating_add(1).min(top);
    let suspends_ms = match steps.get(step.saturating_sub(1) as usize) {
        Some(Step::Suspend(ms)) => Some(*ms),
        Some(Step::Warn) | None => None,
    };
    Climb { step, is_higher: step > from, suspends_ms }
}

/// Returns where a firing leaves a subject that must not be suspended: a rule that is paused takes nobody up, or all whom a provider's change
/// has hit would begin at the top once it is over.
pub(crate) fn stay(from: u32, climb: Climb) -> Climb {
    Climb { step: from.max(1), is_higher: from == 0, ..climb }
}

/// Returns whether a rule may suspend by its mode.
pub(crate) fn enforces(rule: &Rule) -> bool {
    rule.mode == Mode::Enforce
}
