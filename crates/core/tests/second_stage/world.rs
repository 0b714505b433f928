//! Runs workers with this stage, one after the other, over what outlives them: the state topic, the committed offset, and publications.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::engine::checkpoint::{Checkpoint, KeyedState, Restore, Restored};
use tollgate_core::engine::processor::{Applied, PartitionProcessor, TrackerError};
use tollgate_core::engine::stage::{Progress, Resumed, Stage};
use tollgate_core::event::decode::{Rejection, RejectionCode};
use tollgate_core::event::record::Offset;
use tollgate_fixtures::sample_stage::{Request, Signals, Subjects, key_of};

use super::truth::{PARTITION, Published, Snapshot, Truth, answer_to};

pub type Checked = Result<(), TestCaseError>;

const OWNER: &str = "signals/calls";

/// A step of a schedule.
#[derive(Debug, Clone)]
pub enum Step {
    Poll(usize),
    /// So many acknowledgements come, in any order.
    Acknowledge {
        from: usize,
        count: usize,
    },
    /// So many answers come, in any order.
    Answer {
        from: usize,
        count: usize,
    },
    Freeze,
    /// The frozen checkpoint is written from here on, if it may be.
    Begin,
    Settle {
        is_written: bool,
    },
    /// The worker dies. The checkpoint that it was writing may be there all the same, and its successor reads some records again.
    Crash {
        is_written: bool,
        reread: usize,
    },
}

pub fn schedule() -> impl Strategy<Value = Vec<Step>> {
    let some = || prop_oneof![4 => 1..5_usize, 1 => Just(usize::MAX)];
    let step = prop_oneof![
        8 => (1..12_usize).prop_map(Step::Poll),
        8 => (0..64_usize, some()).prop_map(|(from, count)| Step::Acknowledge { from, count }),
        8 => (0..64_usize, some()).prop_map(|(from, count)| Step::Answer { from, count }),
        6 => Just(Step::Freeze),
        6 => Just(Step::Begin),
        6 => proptest::bool::weighted(0.6).prop_map(|is_written| Step::Settle { is_written }),
        2 => (any::<bool>(), 0..10_usize).prop_map(|(is_written, reread)| Step::Crash { is_written, reread }),
    ];
    proptest::collection::vec(step, 1..120)
}

/// A worker.
struct Worker {
    processor: PartitionProcessor<Signals>,
    /// The offset of the restored state.
    restored_at: Offset,
    /// The next record to read.
    at: usize,
    /// Records with an acknowledgement that is due, one entry for each.
    unacknowledged: Vec<usize>,
    asked: Vec<(Offset, Request)>,
    /// Records that are read and not decided.
    undecided: Vec<usize>,
    frozen: Option<Offset>,
    writing: Option<Arc<Checkpoint>>,
    /// Whether a checkpoint was refused and none has been written since.
    was_refused: bool,
    written: Offset,
}

impl Worker {
    fn new(restored: Option<Restored<Subjects>>, at: usize) -> Self {
        let (processor, restored_at) = match restored {
            Some(Restored { next, state }) => (PartitionProcessor::restored(PARTITION, Signals::with_state(state), next), next),
            None => (PartitionProcessor::new(PARTITION, Signals::default()), Offset(0)),
        };
        let (unacknowledged, asked, undecided) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            processor,
            restored_at,
            at,
            unacknowledged,
            asked,
            undecided,
            frozen: None,
            writing: None,
            was_refused: false,
            written: restored_at,
        }
    }

    /// Returns the first record that waits, or of which an acknowledgement is due.
    fn first_unfinished(&self) -> usize {
        self.unacknowledged.iter().chain(&self.undecided).copied().min().unwrap_or(self.at)
    }
}

pub struct World<'t> {
    truth: &'t Truth,
    state: Vec<(String, Option<Vec<u8>>)>,
    committed: Option<Offset>,
    /// How many acknowledgements of each record have come, at whichever worker.
    acknowledged: Vec<u32>,
    /// The publication of each record.
    published: Vec<Option<Published>>,
    worker: Worker,
    pub seen: BTreeMap<&'static str, usize>,
}

impl<'t> World<'t> {
    pub fn new(truth: &'t Truth) -> Self {
        let records = truth.log.len();
        let (acknowledged, published) = (vec![0; records], vec![None; records]);
        Self { truth, state: Vec::new(), committed: None, acknowledged, published, worker: Worker::new(None, 0), seen: BTreeMap::new() }
    }

    fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    pub fn step(&mut self, step: &Step) -> Checked {
        match step {
            Step::Poll(count) => self.poll(*count)?,
            Step::Acknowledge { from, count } => self.acknowledge(*from, *count)?,
            Step::Answer { from, count } => self.answer(*from, *count)?,
            Step::Freeze => self.freeze()?,
            Step::Begin => self.begin()?,
            Step::Settle { is_written } => self.settle(*is_written)?,
            Step::Crash { is_written, reread } => self.crash(*is_written, *reread)?,
        }
        self.check()
    }

