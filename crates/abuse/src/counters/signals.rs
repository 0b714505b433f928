//! The signals of one record: which of them are new and in time, and which counters they belong to.

use tollgate_core::decide::signal::{Point, Signals, SubjectKey, Volume, dimension_text};
use tollgate_core::event::record::{Offset, Partition};

use super::Counters;
use crate::alerts::alert::Origin;
use crate::alerts::firing::RuleFinding;
use crate::outcome::FoldContext;
use crate::program::Use;
use crate::rules::Rule;
use crate::subjects::{PackedId, SlotKey, Subject, TenantTag, Witness, bit};
use crate::time_units::{NEVER_S, earlier, second_of, time_of, whole_minute};
use crate::window::{Added, Counted, Window};

/// A signal, as far as counters go.
struct Signal<'s> {
    subject: SubjectKey,
    /// Where the subject was before the record.
    place: Option<SlotKey>,
    time_ms: i64,
    amount: u64,
    origin: Origin,
    /// The fact itself; `None` for a volume.
    point: Option<&'s Point<'s>>,
}

impl Counters {
    /// Folds the signals of a record. Offsets of a source stand together in one record, so that what was applied is as of its beginning.
    pub(crate) fn fold_signals(&mut self, signals: &Signals<'_>, context: &mut FoldContext) {
        let mut highest: Vec<(Partition, Offset)> = Vec::new();
        let mut note = |source: Partition, offset: Offset| match highest.iter_mut().find(|(other, _)| *other == source) {
            Some((_, highest)) => *highest = offset.max(*highest),
            None => highest.push((source, offset)),
        };
        let mut places = std::mem::take(&mut self.places);
        let subjects = signals.points.iter().map(|point| point.subject).chain(signals.volumes.iter().map(|volume| volume.subject));
        self.state.subjects.find_all(subjects, &mut places);
        let mut found = places.iter().copied();
        for point in &signals.points {
            note(point.source, point.offset);
            self.fold_point(point, found.next().flatten(), context);
        }
        for volume in &signals.volumes {
            volume.last().into_iter().for_each(|last| note(volume.source, last));
            self.fold_volume(volume, found.next().flatten(), context);
        }
        self.places = places;
        for (source, offset) in highest {
            self.state.sources.apply(source, offset, context.timestamp_ms);
        }
    }

    fn fold_point(&mut self, point: &Point<'_>, place: Option<SlotKey>, context: &mut FoldContext) {
        let is_repeated = self.state.sources.applied(point.source) >= Some(point.offset);
        let time_ms = context.counted_ms(point.time_ms);
        if is_repeated || self.is_late(time_ms, context) {
            let counts = &mut context.folded.counts;
            return if is_repeated { counts.repeated += 1 } else { counts.late += 1 };
        }
        context.folded.counts.applied += 1;
        let mut uses = std::mem::take(&mut self.uses);
        self.program.count_point(point, &mut uses);
        let spares = |rule: &Rule| rule.spares_point(point);
        self.keep_countable(&mut uses, spares, context);
        let (subject, origin) = (point.subject, Origin::Event(point.source, point.offset));
        let signal = Signal { subject, time_ms, place, amount: 1, origin, point: Some(point) };
        self.count(&signal, &uses, context);
        uses.clear();
        self.uses = uses;
    }

    fn fold_volume(&mut self, volume: &Volume, place: Option<SlotKey>, context: &mut FoldContext) {
        let applied = self.state.sources.applied(volume.source);
        let (amount, time_ms) = (volume.sum_behind(applied), context.counted_ms(volume.second.saturating_mul(1_000)));
        let Some(last) = volume.last().filter(|last| applied < Some(*last)) else {
            context.folded.counts.repeated += 1;
            return;
        };
        if self.is_late(time_ms, context) {
            context.folded.counts.late += 1;
            return;
        }
        context.folded.counts.applied += 1;
        let mut uses = std::mem::take(&mut self.uses);
        self.program.count_volume(volume, &mut uses);
        self.keep_countable(&mut uses, |rule| rule.spares_volume(volume, time_ms), context);
        let origin = Origin::Event(volume.source, last);
        self.count(&Signal { subject: volume.subject, place, time_ms, amount, origin, point: None }, &uses, context);
        uses.clear();
        self.uses = uses;
    }

    /// Returns whether a time is too far behind the partition's. Before any source has told its time, nothing is.
    fn is_late(&self, time_ms: i64, context: &FoldContext) -> bool {
        context.now_ms.is_some_and(|now_ms| time_ms < now_ms.saturating_sub(self.program.rules().lateness_ms))
    }

    /// Keeps the rules that make no exception.
    fn keep_countable(&self, uses: &mut Vec<Use>, spares: impl Fn(&Rule) -> bool, context: &mut FoldContext) {
        uses.retain(|used| {
            let is_spared = self.program.rule(used.rule).is_some_and(|rule| !rule.exceptions.is_empty() && spares(rule));
            if is_spared {
                context.folded.counts.rule(used.rule, |counts| counts.exempt += 1);
            }
            !is_spared
        });
    }

