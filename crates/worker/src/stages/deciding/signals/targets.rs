//! The records of signals in the making, one for each partition of the signals topic.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tollgate_core::decide::signal::{Batch, Clock, EventSignals, SubjectPartitions};
use tollgate_core::event::record::Partition;

use crate::outbox::{Destination, LatePublications, Role, Waiter};

use super::SignalTopic;
use super::clocks::Report;
use super::pace::Pace;

/// How many empty buffers of records are kept, and of how many bytes each.
const SPARE_MAX: usize = 16;
const SPARE_BYTES_MAX: usize = 64 << 10;

/// The records in the making.
#[derive(Debug)]
pub(super) struct Targets {
    topic: SignalTopic,
    /// Where subjects are on it.
    partitions: SubjectPartitions,
    /// The open records, by target.
    batches: Vec<Batch>,
    /// Who waits for each of them, in the order of the offsets of each partition.
    waiters: Vec<Vec<Waiter>>,
    /// Which of them hold more than amounts and clocks.
    urgent: Vec<bool>,
    /// Since when anything is to be published, and since when anything urgent is.
    since: Option<Instant>,
    urgent_since: Option<Instant>,
    /// Records that are closed, in order.
    closed: VecDeque<Closed>,
    /// Buffers of records that were published.
    spare: Vec<Vec<u8>>,
    /// Whether anything is to be published.
    is_dirty: bool,
    /// The targets of the event at hand, reused.
    hit: Vec<Partition>,
}

#[derive(Debug)]
struct Closed {
    target: usize,
    key: Option<String>,
    value: Vec<u8>,
    waiters: Vec<Waiter>,
}

impl Targets {
    pub(super) fn new(topic: SignalTopic) -> Self {
        let batches = (0..topic.partitions).map(|_| Batch::default()).collect();
        let waiters = (0..topic.partitions).map(|_| Vec::new()).collect();
        let partitions = SubjectPartitions::new(topic.partitions);
        let urgent = (0..topic.partitions).map(|_| false).collect();
        let (closed, spare, hit) = (VecDeque::new(), Vec::new(), Vec::new());
        let (since, urgent_since) = (None, None);
        Self { topic, partitions, batches, waiters, urgent, since, urgent_since, closed, spare, is_dirty: false, hit }
    }

    /// Returns in how many records the signals of an event will be.
    pub(super) fn count(&mut self, signals: &EventSignals) -> u32 {
        signals.targets(&mut self.partitions, &mut self.hit);
        u32::try_from(self.hit.len()).unwrap_or(u32::MAX)
    }

    /// Adds the signals of an event, all of those for a target to one record. Returns for how many records the event has to wait: for those
    /// in which it is the first of its partition. An offset is committed only behind all earlier ones, so that those that come after it in the
    /// same record wait for it.
    pub(super) fn add(&mut self, waiter: Waiter, signals: &EventSignals) -> u32 {
        self.add_if(waiter, signals, |waiters| !waiters.iter().rev().any(|before| before.partition == waiter.partition))
    }

    /// Adds the signals of an event that waits for each record that has some of them: [`Self::count`] has said for how many.
    pub(super) fn add_counted(&mut self, waiter: Waiter, signals: &EventSignals) {
        self.add_if(waiter, signals, |_| true);
    }

    /// Adds the signals of an event, and has it wait for the records of which `waits` is true, given who waits for them already. Returns how
    /// many these are.
    fn add_if(&mut self, waiter: Waiter, signals: &EventSignals, waits: impl Fn(&[Waiter]) -> bool) -> u32 {
        let (mut hit, mut awaited) = (std::mem::take(&mut self.hit), 0);
        signals.add_to((waiter.partition, waiter.offset), &mut self.partitions, &mut self.batches, &mut hit);
        self.is_dirty |= !hit.is_empty();
        for target in hit.iter().filter_map(|target| usize::try_from(target.0).ok()) {
            if let Some(waiters) = self.waiters.get_mut(target)
                && waits(waiters)
            {
                waiters.push(waiter);
                awaited += 1;
            }
            if let Some(is_urgent) = self.urgent.get_mut(target) {
                *is_urgent |= !signals.facts().is_empty();
            }
            if self.batches.get(target).is_some_and(|batch| batch.bytes() >= self.topic.record_bytes) {
                self.close(target);
            }
        }
        self.hit = hit;
        awaited
    }

