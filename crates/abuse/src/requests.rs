//! What operators ask for: to pardon a subject, and to let a rule enforce again.

use tollgate_core::decide::signal::{Request, SubjectKey};
use tollgate_core::event::record::Partition;

use super::alert::{Action, Alert, Status};
use super::blast_radius;
use super::control;
use super::firing::ended;
use super::fold::FoldContext;
use super::rules::Level;
use super::stage::Abuse;
use super::subjects::Subject;

impl Abuse {
    /// Does what an operator asks for.
    pub(super) fn grant(&mut self, request: &Request, context: &mut FoldContext) {
        match request {
            Request::Pardon(key) => self.pardon(key, context),
            Request::Resume(id) => self.resume_rule(id, context),
        }
    }

    /// Forgets what a subject has done, ends its episodes, and lifts its suspension, whatever it is of. It stays active.
    fn pardon(&mut self, key: &SubjectKey, context: &mut FoldContext) {
        context.folded.counts.pardoned += 1;
        // What suspends it may be of a state that was lost, or of other topics, so that its control is taken back whatever is known of it.
        context.folded.controls.extend(control::lifted(key));
        self.merge_one(key, context);
        let Some(at) = self.state.subjects.find(key) else { return };
        let rules = std::sync::Arc::clone(self.program.rules());
        let before = self.state.subjects.take(at);
        let Ok(mut subject) = Subject::read(&before) else { return self.state.subjects.remove(at) };
        for place in 0..subject.counters.len() {
            let Some((number, group)) = subject.counters.get(place).map(|counter| (counter.rule, counter.group.clone())) else { continue };
            let suspended_ms = blast_radius::suspended_ms(&mut subject, number);
            let Some(episode) = subject.open(place).ok().and_then(|opened| opened.episode.take()) else { continue };
            let Some(rule) = self.program.place(number).and_then(|at| rules.rules.get(at)) else { continue };
            self.suspended_otherwise(number, &rule.id, suspended_ms, blast_radius::suspended_ms(&mut subject, number));
            context.folded.alerts.push(ended(rule, key, &group, &episode, Action::Pardoned).record(key.to_string(), false));
        }
        while !subject.counters.is_empty() {
            subject.remove(0);
        }
        subject.control_until_ms = None;
        self.expect(at, key, &subject);
        let stamp = subject.stamp(&mut self.buffer);
        drop(subject);
        self.state.subjects.put(at, before, stamp, &self.buffer);
    }

    /// Lets a rule enforce again. Whom it has suspended so far no longer counts against it.
    fn resume_rule(&mut self, id: &str, context: &mut FoldContext) {
        let Some(number) = self.state.rules.get(id).filter(|state| state.is_paused).map(|state| state.number) else { return };
        let latest_ms = self.census.forget(number);
        let forgiven_ms = latest_ms.max(context.now_ms);
        let pause = self.state.change_rule(id, |state| {
            state.is_paused = false;
            let forgiven_ms = state.forgiven_ms.max(forgiven_ms);
            (state.number, std::mem::replace(&mut state.forgiven_ms, forgiven_ms))
        });
        let Some((rule, pause)) = self.program.rules().rules.iter().find(|rule| rule.id == id).zip(pause) else { return };
        let message = format!("rule {id} may suspend again on partition {}, as an operator has asked for", context.partition);
        Self::tell_of_rule(rule, pause, (Status::Ended, Action::EnforcementResumed), &message, context);
    }

    /// Raises the alert that a source is left out of the partition's time.
    pub(super) fn tell_silent(&mut self, source: Partition, context: &mut FoldContext) {
        context.folded.counts.sources_silent += 1;
        let message = format!(
            "nothing was heard of partition {source} of the events for 10 minutes: the time goes on without it, and what it brings later may be dropped as late"
        );
        Self::tell(source, Action::SourceSilent, Level::High, message, context);
    }

    /// Raises the alert that the offsets of a source have begun again.
    pub(super) fn tell_reset(&mut self, source: Partition, context: &mut FoldContext) {
        context.folded.counts.sources_reset += 1;
        let message = format!("the offsets of partition {source} of the events have begun again: its signals count anew");
        Self::tell(source, Action::SourceReset, Level::High, message, context);
    }

    fn tell(source: Partition, action: Action, level: Level, message: String, context: &mut FoldContext) {
        let key = format!("source/{source}");
        // The record's offset tells one such alert from the next.
        let alert = Alert::about(&key, context.offset.0, level, action, message);
        context.folded.alerts.push(alert.record(key, false));
    }
}
