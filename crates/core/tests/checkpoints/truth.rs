//! A log of one partition, and what becomes of it where nothing goes wrong: a processor folds it that is never interrupted.

use std::sync::Arc;

use tollgate_core::decide::deciding::{self, Deciding};
use tollgate_core::decide::guardrail::Question;
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::{StoredThread, ThreadStore};
use tollgate_core::engine::checkpoint::{KeyedState as _, Restored};
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::{Progress, Resumed, Stage as _};
use tollgate_core::event::decode::{Rejection, RejectionCode};
use tollgate_core::event::record::{Departures, Offset, OwnedRecord, Partition, Record, StreamClock};

use super::deciding::{Output, answer_to, check_servers, due_of, thread_of};

pub const PARTITION: Partition = Partition(0);

/// One record of the log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Logged {
    pub offset: Offset,
    pub value: Option<String>,
    /// Whether its reader cannot take it apart.
    pub is_unreadable: bool,
}

impl Logged {
    pub fn record(&self) -> Record<'_> {
        let (offset, value) = (self.offset, self.value.as_deref().map(str::as_bytes));
        Record { topic: "agent.events", partition: PARTITION, offset, timestamp_ms: None, key: None, value, headers: &[] }
    }

    /// Returns the bytes that it takes while it waits, about.
    pub fn bytes(&self) -> usize {
        OwnedRecord::of(&self.record()).bytes()
    }

    /// Applies the record. Its outcome holds nothing that a record before it left in `out`.
    pub fn apply(&self, processor: &mut PartitionProcessor<Deciding>, out: &mut Output) -> Outcome {
        *out = Output::default();
        let applied = if self.is_unreadable {
            processor.reject(&self.record(), Rejection::new(RejectionCode::HeaderInvalid, "headers", "a header", "none"), out)
        } else {
            processor.apply(&self.record(), out)
        };
        (applied.expect("the records come in order"), out.clone())
    }
}

/// The outcome of a record with what is published of it: the same for every processor that applies the record.
pub type Outcome = (Applied<deciding::Outcome, Question>, Output);

/// Returns how many publications an outcome waits for.
pub fn due((applied, _): &Outcome) -> u32 {
    match applied {
        Applied::Taken(Progress::Done(outcome)) => due_of(outcome),
        Applied::Taken(Progress::Asks(_) | Progress::Waits) | Applied::Redelivered => 0,
    }
}

/// Returns an outcome of which nothing is published.
pub fn silent(applied: Applied<deciding::Outcome, Question>) -> Outcome {
    (applied, Output::default())
}

/// The whole state of a partition. The entries stand in the order of touch.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub next: Offset,
    clock: StreamClock,
    entries: Vec<(String, StoredThread)>,
}

fn snapshot(next: Offset, state: &ThreadStore) -> Snapshot {
    let mut entries: Vec<_> = state.iter().map(|(id, stored)| (id.to_string(), stored.clone())).collect();
    entries.sort_by_key(|(_, entry)| ThreadStore::applied(entry));
    Snapshot { next, clock: state.clock(), entries }
}

pub fn of_processor(processor: &PartitionProcessor<Deciding>) -> Snapshot {
    snapshot(processor.next(), processor.stage().state())
}

pub fn of_restored(restored: &Restored<ThreadStore>) -> Snapshot {
    snapshot(restored.next, &restored.state)
}

impl Snapshot {
    /// Leaves some entries out.
    pub fn without(mut self, is_left_out: impl Fn(&str) -> bool) -> Self {
        self.entries.retain(|(key, _)| !is_left_out(key));
        self
    }
}

/// The log, and its outcomes where nothing goes wrong.
pub struct Truth {
    pub log: Vec<Logged>,
    /// The outcomes by record.
    pub outcomes: Vec<Outcome>,
    /// The requests about each record, in order.
    pub requests: Vec<Vec<Question>>,
    /// Each record's key, if it has one.
    pub keys: Vec<Option<String>>,
    /// The state before each record, and behind the last one.
    snapshots: Vec<Snapshot>,
    pub departures: Departures,
}

impl Truth {
    /// Folds a log with one processor from its beginning to its end, which gets every answer at once.
    pub fn of(policy: &Arc<Policy>, log: Vec<Logged>) -> Self {
        let (mut processor, mut out) = (PartitionProcessor::new(PARTITION, Deciding::new(Arc::clone(policy))), Output::default());
        let mut snapshots = vec![of_processor(&processor)];
        let (mut outcomes, mut requests) = (Vec::new(), Vec::new());
        for logged in &log {
            let mut asked = Vec::new();
            let mut outcome = logged.apply(&mut processor, &mut out);
            while let Applied::Taken(Progress::Asks(request)) = outcome.0 {
                processor.answer(logged.offset, answer_to(&request));
                asked.push(request);
                out = Output::default();
                let progress = match processor.resume(&mut out).expect("what is answered goes on") {
                    Resumed::Asks(_, request) => Progress::Asks(request),
                    Resumed::Done { outcome, .. } => Progress::Done(outcome),
                };
                outcome = (Applied::Taken(progress), out.clone());
            }
            outcomes.push(outcome);
            requests.push(asked);
            snapshots.push(of_processor(&processor));
        }
        let keys = log.iter().map(|logged| thread_of(policy, logged)).collect();
        let truth = Self { log, outcomes, requests, keys, snapshots, departures: processor.stage().state().departures() };
        check_servers(&truth, policy);
        truth
    }

    /// Returns the first record at an offset or behind it: a committed offset may stand in a gap.
    pub fn index_of(&self, offset: Offset) -> usize {
        self.log.partition_point(|logged| logged.offset < offset)
    }

    /// Returns the state as of an offset.
    pub fn snapshot(&self, next: Offset) -> &Snapshot {
        &self.snapshots[self.index_of(next)]
    }

    pub fn last_snapshot(&self) -> &Snapshot {
        self.snapshots.last().unwrap()
    }
}
