//! The records of signals in the making, one for each partition of the signals topic.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;
use tollgate_core::signal::{Batch, Clock, SubjectKey};

use crate::outbox::{Destination, LatePublications, Role, Waiter};

use super::source::Event;
use super::{Facts, SignalTopic};

/// How many subjects' partitions are remembered, of which most events have few.
const KNOWN: usize = 1 << 12;

/// The records in the making.
#[derive(Debug)]
pub(super) struct Targets {
    topic: SignalTopic,
    open: Vec<Open>,
    /// Records that are closed, in order.
    closed: VecDeque<Closed>,
    /// Whether anything is open.
    is_dirty: bool,
    known: Vec<Option<(SubjectKey, usize)>>,
    /// The targets of the event at hand, reused.
    hit: Vec<usize>,
}

#[derive(Debug, Default)]
struct Open {
    batch: Batch,
    waiters: Vec<Waiter>,
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
        let open = (0..topic.partitions).map(|_| Open::default()).collect();
        Self { topic, open, closed: VecDeque::new(), is_dirty: false, known: vec![None; KNOWN], hit: Vec::new() }
    }

    /// Returns in how many records the signals of an event are.
    pub(super) fn count(&mut self, facts: &Facts) -> u32 {
        self.hit.clear();
        let subjects = facts.points.iter().map(|point| point.subject).chain(facts.volumes.iter().map(|(_, subject, _)| *subject));
        for subject in subjects {
            let target = target(&mut self.known, self.topic.partitions, subject);
            if !self.hit.contains(&target) {
                self.hit.push(target);
            }
        }
        u32::try_from(self.hit.len()).unwrap_or(u32::MAX)
    }

    /// Adds the signals of an event, all of those for a target to one record.
    pub(super) fn add(&mut self, event: Event) {
        let Event { waiter, time_ms, facts } = event;
        let (Some(facts), Some(time_ms)) = (facts, time_ms) else { return };
        self.count(&facts);
        for point in &facts.points {
            let target = target(&mut self.known, self.topic.partitions, point.subject);
            if let Some(open) = self.open.get_mut(target) {
                open.batch.point(point);
            }
        }
        for (kind, subject, amount) in &facts.volumes {
            let target = target(&mut self.known, self.topic.partitions, *subject);
            if let Some(open) = self.open.get_mut(target) {
                open.batch.volume(*kind, *subject, (waiter.partition, waiter.offset), time_ms, *amount);
            }
        }
        let Self { open, hit, closed, topic, .. } = self;
        for target in hit.drain(..) {
            let Some(open) = open.get_mut(target) else { continue };
            open.waiters.push(waiter);
            if open.batch.bytes() >= topic.record_bytes {
                closed.push_back(open.close(target));
            }
        }
        self.is_dirty = true;
    }

    /// Tells every target that a source begins, in records of their own: what comes after counts anew.
    pub(super) fn began(&mut self, clock: Clock) {
        for (target, open) in self.open.iter_mut().enumerate() {
            open.batch.clock(clock);
            self.closed.push_back(open.close(target));
        }
        self.is_dirty = true;
    }

    /// Tells every target the time of a source.
    pub(super) fn clock(&mut self, clock: Clock) {
        self.open.iter_mut().for_each(|open| open.batch.clock(clock));
        self.is_dirty = true;
    }

    /// Publishes all records.
    pub(super) fn send(&mut self, late: &mut LatePublications<'_>) {
        if !std::mem::take(&mut self.is_dirty) {
            return;
        }
        for (target, open) in self.open.iter_mut().enumerate().filter(|(_, open)| !open.batch.is_empty()) {
            self.closed.push_back(open.close(target));
        }
        for Closed { target, key, value, waiters } in self.closed.drain(..) {
            let to = Destination {
                topic: &self.topic.name,
                partition: i32::try_from(target).ok(),
                key: key.as_deref().map(str::as_bytes),
                value: Some(&value),
            };
            late.send_shared(Role::Signals, to, waiters);
        }
    }
}

