//! A worker with its partition processor; after every step it is compared with the truth.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::decide::deciding::Deciding;
use tollgate_core::decide::policy::Policy;
use tollgate_core::engine::checkpoint::Checkpoint;
use tollgate_core::engine::processor::{Applied, PartitionProcessor, TrackerError};
use tollgate_core::engine::stage::{Progress, Resumed, Stage as _, Waiting};
use tollgate_core::event::record::{Departures, Offset};

use super::deciding::{Output, answer_to};
use super::truth::{Outcome, Truth, due, of_processor, silent};

pub type Checked = Result<(), TestCaseError>;

pub const OWNER: &str = "tollgate";

/// A publication that was sent: the record, and the number among its publications.
type Publication = (usize, u32);

/// The world that all workers share: the log with the truth about it, and the decisions log.
pub struct Outside<'t> {
    pub policy: &'t Arc<Policy>,
    pub truth: &'t Truth,
    /// Which publications are in the decisions log for certain.
    pub landed: Vec<Vec<bool>>,
    /// Records that a worker has decided on.
    pub ended: Vec<bool>,
    /// Records that a worker has asked about.
    asked: Vec<bool>,
    /// What came about, for the test that checks that everything does in some schedule.
    pub seen: BTreeMap<&'static str, usize>,
}

impl<'t> Outside<'t> {
    pub fn new(policy: &'t Arc<Policy>, truth: &'t Truth) -> Self {
        let landed = truth.outcomes.iter().map(|outcome| vec![false; usize::try_from(due(outcome)).unwrap()]).collect();
        let (ended, asked) = (vec![false; truth.log.len()], vec![false; truth.log.len()]);
        Self { policy, truth, landed, ended, asked, seen: BTreeMap::new() }
    }

    pub fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    pub fn land(&mut self, (record, which): Publication) {
        self.landed[record][usize::try_from(which).unwrap()] = true;
    }
}

/// A worker with its partition processor.
pub struct Worker {
    pub processor: PartitionProcessor<Deciding>,
    /// The offset of the restored state: the records before it come out as known.
    restored_at: Offset,
    /// The offset of its state.
    pub next: Offset,
    /// The offset of the last checkpoint that it knows to be written.
    pub written: Offset,
    /// The first record that it reads.
    begun_at: usize,
    /// The next record to read.
    at: usize,
    pub unacknowledged: Vec<Publication>,
    /// The records of each key that wait, the one that is asked about first.
    queues: BTreeMap<String, VecDeque<usize>>,
    /// Records that are asked about and not answered.
    asking: Vec<usize>,
    /// How many questions there have been about each record.
    questions: BTreeMap<usize, usize>,
    /// The offset of the checkpoint that was frozen and not handed out.
    frozen: Option<Offset>,
    pub writing: Option<Arc<Checkpoint>>,
    /// Whether a checkpoint was refused and none has been written since.
    pub was_refused: bool,
    out: Output,
}

impl Worker {
    pub fn new(processor: PartitionProcessor<Deciding>, restored_at: Offset, at: usize) -> Self {
        Self {
            processor,
            restored_at,
            next: restored_at,
            written: restored_at,
            begun_at: at,
            at,
            unacknowledged: Vec::new(),
            queues: BTreeMap::new(),
            asking: Vec::new(),
            questions: BTreeMap::new(),
            frozen: None,
            writing: None,
            was_refused: false,
            out: Output::default(),
        }
    }

