//! What operators ask for: to pardon a subject, and to let a rule enforce again.

use tollgate_core::decide::signal::{Request, SubjectKey};
use tollgate_core::event::record::Partition;

use super::Counters;
use crate::alerts::alert::Alert;
use crate::alerts::firing::ended;
use crate::alerts::{blast_radius, control};
use crate::outcome::{Action, FoldContext};
use crate::rules::Level;
use crate::subjects::Subject;

impl Counters {
    /// Does what an operator asks for.
    pub(crate) fn grant(&mut self, request: &Request, context: &mut FoldContext) {
        match request {
            Request::Pardon(key) => self.pardon(key, context),
            Request::Resume(id) => self.enforcement(context).resume_rule(id),
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
            let suspensions = (suspended_ms, blast_radius::suspended_ms(&mut subject, number));
            self.enforcement(context).suspended_otherwise((number, &rule.id), subject.tenant, suspensions);
            context.folded.alerts.push(ended(rule, key, &group, &episode, Action::Pardoned).record(key.to_string(), false));
        }
        while !subject.counters.is_empty() {
            subject.remove(0);
        }
        subject.control = None;
        self.expect(at, key, &subject);
        let stamp = subject.stamp(&mut self.buffer);
        drop(subject);
        self.state.subjects.put(at, before, stamp, &self.buffer);
    }

    /// Raises the alert that a source is left out of the partition's time.
    pub(crate) fn tell_silent(source: Partition, context: &mut FoldContext) {
        context.folded.counts.sources_silent += 1;
        let message = format!(
            "nothing was heard of partition {source} of the events for 10 minutes: the time goes on without it, and what it brings later may be dropped as late"
        );
        Self::tell(source, Action::SourceSilent, Level::High, message, context);
    }

    /// Raises the alert that the offsets of a source have begun again.
    pub(crate) fn tell_reset(source: Partition, context: &mut FoldContext) {
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