impl Open {
    fn close(&mut self, target: usize) -> Closed {
        let (key, mut value) = (self.batch.key().map(|subject| subject.to_string()), Vec::with_capacity(self.batch.bytes()));
        self.batch.take(&mut value);
        Closed { target, key, value, waiters: std::mem::take(&mut self.waiters) }
    }
}

/// Returns the partition that a subject's signals are on.
fn target(known: &mut [Option<(SubjectKey, usize)>], partitions: u32, subject: SubjectKey) -> usize {
    let of = |subject: SubjectKey| usize::try_from(subject.partition(partitions).0).unwrap_or_default();
    let place = usize::try_from(FxBuildHasher.hash_one(subject)).unwrap_or_default() % KNOWN;
    match known.get_mut(place) {
        Some(Some((known, target))) if *known == subject => *target,
        Some(place) => place.insert((subject, of(subject))).1,
        None => of(subject),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::digest::Digest;
    use tollgate_core::record::{Offset, Partition};
    use tollgate_core::signal::{KeyKind, VolumeKind, read};

    fn topic(partitions: u32, record_bytes: usize) -> SignalTopic {
        SignalTopic { name: "signals".to_owned(), partitions, record_bytes }
    }

    fn subject(name: &str) -> SubjectKey {
        SubjectKey { kind: KeyKind::User, hash: Digest::of(name.as_bytes()) }
    }

    fn event(offset: i64, subjects: &[&str]) -> Event {
        let waiter = Waiter { partition: Partition(1), generation: 1, offset: Offset(offset) };
        let volumes = subjects.iter().map(|name| (VolumeKind::Call, subject(name), 1)).collect();
        Event { waiter, time_ms: Some(1_000), facts: Some(Facts { time_ms: Some(1_000), volumes, ..Facts::default() }) }
    }

    fn closed(targets: &mut Targets) -> Vec<Closed> {
        for (target, open) in targets.open.iter_mut().enumerate().filter(|(_, open)| !open.batch.is_empty()) {
            targets.closed.push_back(open.close(target));
        }
        targets.closed.drain(..).collect()
    }

    #[test]
    fn signals_are_on_the_partition_of_their_subject_and_records_wait_once_for_each() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut targets = Targets::new(topic(3, 1 << 20));
        let mut due = 0;
        for offset in 0..4 {
            let event = event(offset, &names);
            due += targets.count(event.facts.as_ref().unwrap());
            targets.add(event);
        }
        let closed = closed(&mut targets);
        assert_eq!(closed.iter().map(|record| record.waiters.len()).sum::<usize>(), due as usize);
        let mut seen = 0;
        for record in &closed {
            for volume in read(Some(&record.value)).unwrap().volumes {
                assert_eq!(volume.subject.partition(3).0, i32::try_from(record.target).unwrap());
                assert_eq!(volume.amounts.len(), 4);
                seen += 1;
            }
            let key = SubjectKey::parse(record.key.as_deref().unwrap()).unwrap();
            assert_eq!(key.partition(3).0, i32::try_from(record.target).unwrap(), "the key says the same");
        }
        assert_eq!(seen, names.len());
    }

    #[test]
    fn a_record_is_closed_behind_a_whole_event() {
        let mut targets = Targets::new(topic(1, 400));
        (0..9).for_each(|offset| targets.add(event(offset, &["a", "b", "c"])));
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

    #[test]
    fn a_beginning_stands_before_what_counts_anew() {
        let mut targets = Targets::new(topic(2, 1 << 20));
        targets.began(Clock { source: Partition(1), next: Offset(3), time_ms: 5, has_begun: true });
        targets.add(event(0, &["a"]));
        let closed = closed(&mut targets);
        let clocks: Vec<_> = closed.iter().map(|record| read(Some(&record.value)).unwrap().clocks.len()).collect();
        assert_eq!(clocks, [1, 1, 0]);
        assert!(closed[0].key.is_none() && closed[0].waiters.is_empty());
    }
}
