//! The signals of one event, as deciding leaves them: what happened, to whom, and when.

use crate::event::decode::CLOCK_SKEW_MS_MAX;
use crate::event::record::{Offset, Partition};
use tollgate_json::digest::Digest;

use super::{Batch, KeyKind, KeyKinds, Point, PointKind, SubjectKey, SubjectPartitions, VolumeKind, dimension_text};

/// How far behind its record's time an event's may be, in milliseconds. One that is further off counts as the record's. So does one that is
/// as far ahead as an event can be.
pub const TIME_OFF_MS_MAX: i64 = CLOCK_SKEW_MS_MAX;

/// The signals of one event. It is reused from event to event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventSignals {
    time_ms: Option<i64>,
    is_untimed: bool,
    names_user: bool,
    subjects: Subjects,
    facts: Vec<Fact>,
    volumes: Vec<(VolumeKind, SubjectKey, u64)>,
    thread_id: String,
    event_id: String,
}

/// The hashes of those that an event is on behalf of. They are computed only where the event has a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Subjects {
    /// The user.
    pub user: Option<Digest>,
    /// The tenant.
    pub tenant: Option<Digest>,
    /// The agent.
    pub agent: Option<Digest>,
    /// The event's own thread.
    pub thread: Option<Digest>,
}

/// One thing that happened, to be counted for each of the event's subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What happened.
    pub kind: PointKind,
    /// The kinds of subjects that it counts for.
    pub counts_for: KeyKinds,
    /// The hash of the call, if it counts for that too.
    pub call: Option<Digest>,
    /// The digest of the call's arguments.
    pub args_hash: Option<Digest>,
    /// The tool.
    pub tool: Option<Box<str>>,
    /// The verdict's code.
    pub code: Option<Box<str>>,
    /// The category of a safety stop.
    pub category: Option<&'static str>,
    /// What a safety stop is about: `input` or `output`.
    pub stage: Option<&'static str>,
    /// The model provider.
    pub provider: Option<Box<str>>,
    /// The safety detector.
    pub detector: Option<&'static str>,
}

impl Fact {
    /// Returns a fact without dimensions that counts for some kinds of subjects.
    #[must_use]
    pub fn new(kind: PointKind, counts_for: KeyKinds) -> Self {
        let (call, args_hash, tool, code) = (None, None, None, None);
        Self { kind, counts_for, call, args_hash, tool, code, category: None, stage: None, provider: None, detector: None }
    }
}

impl Subjects {
    /// Returns the hash of the subject of a kind; `None` for a call, which belongs to a fact.
    #[must_use]
    pub fn of(&self, kind: KeyKind) -> Option<Digest> {
        match kind {
            KeyKind::User => self.user,
            KeyKind::Tenant => self.tenant,
            KeyKind::Agent => self.agent,
            KeyKind::Thread => self.thread,
            KeyKind::Call => None,
        }
    }
}

