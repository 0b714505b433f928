//! A firing: where it takes the subject on the rule's ladder, and what is said and done about it.

use tollgate_core::decide::signal::SubjectKey;

use super::alert::{self, Action, Alert, Origin, Status, alert_id, describe, id_about, span};
use super::blast_radius;
use super::control;
use super::fold::FoldContext;
use super::grouping::MINUTE_MS;
use super::ladder::{Climb, climb, enforces, stay};
use super::outcome::{AlertRecord, Firing};
use super::rules::{Level, Mode, Rule};
use super::stage::Abuse;
use super::subjects::{EVIDENCE_MAX, Episode, Subject, Witness};
use super::window::Finding;

/// What a rule has found, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// The rule, as an index.
    pub rule: usize,
    /// What it has found.
    pub finding: Finding,
    /// The time of the signal that it fired on, or of the clock, in milliseconds since the epoch.
    pub at_ms: i64,
    /// What it fired on.
    pub origin: Origin,
}

/// A firing that has been dealt with, as its alert tells of it.
struct Dealt {
    group: Box<str>,
    status: Status,
    action: Action,
    climb: Climb,
    episode: Episode,
    suppressed: u32,
}

impl Abuse {
    /// Deals with a firing of a counter of a subject. It uses up the counter's signals.
    pub(super) fn fire(&mut self, key: &SubjectKey, subject: &mut Subject<'_>, id: u8, found: &Found, context: &mut FoldContext) {
        let rules = std::sync::Arc::clone(self.program.rules());
        let (Some(rule), Some(at)) = (rules.rules.get(found.rule), subject.place(id)) else { return };
        let from_ms = found.finding.from_ms;
        let evidence: Vec<Witness<'_>> = subject.evidence.of(id, from_ms).copied().collect();
        let Ok(opened) = subject.open(at) else { return };
        opened.window.use_up(&found.finding, rule.timespan_ms);
        let is_empty = opened.window.over_ms(rule, 0).is_none() && opened.episode.is_none();
        subject.evidence.release(id);
        subject.settle(at, rule);
        let is_quiet = self.is_quiet(found.rule);
        if !is_quiet {
            context.folded.counts.rule(found.rule, |counts| counts.firings += 1);
        }
        if is_quiet || rule.mode == Mode::Shadow {
            if !is_quiet {
                context.folded.firings.push(Firing { rule: found.rule, subject: *key, action: None });
            }
            if is_empty {
                subject.remove(at);
            }
            return;
        }
        let Some(dealt) = self.deal(key, subject, at, (rule, found), context) else { return };
        let is_written = control::update(subject, key, &self.program, context.now_ms, &mut context.folded);
        let Some(dealt) = dealt else {
            context.folded.counts.rule(found.rule, |counts| counts.suppressed += 1);
            return;
        };
        let awaits_control = is_written && dealt.action == Action::Suspended;
        let latest = evidence.len().saturating_sub(EVIDENCE_MAX);
        let alert = alert_of(rule, key, found, &dealt, evidence.get(latest..).unwrap_or_default());
        let record = alert.record(key.to_string(), awaits_control);
        self.raise(found.rule, found.at_ms, record, context);
    }