    fn close(&mut self, target: usize) {
        if let (Some(batch), Some(waiters)) = (self.batches.get_mut(target), self.waiters.get_mut(target)) {
            let (key, mut value) = (batch.key().map(|subject| subject.to_string()), self.spare.pop().unwrap_or_default());
            value.reserve(batch.bytes());
            batch.take(&mut value);
            // The next record has about as many.
            let next = Vec::with_capacity(waiters.len());
            self.closed.push_back(Closed { target, key, value, waiters: std::mem::replace(waiters, next) });
        }
        if let Some(is_urgent) = self.urgent.get_mut(target) {
            *is_urgent = false;
        }
    }

    /// Returns whether anything is to be published.
    pub(super) fn is_gathering(&self) -> bool {
        self.is_dirty
    }

    /// Closes all records: what comes now is in others.
    pub(super) fn close_all(&mut self) {
        self.close_where(|_| true);
        self.urgent_since = None;
    }

    fn close_where(&mut self, is_due: impl Fn(bool) -> bool) {
        for target in 0..self.batches.len() {
            let is_urgent = self.urgent.get(target).is_some_and(|is_urgent| *is_urgent);
            if is_due(is_urgent) && self.batches.get(target).is_some_and(|batch| !batch.is_empty()) {
                self.close(target);
            }
        }
    }

    /// Tells every target that a source begins, in records that end with it: what comes after counts anew.
    pub(super) fn began(&mut self, clock: Clock) {
        self.tell(Report::Clock(clock));
        self.close_all();
    }

    /// Tells every target what there is to say of a source, and how many there are.
    pub(super) fn tell(&mut self, report: Report) {
        for batch in &mut self.batches {
            match report {
                Report::Clock(clock) => batch.clock(clock),
                Report::Idle(source) => batch.idle(source),
            }
            batch.sources(self.topic.sources);
        }
        self.is_dirty = true;
    }

    /// Closes the records that are due: all of them if amounts were gathered for long enough, or else those with more than amounts, if these
    /// were.
    fn close_due(&mut self, now: Instant, pace: Pace) {
        if !self.is_dirty {
            return;
        }
        let is_over = |since: Instant, time: Duration| now.saturating_duration_since(since) >= time;
        if is_over(*self.since.get_or_insert(now), pace.gather_time()) {
            self.close_all();
            (self.is_dirty, self.since) = (false, None);
        } else if self.urgent.contains(&true) && is_over(*self.urgent_since.get_or_insert(now), pace.gather_time_urgent()) {
            self.close_where(|is_urgent| is_urgent);
            self.urgent_since = None;
        }
    }