    /// Counts a signal in the counters of its subject.
    fn count(&mut self, signal: &Signal<'_>, uses: &[Use], context: &mut FoldContext) {
        let key = signal.subject;
        let active_ms = self.program.active_ms(key.kind);
        if uses.is_empty() && active_ms.is_none() {
            return;
        }
        if self.merging.is_some() {
            self.merge_one(&key, context);
        }
        let (at, is_new) = match self.state.subjects.find_from(signal.place, &key) {
            Some(at) => (at, false),
            None => (self.state.subjects.insert(key), true),
        };
        let before = self.state.subjects.take(at);
        let ids = signal.point.map(|point| (dimension_text(&point.thread_id), dimension_text(&point.event_id)));
        let known = if is_new { None } else { Subject::read(&before).ok() };
        let mut subject = known.unwrap_or_else(|| Subject::new(signal.time_ms));
        let witness = signal.point.zip(ids.as_ref()).map(|(point, (thread, event))| {
            let (thread, event) = (PackedId::of(thread), PackedId::of(event));
            Witness { counters: 0, kind: point.kind, time_ms: signal.time_ms, thread, event }
        });
        // The same event may be sent again, at another offset.
        if witness.is_some_and(|witness| subject.evidence.knows(&witness)) {
            context.folded.counts.applied -= 1;
            context.folded.counts.repeated += 1;
            drop(subject);
            return self.state.subjects.give_back(at, before);
        }
        subject.applied = subject.applied.max(context.offset);
        if active_ms.is_some() {
            let tenant = signal.point.and_then(|point| point.tenant.as_ref().map(TenantTag::of));
            self.note_active(&key, &mut subject, tenant, Some(signal.time_ms));
        }
        let (mut added, mut counters) = (Vec::new(), 0);
        for used in uses {
            let Some((id, what)) = self.count_in(&mut subject, used, counters, signal, context) else { continue };
            counters |= bit(id);
            added.extend((what != Added::default()).then_some((id, used, what)));
        }
        if let Some(witness) = witness.filter(|_| counters != 0) {
            subject.evidence.add(Witness { counters, ..witness });
        }
        context.folded.counts.counters_dropped += subject.crowded;
        for (id, used, Added { finding, is_late }) in added {
            if is_late {
                self.enforcement(context).climb_again(&key, &mut subject, (id, used.rule), finding.is_some());
            }
            if let Some(finding) = finding {
                let found = RuleFinding { rule: used.rule, finding, at_ms: finding.to_ms, origin: signal.origin };
                self.enforcement(context).fire(&key, &mut subject, id, &found);
            }
        }
        self.expect(at, &key, &subject);
        let stamp = subject.stamp(&mut self.buffer);
        drop(subject);
        self.state.subjects.put(at, before, stamp, &self.buffer);
        if is_new {
            self.keep_within_limit(at, context);
        }
    }

    /// Counts a signal in one counter, which is made if it is not there. Returns the counter's id and what follows. `None` if the signal lacks
    /// what the rule counts by. The counters in `busy` have counted the signal before.
    fn count_in(
        &self,
        subject: &mut Subject<'_>,
        used: &Use,
        busy: u64,
        signal: &Signal<'_>,
        context: &FoldContext,
    ) -> Option<(u8, Added)> {
        let (rule, number) = (self.program.rule(used.rule)?, self.program.number(used.rule)?);
        let (group, value) = match signal.point {
            Some(point) => (rule.group_of(point)?, rule.value_of(point)?),
            None if rule.group_by.dimensions.is_empty() => (String::new(), None),
            None => return None,
        };
        let at = subject.counter(number, &group, busy, || Window::of(rule))?;
        let opened = subject.open(at).ok()?;
        // While a source has not told its time, any time may come, so that a window may need everything.
        let certain_ms = context.now_ms.map_or(i64::MIN, |now_ms| self.certain_ms(now_ms));
        let look_ms = self.time_to_look_ms(context.now_ms.unwrap_or(signal.time_ms));
        let counted = Counted { time_ms: signal.time_ms, amount: signal.amount, value, part: used.part };
        opened.make_certain(rule, signal.subject.kind, certain_ms);
        let added = opened.window.add(rule, &counted, certain_ms, look_ms);
        subject.settle(at, rule);
        Some((subject.counters.get(at)?.id, added))
    }

    /// Returns the time before which no signal can come any more that is not late, in milliseconds since the epoch.
    pub(crate) fn certain_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.program.rules().lateness_ms)
    }

    /// Returns the time of the partition behind which there is something to look at, in milliseconds since the epoch.
    fn time_to_look_ms(&self, now_ms: i64) -> i64 {
        now_ms.max(time_of(self.state.own.done_s))
    }

    /// Returns until when a subject counts as active, in milliseconds since the epoch; `None` where that does not matter.
    pub(crate) fn active_until_ms(&self, key: &SubjectKey, subject: &Subject<'_>) -> Option<i64> {
        let until_ms = subject.active_ms?.saturating_add(self.program.active_ms(key.kind).unwrap_or_default());
        Some(whole_minute(until_ms.saturating_add(self.program.rules().lateness_ms)))
    }

    /// Has the clock look at a subject when the next thing of those counters is due that were opened. It looks at the others in any case.
    pub(crate) fn expect(&mut self, at: SlotKey, key: &SubjectKey, subject: &Subject<'_>) {
        let lateness_ms = self.program.rules().lateness_ms;
        let mut due_ms = subject.control.map(|control| control.until_ms);
        let mut sooner = |other_ms| due_ms = earlier(due_ms, other_ms);
        for (number, opened) in subject.opened() {
            let Some((_, rule)) = self.program.numbered(number) else { continue };
            sooner(opened.window.due_ms(rule.timespan_ms));
            sooner(opened.episode.as_ref().map(|episode| episode.descends_ms.saturating_add(lateness_ms)));
            sooner(opened.window.over_ms(rule, lateness_ms).map(whole_minute));
        }
        sooner(self.active_until_ms(key, subject));
        let Some(due_ms) = due_ms else { return };
        // What was done is done: what comes behind it is looked at when the clock goes on.
        let second = second_of(due_ms).max(self.state.own.done_s.saturating_add(1));
        if second < NEVER_S {
            self.state.subjects.expect(at, second);
        }
    }
}
