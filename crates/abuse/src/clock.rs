//! The clock at work: looks at what was due on its way, one second after the other.

use tollgate_core::decide::signal::SubjectKey;

use super::alert::{Action, Alert, Origin};
use super::blast_radius;
use super::control;
use super::firing::{Found, ended};
use super::fold::FoldContext;
use super::rules::{Level, Rule};
use super::stage::Abuse;
use super::subjects::{SlotKey, Subject};
use super::time_units::{NEVER_S, time_of, whole_minute};

/// After how long another alert about the memory limit is raised, in milliseconds of the partition's time.
const LIMIT_ALERT_MS: i64 = 3_600_000;

impl Abuse {
    /// Moves the partition's time forward and does what was due by then.
    pub(super) fn advance(&mut self, context: &mut FoldContext) {
        let Some(now_ms) = self.state.sources.now_ms() else { return };
        let to_s = u32::try_from(now_ms.div_euclid(1_000).max(0)).unwrap_or(NEVER_S).min(NEVER_S - 1);
        if self.merging.is_some() {
            self.merge_due(to_s, context);
        }
        while let Some(second) = self.next_due().filter(|second| *second <= to_s) {
            context.now_ms = Some(time_of(second));
            self.state.own.done_s = self.state.own.done_s.max(second);
            self.flush_groups(time_of(second), context);
            self.look(second, context);
        }
        self.state.own.done_s = self.state.own.done_s.max(to_s);
        context.now_ms = Some(now_ms);
    }

    fn next_due(&self) -> Option<u32> {
        let groups = self.grouped.iter().filter_map(|at| {
            let rule = self.program.rule(*at)?;
            self.state.rules.get(&*rule.id)?.grouping.due_ms().map(super::time_units::second_of)
        });
        groups.chain(self.state.subjects.next_due()).min()
    }

    fn flush_groups(&mut self, now_ms: i64, context: &mut FoldContext) {
        if self.grouped.is_empty() {
            return;
        }
        let rules = std::sync::Arc::clone(self.program.rules());
        for at in self.grouped.clone() {
            rules.rules.get(at).into_iter().for_each(|rule| self.flush_group(rule, at, now_ms, context));
        }
    }

    /// Looks at the subjects of a second, in their order.
    fn look(&mut self, second: u32, context: &mut FoldContext) {
        for (key, at) in self.state.subjects.take_due(second) {
            self.on_timer(&key, at, time_of(second), context);
        }
    }

    /// Does what is due for a subject.
    fn on_timer(&mut self, key: &SubjectKey, at: SlotKey, now_ms: i64, context: &mut FoldContext) {
        let before = self.state.subjects.take(at);
        let Ok(mut subject) = Subject::read(&before) else { return self.state.subjects.remove(at) };
        let ids: Vec<u8> = subject.counters.iter().map(|counter| counter.id).collect();
        for id in ids {
            self.on_counter_timer(key, &mut subject, id, now_ms, context);
        }
        if self.active_until_ms(key, &subject).is_some_and(|until_ms| until_ms <= now_ms) {
            self.census.active(key.kind, subject.active_ms, None);
            subject.active_ms = None;
        }
        if subject.control_until_ms.is_some() {
            control::update(&mut subject, key, &self.program, Some(now_ms), &mut context.folded);
        }
        self.expect(at, key, &subject);
        let stamp = subject.stamp(&mut self.buffer);
        drop(subject);
        self.state.subjects.put(at, before, stamp, &self.buffer);
    }