    /// Publishes the records that are due.
    pub(super) fn send(&mut self, now: Instant, pace: Pace, late: &mut LatePublications<'_>) {
        self.close_due(now, pace);
        for Closed { target, key, mut value, waiters } in self.closed.drain(..) {
            let key = key.as_deref().map(str::as_bytes);
            let to = Destination { topic: &self.topic.name, partition: i32::try_from(target).ok(), key, value: Some(&value) };
            late.send_shared(Role::Signals, to, waiters);
            if self.spare.len() < SPARE_MAX && value.capacity() <= SPARE_BYTES_MAX {
                value.clear();
                self.spare.push(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::decide::signal::{Fact, KeyKind, KeyKinds, PointKind, SubjectKey, Subjects, VolumeKind, read};
    use tollgate_core::event::record::Offset;
    use tollgate_json::digest::Digest;

    fn topic(partitions: u32, record_bytes: usize) -> SignalTopic {
        SignalTopic { name: "signals".to_owned(), partitions, sources: 4, record_bytes }
    }

    fn waiter(offset: i64) -> Waiter {
        Waiter { partition: Partition(1), generation: 1, offset: Offset(offset) }
    }

    fn signals(subjects: &[&str]) -> EventSignals {
        let mut signals = EventSignals::default();
        signals.begin(Some(1_000), true);
        for name in subjects {
            signals.volume(VolumeKind::Call, SubjectKey { kind: KeyKind::User, hash: Digest::of(name.as_bytes()) }, 1);
        }
        signals
    }

    fn closed(targets: &mut Targets) -> Vec<Closed> {
        targets.close_all();
        targets.closed.drain(..).collect()
    }

    #[test]
    fn signals_are_on_the_partition_of_their_subject_and_the_first_record_of_a_partition_waits_for_each() {
        let signals = signals(&["a", "b", "c", "d", "e", "f"]);
        let mut targets = Targets::new(topic(3, 1 << 20));
        let mut due = 0;
        let other = Waiter { partition: Partition(2), generation: 1, offset: Offset(0) };
        for (waiter, waits) in [(waiter(0), true), (waiter(1), false), (other, true), (waiter(2), false)] {
            let awaited = targets.add(waiter, &signals);
            assert_eq!(awaited, if waits { targets.count(&signals) } else { 0 }, "an offset is committed behind all earlier ones");
            due += awaited;
        }
        targets.add_counted(waiter(3), &signals);
        due += targets.count(&signals);
        let closed = closed(&mut targets);
        assert_eq!(closed.iter().map(|record| record.waiters.len()).sum::<usize>(), due as usize);
        let mut seen = 0;
        for record in &closed {
            let target = i32::try_from(record.target).unwrap();
            for volume in read(Some(&record.value)).unwrap().volumes {
                assert_eq!(volume.subject.partition(3).0, target);
                seen += volume.amounts.len();
            }
            let key = SubjectKey::parse(record.key.as_deref().unwrap()).unwrap();
            assert_eq!(key.partition(3).0, target, "the key says the same");
        }
        assert_eq!(seen, 6 * 5);
    }

    #[test]
    fn a_record_is_closed_behind_a_whole_event() {
        let mut targets = Targets::new(topic(1, 400));
        (0..9).for_each(|offset| _ = targets.add(waiter(offset), &signals(&["a", "b", "c"])));
        let closed = closed(&mut targets);
        assert!(closed.len() > 1, "{}", closed.len());
        let mut offsets = Vec::new();
        for record in &closed {
            let signals = read(Some(&record.value)).unwrap();
            assert_eq!(signals.volumes.len(), 3, "all of an event are in one record");
            offsets.extend(signals.volumes.first().unwrap().amounts.iter().map(|(offset, _)| offset.0));
        }
        assert_eq!(offsets, (0..9).collect::<Vec<_>>());
    }

    fn safety_stop(name: &[u8]) -> EventSignals {
        let mut stop = EventSignals::default();
        stop.begin(Some(1_000), true);
        let fact = Fact::new(PointKind::SafetyStop, KeyKinds::OF_EVENTS);
        stop.fact(fact, Subjects { user: Some(Digest::of(name)), ..Subjects::default() }, ("t", "e"));
        stop
    }

    #[test]
    fn what_happened_waits_less_than_amounts() {
        let mut targets = Targets::new(topic(16, 1 << 20));
        let start = Instant::now();
        let closed_at = |targets: &mut Targets, ms: u64, pace: Pace| {
            targets.close_due(start + Duration::from_millis(ms), pace);
            targets.closed.drain(..).collect::<Vec<_>>()
        };
        targets.add(waiter(0), &signals(&["a", "b", "c", "d"]));
        assert!(closed_at(&mut targets, 0, Pace::Steady).is_empty());
        targets.add(waiter(1), &safety_stop(b"a"));
        assert!(closed_at(&mut targets, 10, Pace::Steady).is_empty());
        targets.add(waiter(2), &safety_stop(b"a"));
        assert!(closed_at(&mut targets, 34, Pace::Steady).is_empty());
        let urgent = closed_at(&mut targets, 35, Pace::Steady);
        assert_eq!(urgent.len(), 1);
        let written = read(Some(&urgent[0].value)).unwrap();
        assert_eq!((written.points.len(), urgent[0].waiters.len()), (2, 1), "with the amounts that came before");
        assert!(closed_at(&mut targets, 49, Pace::Steady).is_empty(), "once");
        assert!(!closed_at(&mut targets, 50, Pace::Steady).is_empty(), "the amounts of the others");
        assert!(closed_at(&mut targets, 1_000, Pace::Quiet).is_empty() && !targets.is_gathering());
        targets.add(waiter(3), &signals(&["a"]));
        assert_eq!(closed_at(&mut targets, 1_001, Pace::Quiet).len(), 1, "nothing comes for now");
        targets.add(waiter(4), &safety_stop(b"a"));
        assert!([2_000, 2_199].iter().all(|ms| closed_at(&mut targets, *ms, Pace::Behind).is_empty()), "others are late anyway");
        assert_eq!(closed_at(&mut targets, 2_200, Pace::Behind).len(), 1);
    }

    #[test]
    fn a_beginning_stands_before_what_counts_anew() {
        let mut targets = Targets::new(topic(2, 1 << 20));
        targets.began(Clock { source: Partition(1), next: Offset(3), time_ms: 5, has_begun: true });
        targets.add(waiter(0), &signals(&["a"]));
        let closed = closed(&mut targets);
        let clocks: Vec<_> = closed.iter().map(|record| read(Some(&record.value)).unwrap().clocks.len()).collect();
        assert_eq!(clocks, [1, 1, 0]);
        assert_eq!(read(Some(&closed[0].value)).unwrap().sources, Some(4));
        assert!(closed[0].key.is_none() && closed[0].waiters.is_empty());
    }
}