    fn poll(&mut self, count: usize) -> Checked {
        let truth = self.truth;
        for logged in truth.log.iter().skip(self.worker.at).take(count) {
            let (mut out, processor) = (String::new(), &mut self.worker.processor);
            let applied = if logged.is_readable {
                processor.apply(&logged.record(), &mut out)
            } else {
                processor.reject(&logged.record(), Rejection::new(RejectionCode::HeaderInvalid, "headers", "a header", "none"), &mut out)
            };
            let applied = applied.expect("the records come in order");
            let record = self.worker.at;
            self.worker.at += 1;
            prop_assert_eq!(applied == Applied::Redelivered, logged.offset < self.worker.restored_at, "at {}", logged.offset);
            match applied {
                Applied::Redelivered => self.see("redelivered"),
                Applied::Taken(Progress::Done(outcome)) => self.publish(record, Published { outcome, text: out })?,
                Applied::Taken(Progress::Asks(request)) => {
                    self.see("asked");
                    self.worker.asked.push((logged.offset, request));
                    self.worker.undecided.push(record);
                }
                Applied::Taken(Progress::Waits) => {
                    self.see("waited");
                    self.worker.undecided.push(record);
                    let early = self.worker.processor.acknowledge(logged.offset);
                    prop_assert_eq!(early, Err(TrackerError::NotOpen(logged.offset)));
                }
            }
        }
        Ok(())
    }

    /// Publishes the outcome of a record, which is the same at every other worker.
    fn publish(&mut self, record: usize, publication: Published) -> Checked {
        let offset = self.truth.log[record].offset;
        prop_assert_eq!(&publication, &self.truth.published[record], "at {}", offset);
        prop_assert_eq!(self.worker.processor.published(offset, publication.due()), Ok(()));
        self.worker.unacknowledged.extend((0..publication.due()).map(|_| record));
        if let Some(before) = self.published[record].replace(publication) {
            prop_assert_eq!(Some(&before), self.published[record].as_ref(), "{} was published as something else", offset);
            self.see("published again");
        }
        Ok(())
    }

    fn acknowledge(&mut self, from: usize, count: usize) -> Checked {
        for _ in 0..count.min(self.worker.unacknowledged.len()) {
            let record = self.worker.unacknowledged.swap_remove(from % self.worker.unacknowledged.len());
            self.acknowledged[record] += 1;
            prop_assert_eq!(self.worker.processor.acknowledge(self.truth.log[record].offset), Ok(()));
        }
        Ok(())
    }

    fn answer(&mut self, from: usize, count: usize) -> Checked {
        for _ in 0..count.min(self.worker.asked.len()) {
            let (offset, request) = self.worker.asked.swap_remove(from % self.worker.asked.len());
            self.worker.processor.answer(offset, answer_to(&request));
        }
        loop {
            let mut out = String::new();
            match self.worker.processor.resume(&mut out) {
                None => return Ok(()),
                Some(Resumed::Asks(offset, request)) => {
                    self.see(if request.round == 2 { "asked twice" } else { "asked later" });
                    self.worker.asked.push((offset, request));
                }
                Some(Resumed::Done { record, outcome, key, .. }) => {
                    let record = self.truth.index_of(record.with_borrowed(|record| record.offset));
                    let key_of_record = |record: usize| key_of(self.truth.log[record].user);
                    prop_assert_eq!(&key, &key_of_record(record));
                    let first = self.worker.undecided.iter().position(|other| key_of_record(*other) == key);
                    let first = first.map(|at| self.worker.undecided.remove(at));
                    prop_assert_eq!(first, Some(record), "it is not the first of its user");
                    self.publish(record, Published { outcome, text: out })?;
                }
            }
        }
    }

    fn freeze(&mut self) -> Checked {
        let worker = &mut self.worker;
        let is_idle = worker.frozen.is_none() && worker.writing.is_none();
        let is_behind = worker.processor.next() > worker.written;
        prop_assert_eq!((worker.processor.is_checkpointing(), worker.processor.is_behind()), (!is_idle, is_behind));
        worker.processor.freeze(OWNER);
        if is_idle && is_behind {
            worker.frozen = Some(worker.processor.next());
            if !self.worker.undecided.is_empty() {
                self.see("frozen while waiting");
            }
        }
        Ok(())
    }

    /// Begins a checkpoint, which is handed out exactly if everything before it is decided, published and acknowledged.
    fn begin(&mut self) -> Checked {
        let worker = &mut self.worker;
        let due = worker.frozen.filter(|next| self.truth.index_of(*next) <= worker.first_unfinished());
        let checkpoint = worker.processor.take_checkpoint();
        prop_assert_eq!(checkpoint.as_ref().map(|checkpoint| checkpoint.next), due);
        if checkpoint.is_some() {
            (worker.frozen, worker.writing) = (None, checkpoint);
            if !self.worker.undecided.is_empty() {
                self.see("handed out while waiting");
            }
        }
        Ok(())
    }