    /// Takes a subject up the ladder. Returns what its alert has to tell, if it has one of its own: a repeat at the same step has none for a
    /// while. `None` in place of both if the counter cannot be read.
    fn deal(
        &mut self,
        key: &SubjectKey,
        subject: &mut Subject<'_>,
        at: usize,
        (rule, found): (&Rule, &Found),
        context: &mut FoldContext,
    ) -> Option<Option<Dealt>> {
        let group = subject.counters.get(at).map(|counter| counter.group.clone())?;
        let before = subject.open(at).ok()?.episode.as_deref().cloned();
        let from = before.as_ref().map_or(0, |episode| episode.step);
        let mut climb = climb(rule, from);
        let number = subject.counters.get(at)?.rule;
        let suspended_ms = blast_radius::suspended_ms(subject, number);
        let action = self.action(key, rule, found, suspended_ms, climb, context);
        context.folded.firings.push(Firing { rule: found.rule, subject: *key, action: Some(action) });
        if action == Action::Paused {
            climb = stay(from, climb);
        }
        let mut episode = before.unwrap_or_else(|| Episode {
            alert_id: alert_id(rule, key, &group, found.origin),
            step: 0,
            descends_ms: 0,
            until_ms: None,
            suspended_ms: None,
            alerted_ms: i64::MIN,
            suppressed: 0,
        });
        if let (Action::Suspended, Some(ms)) = (action, climb.suspends_ms) {
            episode.until_ms = episode.until_ms.max(Some(found.at_ms.saturating_add(ms)));
            episode.suspended_ms = episode.suspended_ms.max(Some(found.at_ms));
        }
        episode.step = climb.step;
        // It can offend again when the suspension is over, and only then does going without offence mean anything.
        let quiet_ms = found.at_ms.max(episode.until_ms.unwrap_or(i64::MIN));
        episode.descends_ms = episode.descends_ms.max(quiet_ms.saturating_add(rule.decay_ms()));
        let is_repeat = !climb.is_higher && found.at_ms < episode.alerted_ms.saturating_add(rule.suppress_ms);
        let suppressed = episode.suppressed;
        if is_repeat {
            episode.suppressed = suppressed.saturating_add(1);
        } else {
            (episode.alerted_ms, episode.suppressed) = (found.at_ms, 0);
        }
        subject.open(at).ok()?.episode = Some(Box::new(episode.clone()));
        subject.settle(at, rule);
        let status = if from > 0 && climb.is_higher { Status::Escalated } else { Status::Firing };
        Some((!is_repeat).then_some(Dealt { group, status, action, climb, episode, suppressed }))
    }

    /// Returns what a firing leads to. A rule that is about to suspend too many is paused by it. `before_ms` is the latest firing by which the
    /// rule suspended the subject.
    fn action(
        &mut self,
        key: &SubjectKey,
        rule: &Rule,
        found: &Found,
        before_ms: Option<i64>,
        climb: Climb,
        context: &mut FoldContext,
    ) -> Action {
        let Some(suspends_ms) = climb.suspends_ms else { return Action::Warned };
        if !enforces(rule) || key.kind.subject_kind().is_none() {
            return Action::WouldSuspend;
        }
        let until_ms = found.at_ms.saturating_add(suspends_ms);
        if context.now_ms.is_some_and(|now_ms| until_ms <= now_ms) {
            return Action::Lapsed;
        }
        let (number, rule_state) = match self.state.rules.get(&*rule.id) {
            Some(state) => (state.number, state),
            None => return Action::WouldSuspend,
        };
        if !rule_state.is_paused {
            let after_ms = rule_state.counted(before_ms.max(Some(found.at_ms)));
            let before_ms = rule_state.counted(before_ms);
            self.census.suspended(number, before_ms, after_ms);
            if !self.census.is_too_much(number, key.kind, found.at_ms.saturating_sub(rule.timespan_ms)) {
                context.folded.counts.rule(found.rule, |counts| counts.suspensions += 1);
                return Action::Suspended;
            }
            // This one is not suspended after all.
            self.census.suspended(number, after_ms, before_ms);
            self.pause(rule, context);
        }
        context.folded.counts.rule(found.rule, |counts| counts.paused += 1);
        Action::Paused
    }

    fn pause(&mut self, rule: &Rule, context: &mut FoldContext) {
        let pause = self.state.change_rule(&rule.id, |state| {
            state.is_paused = true;
            (state.number, state.forgiven_ms)
        });
        let message = format!(
            "rule {} was about to suspend more than 2 % of the active subjects of partition {} within {}: it suspends nobody until `tollgate abuse resume {}`",
            rule.id,
            context.partition,
            span(rule.timespan_ms),
            rule.id
        );
        pause.into_iter().for_each(|pause| Self::tell_of_rule(rule, pause, (Status::Firing, Action::EnforcementPaused), &message, context));
    }