impl EventSignals {
    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.time_ms, self.is_untimed, self.names_user, self.subjects) = (None, false, false, Subjects::default());
        self.facts.clear();
        self.volumes.clear();
    }

    /// Begins with an event. `time_ms` is its time as [`counted_time`] gives it.
    pub fn begin(&mut self, time_ms: Option<i64>, names_user: bool) {
        self.clear();
        (self.time_ms, self.names_user) = (time_ms, names_user);
    }

    /// Adds an amount of a subject. Nothing at all is no amount.
    pub fn volume(&mut self, kind: VolumeKind, subject: SubjectKey, amount: u64) {
        if amount > 0 {
            self.volumes.push((kind, subject, amount));
        }
    }

    /// Adds a fact. `subjects` are those of the event, and `ids` its thread and event.
    pub fn fact(&mut self, fact: Fact, subjects: Subjects, ids: (&str, &str)) {
        if self.facts.is_empty() {
            (self.subjects, self.thread_id, self.event_id) = (subjects, ids.0.to_owned(), ids.1.to_owned());
        }
        self.facts.push(fact);
    }

    /// Drops what has no time: it could not be counted in any window.
    pub fn end(&mut self) {
        if self.time_ms.is_none() && !self.is_empty() {
            self.facts.clear();
            self.volumes.clear();
            self.is_untimed = true;
        }
    }

    /// Returns whether the event has no signals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty() && self.volumes.is_empty()
    }

    /// Returns the event's time as signals and clocks count it, in milliseconds since the epoch; `None` where no time is known, where the
    /// record is no event, and while signals are off.
    #[must_use]
    pub fn time_ms(&self) -> Option<i64> {
        self.time_ms
    }

    /// Returns whether the event had signals that were dropped, because no time is known.
    #[must_use]
    pub fn is_untimed(&self) -> bool {
        self.is_untimed
    }

    /// Returns whether the event names its user.
    #[must_use]
    pub fn names_user(&self) -> bool {
        self.names_user
    }

    /// Returns whether something happened that counts for users, and the event does not say for whom.
    #[must_use]
    pub fn is_unattributed(&self) -> bool {
        !self.names_user && self.facts.iter().any(|fact| fact.counts_for.has(KeyKind::User))
    }

    /// Returns what happened, each thing once.
    #[must_use]
    pub fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// Returns the amounts.
    #[must_use]
    pub fn volumes(&self) -> &[(VolumeKind, SubjectKey, u64)] {
        &self.volumes
    }

    /// Returns the points: each fact once for each subject that it counts for and that the event names. `source` is the event's place.
    pub fn points(&self, source: (Partition, Offset)) -> impl Iterator<Item = Point<'_>> {
        let copies = self.facts.iter().flat_map(move |fact| {
            let hash_of = move |kind| if kind == KeyKind::Call { fact.call } else { self.subjects.of(kind) };
            fact.counts_for.iter().filter_map(move |kind| Some((fact, SubjectKey { kind, hash: hash_of(kind)? })))
        });
        copies.zip(std::iter::repeat(self.time_ms)).filter_map(move |((fact, subject), time_ms)| {
            let Subjects { user, tenant, agent, thread } = self.subjects;
            Some(Point {
                kind: fact.kind,
                subject,
                source: source.0,
                offset: source.1,
                time_ms: time_ms?,
                thread_id: self.thread_id.as_str().into(),
                event_id: self.event_id.as_str().into(),
                user,
                tenant,
                agent,
                thread,
                args_hash: fact.args_hash,
                tool: fact.tool.as_deref().map(dimension_text),
                code: fact.code.as_deref().map(dimension_text),
                category: fact.category.map(Into::into),
                stage: fact.stage.map(Into::into),
                provider: fact.provider.as_deref().map(dimension_text),
                detector: fact.detector.map(Into::into),
            })
        })
    }

    /// Adds the signals to the batches of their partitions of the signals topic; `batches` has one for each partition. `source` is the event's
    /// place. `targets` is emptied, and then lists the partitions that something was added for, each once.
    pub fn add_to(
        &self,
        source: (Partition, Offset),
        partitions: &mut SubjectPartitions,
        batches: &mut [Batch],
        targets: &mut Vec<Partition>,
    ) {
        targets.clear();
        let Some(time_ms) = self.time_ms else { return };
        let mut place_of = |subject| {
            let target = partitions.of(subject);
            note(target, targets);
            usize::try_from(target.0).unwrap_or(usize::MAX)
        };
        for point in self.points(source) {
            let batch = batches.get_mut(place_of(point.subject));
            batch.into_iter().for_each(|batch| batch.point(&point));
        }
        for (kind, subject, amount) in &self.volumes {
            let batch = batches.get_mut(place_of(*subject));
            batch.into_iter().for_each(|batch| batch.volume(*kind, *subject, source, time_ms, *amount));
        }
    }

    /// Lists the partitions of the signals topic that something would be added for, each once.
    pub fn targets(&self, partitions: &mut SubjectPartitions, targets: &mut Vec<Partition>) {
        targets.clear();
        let points = self.points((Partition(0), Offset(0))).map(|point| point.subject);
        let volumes = self.volumes.iter().map(|(_, subject, _)| *subject).filter(|_| self.time_ms.is_some());
        points.chain(volumes).for_each(|subject| note(partitions.of(subject), targets));
    }
}

/// Adds a partition to a list in which each stands once.
fn note(target: Partition, targets: &mut Vec<Partition>) {
    if !targets.contains(&target) {
        targets.push(target);
    }
}

