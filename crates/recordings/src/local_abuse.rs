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

use tollgate_abuse::{Abuse, AbuseRules, AbuseState, Folded};
use tollgate_core::decide::signal::{Batch, Clock, EventSignals, SubjectPartitions};
use tollgate_core::engine::stage::{Progress, Stage as _};
use tollgate_core::event::record::{Offset, Partition, Record};

/// How far the log goes on between two records of clocks, in milliseconds: as often as a worker writes them.
const TICK_MS: i64 = 1_000;

/// The abuse stage over all sources of one events topic.
#[derive(Debug)]
pub struct LocalAbuse {
    /// The signals topic.
    topic: String,
    /// The stage of each partition of the signals topic, with the next offset there.
    stages: Vec<(Abuse, Offset)>,
    /// Where subjects are on the signals topic.
    partitions: SubjectPartitions,
    /// What is to be written to each of its partitions.
    batches: Vec<Batch>,
    /// The partitions that the signals of an event go to.
    targets: Vec<Partition>,
    sources: BTreeMap<Partition, Source>,
    /// The time of the log, in milliseconds since the epoch: the greatest timestamp of a record so far.
    log_ms: Option<i64>,
    /// The time of the log when clocks were last written.
    ticked_ms: Option<i64>,
    value: Vec<u8>,
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

/// Is shown each record of the signals topic, and what follows from it.
pub trait Follower {
    /// Takes a record and its outcome.
    ///
    /// # Errors
    /// It cannot go on, and neither can the counting.
    fn follow(&mut self, record: &Record<'_>, folded: Folded) -> anyhow::Result<()>;
}

impl LocalAbuse {
    /// Returns a fleet of which nothing is known, with a signals topic of so many partitions.
    pub fn new(topic: &str, rules: &Arc<AbuseRules>, partitions: u32) -> Self {
        let count = partitions as usize;
        let stage = || (Abuse::new(Arc::clone(rules), AbuseState::default()), Offset(0));
        Self {
            topic: topic.to_owned(),
            stages: std::iter::repeat_with(stage).take(count).collect(),
            batches: std::iter::repeat_with(Batch::default).take(count).collect(),
            partitions: SubjectPartitions::new(partitions),
            targets: Vec::new(),
            sources: BTreeMap::new(),
            log_ms: None,
            ticked_ms: None,
            value: Vec::new(),
        }
    }

    /// Counts an event, which has to come behind all events of its partition so far: `place` is its partition and offset, `timestamp_ms` that
    /// of its record. What follows is shown before this returns.
    ///
    /// # Errors
    /// The follower cannot go on.
    pub fn event(
        &mut self,
        place: (Partition, Offset),
        timestamp_ms: Option<i64>,
        signals: &EventSignals,
        follower: &mut impl Follower,
    ) -> anyhow::Result<()> {
        let (partition, offset) = place;
        self.log_ms = self.log_ms.max(timestamp_ms.or(signals.time_ms()));
        let source = self.sources.entry(partition).or_insert(Source { next: offset, time_ms: None, log_ms: None });
        source.next = offset.next();
        source.time_ms = source.time_ms.max(signals.time_ms());
        source.log_ms = self.log_ms;
        let clock = source.clock(partition, self.log_ms);
        signals.add_to(place, &mut self.partitions, &mut self.batches, &mut self.targets);
        let targets = std::mem::take(&mut self.targets);
        targets.iter().try_for_each(|target| self.fold(*target, clock.as_slice(), follower))?;
        self.targets = targets;
        let is_due = |ticked_ms: i64| self.log_ms.is_some_and(|log_ms| log_ms.saturating_sub(ticked_ms) >= TICK_MS);
        if self.ticked_ms.is_none_or(is_due) { self.tick(follower) } else { Ok(()) }
    }

    /// Tells every partition the times of all sources, as workers do once a second. It is called at the end, so that what waits for the
    /// clock has seen the last event.
    ///
    /// # Errors
    /// The follower cannot go on.
    pub fn tick(&mut self, follower: &mut impl Follower) -> anyhow::Result<()> {
        self.ticked_ms = self.log_ms;
        let log_ms = self.log_ms;
        let clocks: Vec<_> = self.sources.iter().filter_map(|(partition, source)| source.clock(*partition, log_ms)).collect();
        if clocks.is_empty() {
            return Ok(());
        }
        let count = i32::try_from(self.stages.len())?;
        (0..count).try_for_each(|number| self.fold(Partition(number), &clocks, follower))
    }

    /// Writes the record of a partition and folds it.
    fn fold(&mut self, partition: Partition, clocks: &[Clock], follower: &mut impl Follower) -> anyhow::Result<()> {
        let Self { topic, stages, batches, log_ms, value, .. } = self;
        let at = usize::try_from(partition.0)?;
        let (Some((stage, next)), Some(batch)) = (stages.get_mut(at), batches.get_mut(at)) else { return Ok(()) };
        clocks.iter().for_each(|clock| batch.clock(*clock));
        let key = batch.key().map(|key| key.to_string());
        value.clear();
        batch.take(value);
        let key = key.as_deref().map(str::as_bytes);
        let record = Record { topic, partition, offset: *next, timestamp_ms: *log_ms, key, value: Some(value), headers: &[] };
        *next = next.next();
        let Progress::Done(folded) = stage.apply(&record, &mut ()) else { anyhow::bail!("the abuse stage waits for nobody") };
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