    fn settle(&mut self, is_written: bool) -> Checked {
        let Some(checkpoint) = self.worker.writing.take() else { return Ok(()) };
        if is_written {
            self.commit(&checkpoint)?;
            self.worker.written = checkpoint.next;
            self.worker.processor.checkpoint_written();
            self.worker.was_refused = false;
        } else {
            self.see("refused");
            self.worker.processor.checkpoint_refused();
            self.worker.was_refused = true;
            prop_assert!(self.worker.processor.is_behind(), "what was refused is still to be written");
        }
        Ok(())
    }

    /// Writes a checkpoint and commits its offset, both or neither.
    fn commit(&mut self, checkpoint: &Checkpoint) -> Checked {
        prop_assert!(self.committed < Some(checkpoint.next), "{} after {:?}", checkpoint.next, self.committed);
        let before = self.truth.index_of(checkpoint.next);
        let missing = (0..before).find(|record| self.acknowledged[*record] < self.truth.published[*record].due());
        prop_assert_eq!(missing, None, "committed {} without what was to be published", checkpoint.next);
        let mut written = BTreeSet::new();
        for record in &checkpoint.records {
            prop_assert!(written.insert(&record.key), "{} is written twice", record.key);
            let last = self.state.iter().rev().find(|(key, _)| *key == record.key).and_then(|(_, value)| value.as_ref());
            // After a refusal the checkpoints before it are written once more.
            let is_news = record.value.is_none() || record.value.as_ref() != last || self.worker.was_refused;
            prop_assert!(is_news, "{} is written though it has not changed", record.key);
            self.see(if record.value.is_some() { "value" } else { "tombstone" });
            self.state.push((record.key.clone(), record.value.clone()));
        }
        self.committed = Some(checkpoint.next);
        self.restore().map(drop)
    }

    /// Restores the state, and checks that it is as of exactly the committed offset.
    fn restore(&self) -> Result<Option<Restored<Subjects>>, TestCaseError> {
        let mut restore = Restore::<Subjects>::default();
        for ((key, value), offset) in self.state.iter().zip(0..) {
            restore.take(Offset(offset), Some(key.as_bytes()), value.as_deref());
        }
        let restored = restore.finish(OWNER, ()).map_err(|(_, error)| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(restored.as_ref().map(|restored| restored.next), self.committed);
        if let Some(Restored { next, state }) = &restored {
            prop_assert_eq!(Snapshot::of(state.clock(), state), self.truth.snapshot(*next), "what was restored, and what it should be");
        }
        Ok(restored)
    }

    fn crash(&mut self, is_written: bool, reread: usize) -> Checked {
        self.see("crash");
        if let Some(checkpoint) = self.worker.writing.take().filter(|_| is_written) {
            self.see("unknown outcome, written");
            self.commit(&checkpoint)?;
        }
        let at = self.truth.index_of(self.committed.unwrap_or(Offset(0))).saturating_sub(reread);
        self.worker = Worker::new(self.restore()?, at);
        Ok(())
    }

    /// Checks what holds after every step.
    fn check(&self) -> Checked {
        let (truth, worker, processor) = (self.truth, &self.worker, &self.worker.processor);
        prop_assert_eq!(processor.stage().waiting().records, worker.undecided.len());
        // Nothing is committable beyond what is not acknowledged, and everything before it is.
        let unfinished = worker.first_unfinished();
        let first_new = truth.index_of(worker.restored_at);
        let committable = (first_new..unfinished).last().map(|record| truth.log[record].offset.next());
        prop_assert_eq!(processor.committable(), committable);
        prop_assert_eq!(processor.in_flight(), worker.at - unfinished);
        let waits = |key: &str| worker.undecided.iter().any(|record| *key_of(truth.log[*record].user) == *key);
        let state = processor.stage().state();
        let expected = truth.snapshot(processor.next()).without(waits);
        prop_assert_eq!(Snapshot::of(state.clock(), state).without(waits), expected, "what the users are of whom nothing waits");
        Ok(())
    }

    /// Reads the log to its end and writes it down; every record has come to its one end.
    pub fn conclude(&mut self) -> Checked {
        let all = usize::MAX;
        self.step(&Step::Poll(all))?;
        while !self.worker.undecided.is_empty() {
            self.step(&Step::Answer { from: 0, count: all })?;
        }
        self.step(&Step::Acknowledge { from: 0, count: all })?;
        for step in [Step::Begin, Step::Settle { is_written: true }, Step::Freeze, Step::Begin, Step::Settle { is_written: true }] {
            self.step(&step)?;
        }
        prop_assert!(!self.worker.processor.is_checkpointing() && !self.worker.processor.is_behind());
        prop_assert_eq!(self.committed, self.truth.log.last().map(|logged| logged.offset.next()));
        prop_assert_eq!(self.published.iter().position(Option::is_none), None, "a record was never published");
        Ok(())
    }
}