    /// Does what is due for a counter: looks at what waits for the clock, takes the subject down the ladder, and drops what can matter no
    /// more.
    fn on_counter_timer(&mut self, key: &SubjectKey, subject: &mut Subject<'_>, id: u8, now_ms: i64, context: &mut FoldContext) {
        let rules = std::sync::Arc::clone(self.program.rules());
        let Some(place) = subject.place(id) else { return };
        let Some((number, rule)) = subject
            .counters
            .get(place)
            .and_then(|counter| self.program.place(counter.rule))
            .and_then(|number| Some((number, rules.rules.get(number)?)))
        else {
            return subject.remove(place);
        };
        let horizon_ms = self.horizon_ms(rule, now_ms);
        let Ok(opened) = subject.open(place) else { return subject.remove(place) };
        let found = opened.window.look(rule, horizon_ms, now_ms);
        if let Some(finding) = found {
            let origin = Origin::Clock(finding.to_ms);
            self.fire(key, subject, id, &Found { rule: number, finding, at_ms: finding.to_ms, origin }, context);
        }
        self.descend(key, subject, place, (number, rule), now_ms, context);
        let lateness_ms = rules.lateness_ms;
        let Ok(opened) = subject.open(place) else { return };
        let over_ms = opened.window.over_ms(rule, lateness_ms).map(whole_minute);
        if over_ms.is_none_or(|over_ms| over_ms <= now_ms) {
            if opened.episode.is_none() {
                return subject.remove(place);
            }
            opened.window = super::window::Window::of(rule);
            subject.evidence.release(id);
        }
        subject.settle(place, rule);
    }

    /// Takes a subject down the ladder of a rule, a step for each while without offence.
    fn descend(
        &mut self,
        key: &SubjectKey,
        subject: &mut Subject<'_>,
        place: usize,
        (number, rule): (usize, &Rule),
        now_ms: i64,
        context: &mut FoldContext,
    ) {
        let Ok(opened) = subject.open(place) else { return };
        let Some(episode) = &mut opened.episode else { return };
        while episode.descends_ms <= now_ms && episode.step > 0 {
            episode.step -= 1;
            episode.descends_ms = episode.descends_ms.saturating_add(rule.decay_ms());
        }
        if episode.step > 0 {
            return;
        }
        let Some(counter) = subject.counters.get(place) else { return };
        let (number_in_partition, group) = (counter.rule, counter.group.clone());
        let suspended_ms = blast_radius::suspended_ms(subject, number_in_partition);
        let Some(episode) = subject.open(place).ok().and_then(|opened| opened.episode.take()) else { return };
        self.suspended_otherwise(number_in_partition, &rule.id, suspended_ms, blast_radius::suspended_ms(subject, number_in_partition));
        let alert = ended(rule, key, &group, &episode, Action::None).record(key.to_string(), false);
        self.raise(number, now_ms, alert, context);
    }

    /// Notes that a subject is down from a rule's ladder in one of its groups: when the rule last suspended it in any of them, before that
    /// and without that one.
    pub(super) fn suspended_otherwise(&mut self, number: u32, id: &str, before_ms: Option<i64>, now_ms: Option<i64>) {
        let Some(state) = self.state.rules.get(id) else { return };
        self.census.suspended(number, state.counted(before_ms), state.counted(now_ms));
    }

    /// Forgets those who are farthest from any threshold while there are more subjects than there may be. The newcomer stays until the next
    /// one comes: whoever fills the memory with subjects that are closer to a threshold must not get nobody new counted any more.
    pub(super) fn keep_within_limit(&mut self, newcomer: SlotKey, context: &mut FoldContext) {
        let subjects_max = self.program.rules().subjects_max;
        let mut dropped = 0;
        while self.state.subjects.len() > subjects_max {
            let Some(at) = self.state.subjects.farthest(newcomer) else { break };
            let Some(key) = self.state.subjects.key(at) else { break };
            if let Ok(subject) = Subject::read(self.state.subjects.packed(at)) {
                self.census.active(key.kind, subject.active_ms, None);
            }
            self.state.subjects.remove(at);
            dropped += 1;
        }
        if dropped == 0 {
            return;
        }
        context.folded.counts.subjects_dropped += dropped;
        self.state.departures.evicted += dropped;
        let at_ms = context.now_ms.unwrap_or_default();
        let is_due = |last_ms: i64| at_ms.saturating_sub(last_ms) >= LIMIT_ALERT_MS;
        if self.state.own.limit_alerted_ms.is_none_or(is_due) {
            self.state.own.limit_alerted_ms = Some(at_ms);
            let key = format!("partition/{}", context.partition);
            let message =
                format!("the partition knows {subjects_max} subjects, as many as it may: those farthest from any threshold are forgotten");
            let alert = Alert::about(&key, at_ms, Level::High, Action::MemoryLimit, message);
            context.folded.alerts.push(alert.record(key, false));
        }
    }
}