/// Returns the time at which an event counts, in milliseconds since the epoch: its own, or its record's if the two are too far apart, see
/// [`TIME_OFF_MS_MAX`], or else the partition's; `None` where none of them is known.
#[must_use]
pub fn counted_time(event_ms: Option<i64>, record_ms: Option<i64>, partition_ms: Option<i64>) -> Option<i64> {
    // An event that is further ahead was brought to the limit when it was read.
    let is_off = |event_ms: i64, record_ms: i64| {
        event_ms < record_ms.saturating_sub(TIME_OFF_MS_MAX) || event_ms >= record_ms.saturating_add(TIME_OFF_MS_MAX)
    };
    match (event_ms, record_ms) {
        (Some(event_ms), Some(record_ms)) if is_off(event_ms, record_ms) => Some(record_ms),
        _ => event_ms.or(record_ms).or(partition_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str) -> SubjectKey {
        SubjectKey { kind: KeyKind::Tenant, hash: Digest::of(text.as_bytes()) }
    }

    #[test]
    fn a_time_counts_if_it_is_near_its_records() {
        let off = TIME_OFF_MS_MAX;
        for (event, record, partition, expected) in [
            (Some(5), None, Some(9), Some(5)),
            (Some(off - 1), Some(0), None, Some(off - 1)),
            (Some(-off), Some(0), None, Some(-off)),
            (Some(off), Some(0), None, Some(0)),
            (Some(-off - 1), Some(0), None, Some(0)),
            (Some(i64::MIN), Some(i64::MAX), None, Some(i64::MAX)),
            (None, Some(5), Some(9), Some(5)),
            (None, None, Some(9), Some(9)),
            (None, None, None, None),
        ] {
            assert_eq!(counted_time(event, record, partition), expected, "{event:?} {record:?}");
        }
    }

    #[test]
    fn each_signal_is_on_the_partition_of_its_subject() {
        let mut signals = EventSignals::default();
        signals.begin(Some(1_500), false);
        let mut counts_for = KeyKinds::default();
        [KeyKind::User, KeyKind::Tenant, KeyKind::Thread].into_iter().for_each(|kind| counts_for.insert(kind));
        let subjects = Subjects { tenant: Some(subject("a").hash), thread: Some(Digest::of(b"t")), ..Subjects::default() };
        signals.fact(Fact { code: Some("c".repeat(200).into()), ..Fact::new(PointKind::LoopStop, counts_for) }, subjects, ("t", "e"));
        signals.volume(VolumeKind::Call, subject("a"), 1);
        signals.volume(VolumeKind::Tokens, subject("a"), 0);
        signals.volume(VolumeKind::Tokens, subject("b"), 7);
        signals.end();
        assert!(signals.is_unattributed() && !signals.is_untimed());
        let mut batches: Vec<Batch> = (0..16).map(|_| Batch::default()).collect();
        let (mut targets, mut listed) = (Vec::new(), Vec::new());
        let mut partitions = SubjectPartitions::new(16);
        signals.add_to((Partition(3), Offset(9)), &mut partitions, &mut batches, &mut targets);
        signals.targets(&mut partitions, &mut listed);
        assert_eq!(targets, listed);
        let (mut points, mut volumes) = (0, 0);
        for (partition, batch) in (0..).map(Partition).zip(&mut batches) {
            assert_eq!(targets.contains(&partition), !batch.is_empty());
            let mut value = Vec::new();
            batch.take(&mut value);
            let read = super::super::read(Some(&value)).unwrap();
            let of_points = read.points.iter().map(|point| point.subject);
            assert!(of_points.chain(read.volumes.iter().map(|volume| volume.subject)).all(|subject| subject.partition(16) == partition));
            assert!(read.points.iter().all(|point| point.code.as_deref().is_some_and(|code| code.starts_with("sha256:"))));
            (points, volumes) = (points + read.points.len(), volumes + read.volumes.len());
        }
        assert_eq!((points, volumes), (2, 2), "it names no user, and no tokens are no amount");
    }

    #[test]
    fn what_has_no_time_is_dropped_and_said() {
        let mut signals = EventSignals::default();
        signals.begin(None, true);
        signals.end();
        assert!(!signals.is_untimed());
        signals.volume(VolumeKind::Call, subject("a"), 1);
        signals.end();
        assert!(signals.is_untimed() && signals.is_empty() && signals.names_user());
        signals.clear();
        assert_eq!(signals, EventSignals::default());
    }
}
