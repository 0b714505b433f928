//! A firing: where it takes the subject on the rule's ladder, and what is said and done about it.

use tollgate_core::decide::signal::{KeyKind, SubjectKey};

use super::alert::{self, Alert, Origin, alert_id, describe, span};
use super::ladder::{Climb, climb, enforces, go_down, go_up, stay};
use super::{Enforcement, blast_radius, control};
use crate::outcome::{Action, Firing, Status};
use crate::rules::{Mode, Rule};
use crate::subjects::{EVIDENCE_MAX, Episode, Subject, TenantTag, Witness};
use crate::window::Finding;

/// What a rule has found, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleFinding {
    /// The rule, as an index.
    pub rule: usize,
    /// What it has found.
    pub finding: Finding,
    /// The end of the window, in milliseconds since the epoch. The signal that it fired on may be earlier, and have come last.
    pub at_ms: i64,
    /// What it fired on.
    pub origin: Origin,
}

/// A firing that has been dealt with, as its alert tells of it.
struct HandledFiring {
    group: Box<str>,
    status: Status,
    action: Action,
    climb: Climb,
    episode: Episode,
    suppressed: u32,
}

impl Enforcement<'_> {
    /// Deals with a firing of a counter of a subject. It uses up the counter's signals.
    pub(crate) fn fire(&mut self, key: &SubjectKey, subject: &mut Subject<'_>, id: u8, found: &RuleFinding) {
        let (Some(rule), Some(at)) = (self.program.rule(found.rule), subject.place(id)) else { return };
        let from_ms = found.finding.from_ms;
        let evidence: Vec<Witness<'_>> = subject.evidence.of(id, from_ms).copied().collect();
        let Ok(opened) = subject.open(at) else { return };
        opened.window.use_up(rule, &found.finding);
        let is_quiet = self.program.is_quiet(found.rule);
        let has_no_ladder = is_quiet || rule.mode == Mode::Shadow;
        if has_no_ladder {
            opened.settle_firings();
        }
        let is_empty = opened.window.over_ms(rule, 0).is_none() && opened.episode.is_none();
        subject.evidence.release(id);
        subject.settle(at, rule);
        if !is_quiet {
            self.context.folded.counts.rule(found.rule, |counts| counts.firings += 1);
        }
        if has_no_ladder {
            if !is_quiet {
                self.context.folded.firings.push(Firing { rule: found.rule, subject: *key, action: None });
            }
            if is_empty {
                subject.remove(at);
            }
            return;
        }
        let Some(handled) = self.deal(key, subject, at, (rule, found)) else { return };
        let is_written = control::update(subject, key, self.program, self.context.now_ms, &mut self.context.folded);
        let Some(handled) = handled else {
            self.context.folded.counts.rule(found.rule, |counts| counts.suppressed += 1);
            return;
        };
        let awaits_control = is_written && handled.action == Action::Suspended;
        let latest = evidence.len().saturating_sub(EVIDENCE_MAX);
        let alert = alert_of(rule, key, found, &handled, evidence.get(latest..).unwrap_or_default());
        let record = alert.record(key.to_string(), awaits_control);
        self.raise(found.rule, found.at_ms, record);
    }

    /// Takes a subject down the ladder of a rule, a step for each while without offence up to a time.
    pub(crate) fn descend(
        &mut self,
        key: &SubjectKey,
        subject: &mut Subject<'_>,
        place: usize,
        (number, rule): (usize, &Rule),
        now_ms: i64,
    ) {
        let Ok(opened) = subject.open(place) else { return };
        let Some(episode) = &mut opened.episode else { return };
        go_down(rule, episode, now_ms);
        if episode.step > 0 {
            return;
        }
        let Some(counter) = subject.counters.get(place) else { return };
        let (number_in_partition, group) = (counter.rule, counter.group.clone());
        let suspended_ms = blast_radius::suspended_ms(subject, number_in_partition);
        let Some(episode) = subject.open(place).ok().and_then(|opened| opened.episode.take()) else { return };
        let left_ms = blast_radius::suspended_ms(subject, number_in_partition);
        self.suspended_otherwise((number_in_partition, &rule.id), subject.tenant, (suspended_ms, left_ms));
        let alert = ended(rule, key, &group, &episode, Action::None).record(key.to_string(), false);
        self.raise(number, now_ms, alert);
    }

    /// Takes a subject up the ladder. Returns what its alert has to tell, if it has one of its own: a repeat at the same step has none for a
    /// while. `None` in place of both if the counter cannot be read.
    fn deal(
        &mut self,
        key: &SubjectKey,
        subject: &mut Subject<'_>,
        at: usize,
        (rule, found): (&Rule, &RuleFinding),
    ) -> Option<Option<HandledFiring>> {
        let group = subject.counters.get(at).map(|counter| counter.group.clone())?;
        let opened = subject.open(at).ok()?;
        if opened.window.has_used() && opened.before.is_none() {
            opened.before = Some(opened.episode.clone());
        }
        // Some source may hold the clock back. What is due by the time of the firing does not depend on that.
        self.descend(key, subject, at, (found.rule, rule), found.at_ms);
        let before = subject.open(at).ok()?.episode.as_deref().cloned();
        let from = before.as_ref().map_or(0, |episode| episode.step);
        let mut climb = climb(rule, from);
        let number = subject.counters.get(at)?.rule;
        let suspended_ms = blast_radius::suspended_ms(subject, number);
        let action = self.action(key, rule, found, (subject.tenant, suspended_ms), climb);
        self.context.folded.firings.push(Firing { rule: found.rule, subject: *key, action: Some(action) });
        if action == Action::Paused {
            climb = stay(from, climb);
        }
        // A suspension that would be over already counts for how long it takes to come down.
        let suspends_ms = climb.suspends_ms.filter(|_| matches!(action, Action::Suspended | Action::Lapsed));
        let mut episode = go_up(rule, before, found.at_ms, (climb.step, suspends_ms), || alert_id(rule, key, &group, found.origin));
        if action == Action::Suspended {
            episode.suspended_ms = episode.suspended_ms.max(Some(found.at_ms));
        }
        let is_repeat = !climb.is_higher && found.at_ms < episode.alerted_ms.saturating_add(rule.suppress_ms);
        let suppressed = episode.suppressed;
        if is_repeat {
            episode.suppressed = suppressed.saturating_add(1);
        } else {
            (episode.alerted_ms, episode.suppressed) = (found.at_ms, 0);
        }
        let opened = subject.open(at).ok()?;
        opened.episode = Some(Box::new(episode.clone()));
        if action == Action::Paused {
            // What a paused rule has found takes nobody up later either.
            opened.settle_firings();
        }
        subject.settle(at, rule);
        let status = if from > 0 && climb.is_higher { Status::Escalated } else { Status::Firing };
        Some((!is_repeat).then_some(HandledFiring { group, status, action, climb, episode, suppressed }))
    }

    /// Returns what a firing leads to. `before_ms` is the latest firing by which the rule suspended the subject, which is of `tenant`.
    fn action(
        &mut self,
        key: &SubjectKey,
        rule: &Rule,
        found: &RuleFinding,
        (tenant, before_ms): (Option<TenantTag>, Option<i64>),
        climb: Climb,
    ) -> Action {
        let Some(suspends_ms) = climb.suspends_ms else { return Action::Warned };
        if !enforces(rule, key.kind) {
            return Action::WouldSuspend;
        }
        let until_ms = found.at_ms.saturating_add(suspends_ms);
        if self.context.now_ms.is_some_and(|now_ms| until_ms <= now_ms) {
            return Action::Lapsed;
        }
        if self.may_suspend(key.kind, (found.rule, rule), (tenant, before_ms), found.at_ms) { Action::Suspended } else { Action::Paused }
    }

    /// Counts a suspension by a firing at a time against a rule, and returns whether the subject may be suspended. A rule that is about to
    /// suspend too many is paused by it. `before_ms` is the latest firing by which the rule suspended the subject, which is of `tenant`.
    pub(super) fn may_suspend(
        &mut self,
        kind: KeyKind,
        (at, rule): (usize, &Rule),
        (tenant, before_ms): (Option<TenantTag>, Option<i64>),
        at_ms: i64,
    ) -> bool {
        let Some(state) = self.states.get(&rule.id) else { return false };
        if !state.pauses.is_for(tenant) {
            let (number, after_ms) = (state.number, state.counted(before_ms.max(Some(at_ms))));
            let before_ms = state.counted(before_ms);
            self.alerts.census.suspended(number, tenant, before_ms, after_ms);
            let Some(scope) = self.alerts.census.too_many(number, kind, tenant, at_ms.saturating_sub(rule.timespan_ms)) else {
                self.context.folded.counts.rule(at, |counts| counts.suspensions += 1);
                return true;
            };
            // This one is not suspended after all.
            self.alerts.census.suspended(number, tenant, after_ms, before_ms);
            self.pause(rule, scope);
        }
        self.context.folded.counts.rule(at, |counts| counts.paused += 1);
        false
    }
}