    /// Returns whether any of its events waits.
    pub fn waits(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Reads records. What becomes of them is decided at once, unless their thread waits or a server has to be asked.
    pub fn poll(&mut self, outside: &mut Outside<'_>, count: usize) -> Checked {
        let truth = outside.truth;
        for logged in truth.log.iter().skip(self.at).take(count) {
            let outcome = logged.apply(&mut self.processor, &mut self.out);
            let record = self.at;
            self.at += 1;
            if logged.offset < self.restored_at {
                prop_assert_eq!(outcome, silent(Applied::Redelivered), "at {}", logged.offset);
                prop_assert_eq!((self.processor.committable(), self.processor.in_flight()), (None, 0), "at {}", logged.offset);
                continue;
            }
            self.next = logged.offset.next();
            prop_assert_eq!(self.processor.next(), self.next);
            let queue = truth.keys[record].as_ref().and_then(|id| self.queues.get_mut(id));
            let not_open = Err(TrackerError::NotOpen(logged.offset));
            if let Some(queue) = queue {
                prop_assert_eq!(outcome, silent(Applied::Taken(Progress::Waits)), "at {}", logged.offset);
                queue.push_back(record);
                outside.see("waited behind");
                prop_assert_eq!(self.processor.acknowledge(logged.offset), not_open);
            } else if let Some(question) = truth.requests[record].first() {
                prop_assert_eq!(outcome, silent(Applied::Taken(Progress::Asks(question.clone()))), "at {}", logged.offset);
                let key = truth.keys[record].clone().unwrap();
                self.queues.insert(key, VecDeque::from([record]));
                self.ask(outside, record);
                prop_assert_eq!(self.processor.acknowledge(logged.offset), not_open);
            } else {
                let due = self.publish(outside, record, &outcome)?;
                prop_assert_eq!(self.processor.published(logged.offset, due), Ok(()));
                prop_assert_eq!(self.processor.published(logged.offset, due), Err(TrackerError::NotUndecided(logged.offset)));
            }
        }
        Ok(())
    }

    fn ask(&mut self, outside: &mut Outside<'_>, record: usize) {
        let questions = self.questions.entry(record).or_default();
        *questions += 1;
        outside.see(if *questions == 1 { "asked" } else { "second question" });
        if *questions == 1 && std::mem::replace(&mut outside.asked[record], true) {
            outside.see("asked by another worker before");
        }
        self.asking.push(record);
    }

    /// Publishes what a record became: the bytes that every other worker publishes for it. Returns how many publications there are.
    fn publish(&mut self, outside: &mut Outside<'_>, record: usize, outcome: &Outcome) -> Result<u32, TestCaseError> {
        let truth = outside.truth;
        prop_assert_eq!(outcome, &truth.outcomes[record], "at {}", truth.log[record].offset);
        outside.ended[record] = true;
        self.unacknowledged.extend((0..due(outcome)).map(|which| (record, which)));
        Ok(due(outcome))
    }

    /// Acknowledges some publications, from any of them on and around.
    pub fn acknowledge(&mut self, outside: &mut Outside<'_>, from: usize, count: usize) -> Checked {
        for _ in 0..count.min(self.unacknowledged.len()) {
            let publication = self.unacknowledged.swap_remove(from % self.unacknowledged.len());
            outside.land(publication);
            prop_assert_eq!(self.processor.acknowledge(outside.truth.log[publication.0].offset), Ok(()));
        }
        Ok(())
    }

    /// Gives some answers, from any question on and around, and goes on as far as they go.
    pub fn answer(&mut self, outside: &mut Outside<'_>, from: usize, count: usize) -> Checked {
        let truth = outside.truth;
        let mut answered = BTreeSet::new();
        for _ in 0..count.min(self.asking.len()) {
            let record = self.asking.swap_remove(from % self.asking.len());
            if self.asking.iter().any(|other| *other < record) {
                outside.see("answered out of order");
            }
            let question = &truth.requests[record][self.questions[&record] - 1];
            self.processor.answer(truth.log[record].offset, answer_to(question));
            answered.insert(record);
        }
        self.go_on(outside)?;
        // A record that nobody asks about any more gets no further answer.
        answered.iter().filter(|record| !self.asking.contains(record)).for_each(|record| {
            let again = answer_to(&truth.requests[*record][0]);
            self.processor.answer(truth.log[*record].offset, again);
        });
        prop_assert!(self.processor.resume(&mut self.out).is_none());
        Ok(())
    }

    fn go_on(&mut self, outside: &mut Outside<'_>) -> Checked {
        let truth = outside.truth;
        loop {
            self.out = Output::default();
            let Some(resumed) = self.processor.resume(&mut self.out) else { break };
            let offset = match &resumed {
                Resumed::Asks(offset, _) => *offset,
                Resumed::Done { record: owned, .. } => owned.with_borrowed(|record| record.offset),
            };
            let record = truth.index_of(offset);
            prop_assert_eq!(truth.log[record].offset, offset);
            let key = truth.keys[record].as_ref().unwrap();
            prop_assert_eq!(self.queues.get(key).and_then(VecDeque::front), Some(&record), "{} is not the first", offset);
            prop_assert!(!self.asking.contains(&record), "{} is not answered", offset);
            let question = truth.requests[record].get(self.questions.get(&record).copied().unwrap_or_default());
            match resumed {
                Resumed::Asks(_, found) => {
                    prop_assert_eq!(Some(&found), question, "at {}", offset);
                    self.ask(outside, record);
                }
                Resumed::Done { record: owned, outcome, key: found, next } => {
                    prop_assert_eq!(question, None, "{} was decided without an answer", offset);
                    prop_assert!(owned.with_borrowed(|record| record.value == truth.log[truth.index_of(record.offset)].record().value));
                    let outcome = (Applied::Taken(Progress::Done(outcome)), self.out.clone());
                    let due = self.publish(outside, record, &outcome)?;
                    prop_assert_eq!(self.processor.published(offset, due), Ok(()));
                    prop_assert_eq!(self.processor.published(offset, due), Err(TrackerError::NotUndecided(offset)));
                    let queue = self.queues.get_mut(key).unwrap();
                    queue.pop_front();
                    let behind = queue.front().map(|record| truth.log[*record].offset);
                    prop_assert_eq!((&*found, next), (key.as_str(), behind), "what waits behind {}", offset);
                    if queue.is_empty() {
                        self.queues.remove(key);
                    }
                }
            }
        }
        let stuck = self.queues.values().filter_map(VecDeque::front).find(|record| !self.asking.contains(record));
        prop_assert_eq!(stuck, None, "a record was answered and not decided");
        Ok(())
    }

    pub fn freeze(&mut self, outside: &mut Outside<'_>) -> Checked {
        let was_checkpointing = self.processor.is_checkpointing();
        prop_assert_eq!(was_checkpointing, self.frozen.is_some() || self.writing.is_some());
        prop_assert_eq!(self.processor.is_behind(), self.next > self.written);
        self.processor.freeze(OWNER);
        if !was_checkpointing && self.next > self.written {
            self.frozen = Some(self.next);
            if self.waits() {
                outside.see("frozen while waiting");
            }
        }
        prop_assert_eq!(self.processor.is_checkpointing(), was_checkpointing || self.frozen.is_some());
        Ok(())
    }

    /// Takes the frozen checkpoint to write it, exactly if it may be written: what is in it was decided, published and acknowledged.
    pub fn begin(&mut self, outside: &mut Outside<'_>) -> Checked {
        let first = self.first_unfinished().map(|record| outside.truth.log[record].offset);
        let due = self.frozen.filter(|next| first.is_none_or(|first| *next <= first));
        let checkpoint = self.processor.take_checkpoint();
        prop_assert_eq!(checkpoint.as_ref().map(|checkpoint| checkpoint.next), due, "{:?} is not finished", first);
        if let Some(checkpoint) = checkpoint {
            self.frozen = None;
            prop_assert!(self.writing.replace(checkpoint).is_none(), "it was handed out before");
            if self.waits() {
                outside.see("handed out while waiting");
            }
        }
        Ok(())
    }

    /// Hears of a checkpoint that was not handed out, which changes nothing.
    pub fn hear_of_nothing(&mut self) -> Checked {
        let before = (self.processor.is_checkpointing(), self.processor.is_behind());
        self.processor.checkpoint_written();
        self.processor.checkpoint_refused();
        prop_assert_eq!((self.processor.is_checkpointing(), self.processor.is_behind()), before);
        Ok(())
    }

    /// Returns the first record that waits, or has a publication that is not acknowledged.
    fn first_unfinished(&self) -> Option<usize> {
        let waiting = self.queues.values().filter_map(VecDeque::front).copied();
        self.unacknowledged.iter().map(|(record, _)| *record).chain(waiting).min()
    }

    /// Checks what holds after every step: what waits, what is committable, and that nothing goes where there is room for all.
    pub fn check(&self, truth: &Truth) -> Checked {
        let waiting = || self.queues.values().flatten();
        let size = Waiting { records: waiting().count(), bytes: waiting().map(|record| truth.log[*record].bytes()).sum() };
        prop_assert_eq!(self.processor.stage().waiting(), size);
        let unfinished = self.first_unfinished().unwrap_or(self.at);
        // A record that comes again is not tracked: the offset behind it was committed with the state.
        let first_new = self.begun_at.max(truth.index_of(self.restored_at));
        let committable = (first_new..unfinished).last().map(|record| truth.log[record].offset.next());
        prop_assert_eq!(self.processor.committable(), committable);
        prop_assert_eq!(self.processor.in_flight(), self.at - unfinished);
        if truth.departures == Departures::default() {
            prop_assert_eq!(self.processor.stage().state().departures(), truth.departures);
        }
        Ok(())
    }

    /// Checks that the entries that do not wait are as they would be if every answer had come at once.
    pub fn check_state(&self, truth: &Truth) -> Checked {
        let waits = |key: &str| self.queues.contains_key(key);
        let expected = truth.snapshot(self.next).clone().without(waits);
        prop_assert_eq!(of_processor(&self.processor).without(waits), expected, "what the entries are that do not wait");
        Ok(())
    }
}