    /// Raises an alert that a rule enforces nothing any more, or again. Both have one id, made of the rule's number and the time up to which
    /// suspensions were forgiven when it was paused.
    pub(super) fn tell_of_rule(
        rule: &Rule,
        (number, forgiven_ms): (u32, Option<i64>),
        (status, action): (Status, Action),
        message: &str,
        context: &mut FoldContext,
    ) {
        let key = format!("rule/{}", rule.id);
        let about = format!("{key} {} {number}", context.partition);
        let alert_id = id_about(&about, forgiven_ms.unwrap_or(i64::MIN), Action::EnforcementPaused);
        let alert = Alert::about(&key, 0, Level::Critical, action, message.to_owned());
        context.folded.alerts.push(Alert { alert_id, rule: Some(rule), status, ..alert }.record(key, false));
    }

    /// Raises an alert of a rule, or leaves it to the grouped one if there were too many within the minute. Who is suspended is told of in any
    /// case, with the evidence: of these there are no more than the blast radius lets through.
    pub(super) fn raise(&mut self, at: usize, at_ms: i64, record: AlertRecord, context: &mut FoldContext) {
        let rules = std::sync::Arc::clone(self.program.rules());
        let Some(rule) = rules.rules.get(at) else { return };
        let now_ms = context.now_ms.unwrap_or(at_ms);
        self.flush_group(rule, at, now_ms, context);
        let is_raised = record.awaits_control || self.state.change_rule(&rule.id, |state| state.grouping.raises(now_ms)).unwrap_or(true);
        if is_raised {
            context.folded.counts.rule(at, |counts| counts.alerts += 1);
            context.folded.alerts.push(record);
        } else {
            context.folded.counts.rule(at, |counts| counts.grouped += 1);
            self.grouped.insert(at);
        }
    }

    /// Raises the grouped alert of a minute that is over.
    pub(super) fn flush_group(&mut self, rule: &Rule, at: usize, now_ms: i64, context: &mut FoldContext) {
        let Some(group) = self.state.change_rule(&rule.id, |state| state.grouping.flush(now_ms)).flatten() else { return };
        self.grouped.remove(&at);
        let key = format!("rule/{}", rule.id);
        let message = format!("{} more alerts of rule {} within a minute, each {}", group.alerts, rule.id, describe(rule));
        let to_ms = group.from_ms.saturating_add(MINUTE_MS);
        // Each partition has a group of its own.
        let alert_id = id_about(&format!("{key} {}", context.partition), group.from_ms, Action::None);
        let alert = Alert { alert_id, ..Alert::about(&key, group.from_ms, rule.level, Action::None, message) };
        let (count, window) = (f64::from(group.alerts), Some((group.from_ms, to_ms)));
        let alert = Alert { rule: Some(rule), status: Status::Grouped, count, window, ..alert };
        context.folded.counts.rule(at, |counts| counts.alerts += 1);
        context.folded.alerts.push(alert.record(key, false));
    }
}

/// Returns the alert of a firing.
fn alert_of<'a>(rule: &'a Rule, key: &SubjectKey, found: &Found, dealt: &'a Dealt, evidence: &'a [Witness<'a>]) -> Alert<'a> {
    let Finding { from_ms, to_ms, count, threshold } = found.finding;
    let consequence = match (dealt.action, dealt.climb.suspends_ms) {
        (Action::Suspended, Some(ms)) => format!("suspended for {}", span(ms)),
        (Action::WouldSuspend, Some(ms)) => format!("the rule would suspend for {} if it enforced", span(ms)),
        (Action::Lapsed, Some(ms)) => format!("a suspension of {} would be over already", span(ms)),
        (Action::Paused, _) => "not suspended, because the rule enforces nothing for now".to_owned(),
        _ => "a warning".to_owned(),
    };
    Alert {
        alert_id: dealt.episode.alert_id,
        rule: Some(rule),
        level: rule.level,
        status: dealt.status,
        subject: Some(*key),
        group: &dealt.group,
        window: Some((from_ms, to_ms)),
        count,
        threshold,
        step: dealt.climb.step,
        action: dealt.action,
        until_ms: dealt.episode.until_ms.filter(|_| dealt.action == Action::Suspended),
        evidence,
        suppressed: dealt.suppressed,
        message: format!("{}: {consequence}", describe(rule)),
    }
}

/// Returns the alert that an episode is over.
pub(super) fn ended<'a>(rule: &'a Rule, key: &SubjectKey, group: &'a str, episode: &Episode, action: Action) -> Alert<'a> {
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
