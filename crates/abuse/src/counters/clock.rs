//! The clock at work: looks at what was due on its way, one second after the other.

use tollgate_core::decide::signal::SubjectKey;

use super::Counters;
use crate::alerts::alert::Origin;
use crate::alerts::control;
use crate::alerts::firing::RuleFinding;
use crate::outcome::FoldContext;
use crate::subjects::{SlotKey, Subject};
use crate::time_units::{NEVER_S, second_of, time_of, whole_minute};

impl Counters {
    /// Moves the partition's time forward and does what was due by then.
    pub(crate) fn advance(&mut self, context: &mut FoldContext) {
        let Some(now_ms) = self.state.sources.now_ms() else { return };
        let to_s = u32::try_from(now_ms.div_euclid(1_000).max(0)).unwrap_or(NEVER_S).min(NEVER_S - 1);
        if self.merging.is_some() {
            self.merge_due(to_s, context);
        }
        while let Some(second) = self.next_due().filter(|second| *second <= to_s) {
            context.now_ms = Some(time_of(second));
            self.state.own.done_s = self.state.own.done_s.max(second);
            self.enforcement(context).flush_groups(time_of(second));
            self.look(second, context);
        }
        self.state.own.done_s = self.state.own.done_s.max(to_s);
        context.now_ms = Some(now_ms);
    }

    fn next_due(&self) -> Option<u32> {
        let group = self.alerts.next_due_ms(&self.program, &self.state.rules).map(second_of);
        group.into_iter().chain(self.state.subjects.next_due()).min()
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
            self.alerts.census.active(key.kind, subject.tenant, subject.active_ms, None);
            subject.active_ms = None;
        }
        if subject.control.is_some() {
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
        let certain_ms = self.certain_ms(now_ms);
        let Ok(opened) = subject.open(place) else { return subject.remove(place) };
        opened.make_certain(rule, key.kind, certain_ms);
        let found = opened.window.look(rule, certain_ms, now_ms);
        if let Some(finding) = found {
            let origin = Origin::Clock(finding.to_ms);
            self.enforcement(context).fire(key, subject, id, &RuleFinding { rule: number, finding, at_ms: finding.to_ms, origin });
        }
        // A signal that is still to come may keep it where it is.
        self.enforcement(context).descend(key, subject, place, (number, rule), certain_ms);
        let lateness_ms = rules.lateness_ms;
        let Ok(opened) = subject.open(place) else { return };
        let over_ms = opened.window.over_ms(rule, lateness_ms).map(whole_minute);
        if over_ms.is_none_or(|over_ms| over_ms <= now_ms) {
            if opened.episode.is_none() {
                return subject.remove(place);
            }
            opened.renew(crate::window::Window::of(rule));
            subject.evidence.release(id);
        }
        subject.settle(place, rule);
    }
}