/// Returns the alert of a firing.
fn alert_of<'a>(
    rule: &'a Rule,
    key: &SubjectKey,
    found: &RuleFinding,
    handled: &'a HandledFiring,
    evidence: &'a [Witness<'a>],
) -> Alert<'a> {
    let Finding { from_ms, to_ms, count, threshold } = found.finding;
    let consequence = match (handled.action, handled.climb.suspends_ms) {
        (Action::Suspended, Some(ms)) => format!("suspended for {}", span(ms)),
        (Action::WouldSuspend, Some(ms)) => format!("the rule would suspend for {} if it enforced", span(ms)),
        (Action::Lapsed, Some(ms)) => format!("a suspension of {} would be over already", span(ms)),
        (Action::Paused, _) => "not suspended, because the rule enforces nothing for now".to_owned(),
        _ => "a warning".to_owned(),
    };
    Alert {
        alert_id: handled.episode.alert_id,
        rule: Some(rule),
        level: rule.level,
        status: handled.status,
        subject: Some(*key),
        group: &handled.group,
        window: Some((from_ms, to_ms)),
        count,
        threshold,
        step: handled.climb.step,
        action: handled.action,
        until_ms: handled.episode.until_ms.filter(|_| handled.action == Action::Suspended),
        evidence,
        suppressed: handled.suppressed,
        message: format!("{}: {consequence}", describe(rule)),
    }
}

/// Returns the alert that an episode is over.
pub(crate) fn ended<'a>(rule: &'a Rule, key: &SubjectKey, group: &'a str, episode: &Episode, action: Action) -> Alert<'a> {
    let message = match action {
        Action::Pardoned => "pardoned by an operator".to_owned(),
        _ => format!("without offence for {} at each step", span(rule.decay_ms())),
    };
    let about = alert::Alert::about("", 0, rule.level, action, message);
    Alert {
        alert_id: episode.alert_id,
        rule: Some(rule),
        status: Status::Ended,
        subject: Some(*key),
        group,
        suppressed: episode.suppressed,
        ..about
    }
}
