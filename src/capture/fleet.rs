//! Counting over the fleet in this process: the signals of each event go to the abuse stage at once, as in workers they go through the
//! signals topic.
//!
//! ```text
//! event ─▶ decided ─▶ its signals ─▶ record of the signals partition ─▶ abuse stage ─▶ alerts, controls
//!                         times of the sources, once a second ──┘
//! ```
//!
//! A source's clock is its greatest event time so far. While other sources go on, it advances as that of an idle source in a worker does: by
//! the time that has passed in the log, which is told by the records' timestamps. So the result is a function of the records and their
//! order, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate_core::abuse::{Abuse, AbuseRules, AbuseState, Folded};
use tollgate_core::record::{Offset, Partition, Record};
use tollgate_core::signal::{Batch, Clock, Point, SubjectKey, VolumeKind};
use tollgate_core::stage::{Progress, Stage as _};

/// How far the log goes on between two records of clocks, in milliseconds: as often as a worker writes them.
const TICK_MS: i64 = 1_000;

/// The abuse stage over all sources of one events topic.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// The signals topic.
    topic: String,
    partitions: Vec<SignalsPartition>,
    sources: BTreeMap<Partition, Source>,
    /// The time of the log, in milliseconds since the epoch: the greatest timestamp of a record so far.
    log_ms: Option<i64>,
    /// The time of the log when clocks were last written.
    ticked_ms: Option<i64>,
    value: Vec<u8>,
}

/// A partition of the signals topic, with its stage.
#[derive(Debug)]
struct SignalsPartition {
    stage: Abuse,
    batch: Batch,
    next: Offset,
}

/// A partition of the events topic. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, Copy)]
struct Source {
    /// The offset behind the last event.
    next: Offset,
    /// The greatest time of an event.
    time_ms: Option<i64>,
    /// The time of the log at its last event.
    log_ms: Option<i64>,
}

/// Where an event stands, and when it happened. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventPlace {
    pub(crate) partition: Partition,
    pub(crate) offset: Offset,
    /// The event's time, as signals count it.
    pub(crate) time_ms: Option<i64>,
    /// The timestamp of its record.
    pub(crate) timestamp_ms: Option<i64>,
}

/// Is shown each record of the signals topic, and what follows from it.
pub(crate) trait Follower {
    /// Takes a record and its outcome.
    ///
    /// # Errors
    /// It cannot go on, and neither can the counting.
    fn follow(&mut self, record: &Record<'_>, folded: Folded) -> anyhow::Result<()>;
}

impl Fleet {
    /// Returns a fleet of which nothing is known, with a signals topic of so many partitions.
    pub(crate) fn new(topic: &str, rules: &Arc<AbuseRules>, partitions: u32) -> Self {
        let new = || SignalsPartition { stage: Abuse::new(Arc::clone(rules), AbuseState::default()), batch: Batch::default(), next: Offset(0) };
        Self {
            topic: topic.to_owned(),
            partitions: std::iter::repeat_with(new).take(partitions as usize).collect(),
            sources: BTreeMap::new(),
            log_ms: None,
            ticked_ms: None,
            value: Vec::new(),
        }
    }

    /// Adds a point of the event that [`Fleet::event`] is called for next.
    pub(crate) fn point(&mut self, point: &Point<'_>) {
        if let Some(partition) = self.of(point.subject) {
            partition.batch.point(point);
        }
    }

    /// Adds an amount of the event that [`Fleet::event`] is called for next.
    pub(crate) fn volume(&mut self, kind: VolumeKind, subject: SubjectKey, source: (Partition, Offset), time_ms: i64, amount: u64) {
        if let Some(partition) = self.of(subject) {
            partition.batch.volume(kind, subject, source, time_ms, amount);
        }
    }

    fn of(&mut self, subject: SubjectKey) -> Option<&mut SignalsPartition> {
        let partitions = u32::try_from(self.partitions.len()).unwrap_or(u32::MAX);
        self.partitions.get_mut(usize::try_from(subject.partition(partitions).0).ok()?)
    }

    /// Folds what was added for an event, which has to come behind all events of its partition so far. What follows from it is shown before
    /// this returns.
    ///
    /// # Errors
    /// The follower cannot go on.
    pub(crate) fn event(&mut self, place: &EventPlace, follower: &mut impl Follower) -> anyhow::Result<()> {
        let EventPlace { partition, offset, time_ms, timestamp_ms } = *place;
        self.log_ms = self.log_ms.max(timestamp_ms.or(time_ms));
        let source = self.sources.entry(partition).or_insert(Source { next: offset, time_ms: None, log_ms: None });
        source.next = offset.next();
        source.time_ms = source.time_ms.max(time_ms);
        source.log_ms = self.log_ms;
        let clock = source.clock(partition, self.log_ms);
        for at in 0..self.partitions.len() {
            if self.partitions.get(at).is_some_and(|partition| !partition.batch.is_empty()) {
                self.fold(at, clock.as_slice(), follower)?;
            }
        }
        let is_due = |ticked_ms: i64| self.log_ms.is_some_and(|log_ms| log_ms.saturating_sub(ticked_ms) >= TICK_MS);
        if self.ticked_ms.is_none_or(is_due) { self.tick(follower) } else { Ok(()) }
    }

    /// Tells every partition the times of all sources, as workers do once a second. It is called at the end, so that what waits for the
    /// clock has seen the last event.
    ///
    /// # Errors
    /// The follower cannot go on.
    pub(crate) fn tick(&mut self, follower: &mut impl Follower) -> anyhow::Result<()> {
        self.ticked_ms = self.log_ms;
        let log_ms = self.log_ms;
        let clocks: Vec<_> = self.sources.iter().filter_map(|(partition, source)| source.clock(*partition, log_ms)).collect();
        if clocks.is_empty() {
            return Ok(());
        }
        (0..self.partitions.len()).try_for_each(|at| self.fold(at, &clocks, follower))
    }

    /// Writes the record of a partition and folds it.
    fn fold(&mut self, at: usize, clocks: &[Clock], follower: &mut impl Follower) -> anyhow::Result<()> {
        let Self { topic, partitions, log_ms, value, .. } = self;
        let Some(partition) = partitions.get_mut(at) else { return Ok(()) };
        clocks.iter().for_each(|clock| partition.batch.clock(*clock));
        let key = partition.batch.key().map(|key| key.to_string());
        value.clear();
        partition.batch.take(value);
        let record = Record {
            topic,
            partition: Partition(i32::try_from(at)?),
            offset: partition.next,
            timestamp_ms: *log_ms,
            key: key.as_deref().map(str::as_bytes),
            value: Some(value),
            headers: &[],
        };
        partition.next = partition.next.next();
        let Progress::Done(folded) = partition.stage.apply(&record, &mut ()) else { anyhow::bail!("the abuse stage waits for nobody") };
        follower.follow(&record, folded)
    }
}

impl Source {
    /// Returns the clock of a source at a time of the log; `None` before any event has told a time.
    fn clock(&self, partition: Partition, log_ms: Option<i64>) -> Option<Clock> {
        let passed = log_ms.zip(self.log_ms).map_or(0, |(log_ms, last_ms)| log_ms.saturating_sub(last_ms).max(0));
        let time_ms = self.time_ms?.saturating_add(passed);
        Some(Clock { source: partition, next: self.next, time_ms, has_begun: false })
    }
}
