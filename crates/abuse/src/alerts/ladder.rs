//! Ladders: a firing takes a subject a step up, and each while without one takes it a step down. Thresholds stay what they are.

use tollgate_core::decide::signal::KeyKind;
use tollgate_json::digest::Fingerprint;

use crate::rules::{Mode, Rule, Step};
use crate::subjects::Episode;

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

/// Returns whether a rule may suspend subjects of a kind.
pub(crate) fn enforces(rule: &Rule, kind: KeyKind) -> bool {
    rule.mode == Mode::Enforce && kind.subject_kind().is_some()
}

/// Takes an episode a step down for each while without offence up to a time, in milliseconds since the epoch. It is over at step 0.
pub(crate) fn go_down(rule: &Rule, episode: &mut Episode, at_ms: i64) {
    while episode.descends_ms <= at_ms && episode.step > 0 {
        episode.step -= 1;
        episode.descends_ms = episode.descends_ms.saturating_add(rule.decay_ms());
    }
}

/// Returns the episode behind a firing at a time, which begins it unless it is under way. `suspends_ms` is for how long the firing suspends.
pub(crate) fn go_up(
    rule: &Rule,
    before: Option<Episode>,
    at_ms: i64,
    (step, suspends_ms): (u32, Option<i64>),
    alert_id: impl FnOnce() -> Fingerprint,
) -> Episode {
    let mut episode = before.unwrap_or_else(|| Episode {
        alert_id: alert_id(),
        step: 0,
        descends_ms: 0,
        until_ms: None,
        suspended_ms: None,
        alerted_ms: i64::MIN,
        suppressed: 0,
    });
    if let Some(ms) = suspends_ms {
        episode.until_ms = episode.until_ms.max(Some(at_ms.saturating_add(ms)));
    }
    episode.step = step;
    // It can offend again when the suspension is over, and only then does going without offence mean anything.
    let quiet_ms = at_ms.max(episode.until_ms.unwrap_or(i64::MIN));
    episode.descends_ms = episode.descends_ms.max(quiet_ms.saturating_add(rule.decay_ms()));
    episode
}
