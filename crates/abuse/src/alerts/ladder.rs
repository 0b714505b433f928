//! Ladders: a firing takes a subject a step up, and each while without one takes it a step down. Thresholds stay what they are.
//!
//! Sources are read in any order, and a signal may come that is before a firing. Then the rule would have fired earlier, perhaps once more,
//! and the subject would be elsewhere on the ladder. So the place on the ladder before the firings that are not certain is kept, and the way
//! up is taken again from there. A signal that comes in order costs nothing more.

use tollgate_core::decide::signal::{KeyKind, SubjectKey};
use tollgate_json::digest::Fingerprint;

use super::{Enforcement, blast_radius, control};
use crate::rules::{Mode, Rule, Step};
use crate::subjects::{Episode, Opened, Subject};

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

impl Opened {
    /// Notes that no signal can come any more that is before a time, in milliseconds since the epoch.
    pub(crate) fn make_certain(&mut self, rule: &Rule, kind: KeyKind, certain_ms: i64) {
        let times = self.window.take_certain(rule, certain_ms);
        if !self.window.has_used() {
            self.before = None;
        } else if let Some((before, episode)) = self.before.as_mut().zip(self.episode.as_deref()) {
            let place = before.take().map(|before| *before);
            let place = times.into_iter().fold(place, |place, at_ms| Some(fire_again(rule, kind, place, at_ms, episode.alert_id)));
            *before = place.map(Box::new);
        }
    }

    /// Returns the place on the ladder behind the firings of the window that are not certain, without the last of them if it `is_new`.
    fn place_again(&self, rule: &Rule, kind: KeyKind, is_new: bool) -> Option<Episode> {
        let place = self.before.as_ref()?.as_deref().cloned();
        let alert_id = self.episode.as_ref()?.alert_id;
        let times = self.window.used_ms(rule);
        let known = times.len().saturating_sub(usize::from(is_new));
        times.into_iter().take(known).fold(place, |place, at_ms| Some(fire_again(rule, kind, place, at_ms, alert_id)))
    }
}

impl Enforcement<'_> {
    /// Takes a subject's way up the ladder of a rule again, because a signal has come that is before a firing. What alerts have said stays. If
    /// the signal brings a firing that `is_new`, it is dealt with afterwards.
    pub(crate) fn climb_again(&mut self, key: &SubjectKey, subject: &mut Subject<'_>, (id, number): (u8, usize), is_new: bool) {
        let (Some(rule), Some(at)) = (self.program.rule(number), subject.place(id)) else { return };
        let (tenant, known) = (subject.tenant, subject.counters.get(at).map(|counter| counter.rule));
        let suspended_ms = known.and_then(|number| blast_radius::suspended_ms(subject, number));
        let Ok(opened) = subject.open(at) else { return };
        let Some(place) = opened.place_again(rule, key.kind, is_new) else { return };
        let Some(episode) = &mut opened.episode else { return };
        let (now_ms, at_ms) = (self.context.now_ms, place.suspended_ms.unwrap_or_default());
        let is_suspended_anew = place.until_ms > now_ms && episode.until_ms <= now_ms;
        let is_paused = self.states.get(&rule.id).is_some_and(|state| state.pauses.is_for(tenant));
        if is_paused || (is_suspended_anew && !self.may_suspend(key.kind, (number, rule), (tenant, suspended_ms), at_ms)) {
            // What a paused rule has found takes nobody up later either.
            return opened.settle_firings();
        }
        if is_suspended_anew {
            episode.suspended_ms = episode.suspended_ms.max(place.suspended_ms);
        }
        (episode.step, episode.descends_ms, episode.until_ms) = (place.step, place.descends_ms, place.until_ms);
        if !is_new {
            control::update(subject, key, self.program, now_ms, &mut self.context.folded);
        }
    }
}

/// Returns where a firing takes an episode, as one that is dealt with by itself does.
fn fire_again(rule: &Rule, kind: KeyKind, mut place: Option<Episode>, at_ms: i64, alert_id: Fingerprint) -> Episode {
    place.iter_mut().for_each(|episode| go_down(rule, episode, at_ms));
    let place = place.filter(|episode| episode.step > 0);
    let climb = climb(rule, place.as_ref().map_or(0, |episode| episode.step));
    let suspends_ms = climb.suspends_ms.filter(|_| enforces(rule, kind));
    let mut episode = go_up(rule, place, at_ms, (climb.step, suspends_ms), || alert_id);
    if suspends_ms.is_some() {
        episode.suspended_ms = episode.suspended_ms.max(Some(at_ms));
    }
    episode
}
