//! Signals on their way to the signals topic: what deciding saw of the subjects of an event, gathered by target partition.
//!
//! ```text
//! event's signals ─▶ source: in the order of offsets ─▶ batch of the target partition ─round─▶ one record, which its events wait for
//!                         └─ times ─▶ clocks, once a second, to every target partition
//! ```
//!
//! The abuse stage skips what is at or below the last offset that it has applied of a source, so that signals of a source have to be in the
//! order of offsets on each target partition, and all signals of an event for a target in one record. An event that waits for a policy
//! server therefore holds back the signals of later offsets of its partition; their verdicts do not wait.
//!
//! | module | what |
//! |---|---|
//! | `source` | a partition of the events topic: what is held back, and its time |
//! | `clocks` | the times of all sources of a member, idle ones included |
//! | `counts` | what is written, and what is left out |
//! | `pace` | for how long signals are gathered |
//! | `targets` | the records in the making, by partition of the signals topic |

mod clocks;
mod counts;
mod pace;
mod source;
mod targets;

use std::time::Instant;

use rustc_hash::FxHashMap;
use tollgate_core::decide::signal::EventSignals;
use tollgate_core::event::record::{Offset, Partition};

use crate::host_time::now_ms;
use crate::metrics::Metrics;
use crate::outbox::{LatePublications, Publications};
use tollgate_config::settings::KafkaSettings;

use clocks::SettledTicks;
use counts::SignalCounts;
use pace::Decisions;
use source::{HeldRecord, Source};
use targets::Targets;

/// The largest record of signals, in bytes, whatever the topic takes.
const RECORD_BYTES_MAX: u64 = 256 << 10;
/// The share of what the topic takes that a record fills before it is closed: an event's signals are added whole.
const RECORD_SHARE: u64 = 4;

/// The signals topic, as deciding writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalTopic {
    /// Its name.
    pub name: String,
    /// How many partitions it has.
    pub partitions: u32,
    /// How many partitions the events topic has, each of which is a source.
    pub sources: u32,
    /// From how many bytes on a record is closed.
    pub record_bytes: usize,
}

impl SignalTopic {
    /// Returns the topic, with the partitions that it and the events topic have, and the largest batch that it takes, in bytes.
    #[must_use]
    pub fn of(kafka: &KafkaSettings, [partitions, sources]: [u32; 2], batch_bytes_max: u64) -> Self {
        let bytes = (batch_bytes_max / RECORD_SHARE).min(RECORD_BYTES_MAX);
        let record_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self { name: kafka.topics.signals.clone(), partitions, sources, record_bytes }
    }
}

/// The signals of one member.
#[derive(Debug)]
pub(super) struct Signals {
    sources: FxHashMap<Partition, Source>,
    targets: Targets,
    settled_ticks: SettledTicks,
    counts: SignalCounts,
    decisions: Decisions,
}

impl Signals {
    pub(super) fn new(topic: SignalTopic, metrics: &Metrics) -> Self {
        let (targets, counts) = (Targets::new(topic), SignalCounts::new(metrics));
        Self { sources: FxHashMap::default(), targets, settled_ticks: SettledTicks::default(), counts, decisions: Decisions::default() }
    }

    /// Begins a partition. `new_end` is where it ended if nothing is known of it.
    pub(super) fn partition_started(&mut self, partition: Partition, new_end: Option<Offset>) {
        self.sources.insert(partition, Source::new(new_end));
    }

    /// Drops what belongs to a partition, which its next owner writes.
    pub(super) fn forget(&mut self, partition: Partition) {
        self.sources.remove(&partition);
        // If this member begins it again, its offsets come again, and are told apart by record.
        self.targets.close_all();
    }

    /// Notes that a record is not decided yet.
    pub(super) fn undecided(&mut self, partition: Partition, offset: Offset) {
        if let Some(source) = self.sources.get_mut(&partition) {
            source.undecided(offset);
        }
    }

    /// Takes the signals of a decided record, which then waits for the records that hold them, or is behind one that does.
    pub(super) fn decided(&mut self, signals: &EventSignals, publications: &mut Publications<'_>) {
        let (waiter, time_ms) = (publications.waiter(), signals.time_ms());
        self.decisions.note(time_ms);
        let Some(source) = self.sources.get_mut(&waiter.partition) else { return };
        if source.decided(waiter.offset) {
            if let Some(clock) = source.release(waiter, time_ms) {
                self.targets.began(clock);
            }
            if !signals.is_empty() {
                self.counts.count(signals);
                publications.await_later(self.targets.add(waiter, signals));
            }
        } else {
            let signals = (!signals.is_empty()).then(|| {
                self.counts.count(signals);
                publications.await_later(self.targets.count(signals));
                signals.clone()
            });
            source.hold_back(HeldRecord { waiter, time_ms, signals });
            while let Some(HeldRecord { waiter, time_ms, signals }) = source.next_held() {
                if let Some(clock) = source.release(waiter, time_ms) {
                    self.targets.began(clock);
                }
                signals.iter().for_each(|signals| self.targets.add_counted(waiter, signals));
            }
        }
        self.counts.left_out(signals);
    }

    /// Publishes what is due of what was gathered.
    pub(super) fn between_rounds(&mut self, late: &mut LatePublications<'_>) {
        let now = Instant::now();
        let pace = self.decisions.end_round(now, now_ms);
        self.targets.send(now, pace, late);
        self.settled_ticks.note(late.is_settled());
    }

    /// Returns how many records hold signals that are not published yet; those that are gathered count as one, so that rounds go on.
    pub(super) fn held(&self) -> usize {
        self.sources.values().map(Source::held).sum::<usize>() + usize::from(self.targets.is_gathering())
    }

    /// Adds the times of all sources to the next records.
    pub(super) fn tick(&mut self, now: Instant) {
        let has_settled = self.settled_ticks.tick();
        clocks::report_clocks(&mut self.sources, has_settled, now, |report| self.targets.tell(report));
    }

    /// Hands over what was counted.
    pub(super) fn flush(&mut self) {
        self.counts.flush();
    }

    /// Notes how many records of a partition are known of and not taken.
    pub(super) fn lag(&mut self, partition: Partition, records: i64) {
        if let Some(source) = self.sources.get_mut(&partition) {
            source.is_caught_up = records == 0;
        }
    }
}
