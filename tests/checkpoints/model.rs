//! A model of what surrounds a lane: the group's offset, the decisions log, a compacted state topic that is written in transactions,
//! the worker that owns the partition, and workers that only believe that they do.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tollgate::checkpoint::{Checkpoint, Restore, Restored};
use tollgate::decode::Offset;
use tollgate::lane::{Applied, Lane, VerdictBuffer};
use tollgate::policy::Policy;

use crate::log::{Outcome, PARTITION, Snapshot, Truth};
use crate::schedule::{Act, Step};

pub type Checked = Result<(), TestCaseError>;

const OWNER: &str = "tollgate";
/// Workers that were fenced and do not know it yet; with one more, the first of them finds out.
const ZOMBIES_MAX: usize = 2;

/// A publication that was sent: of which record, and which one of its publications.
type Publication = (usize, u32);

/// The decisions log, as far as it matters: which publications are in it for certain.
pub struct Decisions {
    landed: Vec<Vec<bool>>,
    /// Records that a worker has applied.
    ended: Vec<bool>,
}

/// A worker with its lane.
struct Worker {
    lane: Lane,
    /// What its state was restored as of: the records before it come out as known.
    restored_at: Offset,
    /// What its state is as of.
    next: Offset,
    /// What the last checkpoint that it knows to be written is as of.
    written: Offset,
    /// The next record to read.
    at: usize,
    unacknowledged: Vec<Publication>,
    writing: Option<Arc<Checkpoint>>,
    out: VerdictBuffer,
}

/// See the module.
pub struct World<'t> {
    policy: &'t Policy,
    truth: &'t Truth,
    decisions: Decisions,
    /// The state topic: offset, key, value.
    state: Vec<(Offset, String, Option<Vec<u8>>)>,
    state_end: Offset,
    committed: Option<Offset>,
    owner: Worker,
    zombies: Vec<Worker>,
    /// What came about, for the test that tells whether the schedules are worth following.
    pub seen: BTreeMap<&'static str, usize>,
}

impl Decisions {
    fn acknowledge(&mut self, (record, which): Publication) {
        self.landed[record][usize::try_from(which).unwrap()] = true;
    }
}

impl Worker {
    fn new(lane: Lane, restored_at: Offset, at: usize) -> Self {
        let (next, written) = (restored_at, restored_at);
        Self { lane, restored_at, next, written, at, unacknowledged: Vec::new(), writing: None, out: VerdictBuffer::default() }
    }

    /// Reads records, and publishes what they become: the bytes that every other worker publishes for them.
    fn poll(&mut self, policy: &Policy, truth: &Truth, decisions: &mut Decisions, count: usize) -> Checked {
        for logged in truth.log.iter().skip(self.at).take(count) {
            let outcome = Outcome::of(&mut self.lane, policy, logged, &mut self.out);
            let due = if logged.offset < self.restored_at {
                prop_assert_eq!(&outcome.applied, &Applied::Redelivered, "at {}", logged.offset);
                prop_assert!(outcome.json.is_empty());
                0
            } else {
                prop_assert_eq!(&outcome, &truth.outcomes[self.at], "at {}", logged.offset);
                decisions.ended[self.at] = true;
                self.next = logged.offset.next();
                outcome.due()
            };
            prop_assert_eq!(self.lane.ledger.open(logged.offset, due), Ok(()));
            self.unacknowledged.extend((0..due).map(|which| (self.at, which)));
            self.at += 1;
            prop_assert_eq!(self.lane.next(), self.next);
        }
        Ok(())
    }

    /// Acknowledges some publications, from any of them on and around.
    fn acknowledge(&mut self, truth: &Truth, decisions: &mut Decisions, from: usize, count: usize) -> Checked {
        for _ in 0..count.min(self.unacknowledged.len()) {
            let publication = self.unacknowledged.swap_remove(from % self.unacknowledged.len());
            decisions.acknowledge(publication);
            prop_assert_eq!(self.lane.ledger.acknowledge(truth.log[publication.0].offset), Ok(()));
        }
        Ok(())
    }

    fn freeze(&mut self) -> Checked {
        let was_checkpointing = self.lane.is_checkpointing();
        prop_assert_eq!(self.lane.is_behind(), self.next > self.written);
        self.lane.freeze(OWNER);
        prop_assert_eq!(self.lane.is_checkpointing(), was_checkpointing || self.next > self.written);
        Ok(())
    }

    /// Takes the frozen checkpoint to write it, if it may be written: what is in it was published and acknowledged.
    fn begin(&mut self, truth: &Truth) -> Checked {
        if let Some(checkpoint) = self.lane.take_checkpoint() {
            let first = self.unacknowledged.iter().map(|(record, _)| truth.log[*record].offset).min();
            prop_assert!(first.is_none_or(|first| checkpoint.next <= first), "{} ahead of {:?}", checkpoint.next, first);
            prop_assert!(self.writing.replace(checkpoint).is_none(), "it was handed out before");
        }
        Ok(())
    }
}

impl<'t> World<'t> {
    pub fn new(policy: &'t Policy, truth: &'t Truth) -> Self {
        let landed = truth.outcomes.iter().map(|outcome| vec![false; usize::try_from(outcome.due()).unwrap()]).collect();
        Self {
            policy,
            truth,
            decisions: Decisions { landed, ended: vec![false; truth.log.len()] },
            state: Vec::new(),
            state_end: Offset(0),
            committed: None,
            owner: Worker::new(Lane::new(PARTITION, policy), Offset(0), 0),
            zombies: Vec::new(),
            seen: BTreeMap::new(),
        }
    }

    pub fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    pub fn step(&mut self, step: &Step) -> Checked {
        match step {
            Step::Owner(Act::Settle { is_written: true }) => match self.owner.writing.take() {
                Some(checkpoint) => {
                    self.commit(&checkpoint)?;
                    self.owner.lane.checkpoint_written();
                    self.owner.written = checkpoint.next;
                    prop_assert_eq!(self.owner.lane.is_behind(), self.owner.next > checkpoint.next);
                    Ok(())
                }
                None => Ok(()),
            },
            Step::Owner(act) => self.act(None, act),
            Step::Zombie(_, _) if self.zombies.is_empty() => Ok(()),
            Step::Zombie(which, act) => self.act(Some(which.index(self.zombies.len())), act),
            Step::Crash { landed, is_written, reread } => {
                self.end_transaction(*is_written)?;
                let lost = std::mem::take(&mut self.owner.unacknowledged);
                let landed = lost.into_iter().zip(landed.iter().cycle()).filter(|(_, landed)| **landed);
                landed.for_each(|(publication, _)| self.decisions.acknowledge(publication));
                self.see("crash");
                self.take_over(*reread).map(drop)
            }
            Step::Usurp { is_written, reread } => {
                self.end_transaction(*is_written)?;
                let zombie = self.take_over(*reread)?;
                self.zombies.truncate(ZOMBIES_MAX - 1);
                self.zombies.insert(0, zombie);
                Ok(())
            }
            Step::Revoke => {
                self.finish()?;
                self.see("revoke");
                self.take_over(0).map(drop)
            }
            Step::Compact { upto, drops_tombstones } => {
                self.compact(upto.index(self.state.len() + 1), *drops_tombstones);
                Ok(())
            }
        }
    }

    /// What a worker does by itself. A zombie's checkpoints are refused: it is fenced.
    fn act(&mut self, zombie: Option<usize>, act: &Act) -> Checked {
        let worker = match zombie {
            Some(which) => &mut self.zombies[which],
            None => &mut self.owner,
        };
        match act {
            Act::Poll(count) => worker.poll(self.policy, self.truth, &mut self.decisions, *count),
            Act::Acknowledge { from, count } => worker.acknowledge(self.truth, &mut self.decisions, *from, *count),
            Act::Freeze => worker.freeze(),
            Act::Begin => worker.begin(self.truth),
            Act::Settle { .. } => {
                if worker.writing.take().is_some() {
                    worker.lane.checkpoint_refused();
                    prop_assert!(worker.lane.is_behind(), "what was refused is still to be written");
                    self.see(if zombie.is_some() { "fenced" } else { "refused checkpoint" });
                }
                Ok(())
            }
        }
    }

    /// Ends the transaction that a worker leaves behind: its successor finds it written or not, whatever the worker was told.
    fn end_transaction(&mut self, is_written: bool) -> Checked {
        match self.owner.writing.clone().filter(|_| is_written) {
            Some(checkpoint) => {
                self.see("unknown outcome, written");
                self.commit(&checkpoint)
            }
            None => Ok(()),
        }
    }

    /// Writes a checkpoint and commits its offset, both or neither.
    fn commit(&mut self, checkpoint: &Checkpoint) -> Checked {
        prop_assert!(self.committed < Some(checkpoint.next), "{} after {:?}", checkpoint.next, self.committed);
        let finished = self.truth.index_of(checkpoint.next);
        let missing = self.decisions.landed.iter().take(finished).position(|landed| landed.contains(&false));
        prop_assert_eq!(missing, None, "committed {} without a verdict", checkpoint.next);
        prop_assert_eq!(checkpoint.records.last().map(|record| record.key.as_str()), Some("partition"));
        for record in &checkpoint.records {
            let last = self.state.iter().rev().find(|(_, key, _)| *key == record.key).and_then(|(_, _, value)| value.as_ref());
            prop_assert!(record.value.is_none() || record.value.as_ref() != last, "{} is written though it has not changed", record.key);
            *self.seen.entry(if record.value.is_some() { "value" } else { "tombstone" }).or_default() += 1;
            self.state.push((self.state_end, record.key.clone(), record.value.clone()));
            self.state_end = self.state_end.next();
        }
        // The marker of the transaction takes an offset.
        self.state_end = self.state_end.next();
        self.committed = Some(checkpoint.next);
        self.restore().map(drop)
    }

    /// Restores, and finds the state as of exactly the committed offset.
    fn restore(&self) -> Result<Option<Restored>, TestCaseError> {
        let mut restore = Restore::default();
        self.state.iter().for_each(|(offset, key, value)| restore.take(*offset, Some(key.as_bytes()), value.as_deref()));
        let restored = restore.finish(OWNER, self.policy.store_limits()).map_err(|(_, error)| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(restored.as_ref().map(|restored| restored.next), self.committed);
        if let Some(restored) = &restored {
            prop_assert_eq!(
                &Snapshot::of_restored(restored),
                self.truth.snapshot(restored.next),
                "what was restored, and what it should be"
            );
        }
        Ok(restored)
    }

    /// Another worker becomes the owner, and reads from up to `reread` records before the committed offset. The answer is the one before.
    fn take_over(&mut self, reread: usize) -> Result<Worker, TestCaseError> {
        let lane = match self.restore()? {
            Some(restored) => Lane::restored(PARTITION, self.policy, restored),
            None => Lane::new(PARTITION, self.policy),
        };
        let restored_at = self.committed.unwrap_or(Offset(0));
        let committed = self.truth.index_of(restored_at);
        let at = committed.saturating_sub(reread);
        if at < committed {
            self.see("redelivery");
        }
        Ok(std::mem::replace(&mut self.owner, Worker::new(lane, restored_at, at)))
    }

    /// Compacts the topic up to some record: of every key the last one stays, and a tombstone may go with what it deletes.
    fn compact(&mut self, upto: usize, drops_tombstones: bool) {
        let tail = self.state.split_off(upto);
        let head = std::mem::take(&mut self.state);
        let last: BTreeMap<String, Offset> = head.iter().map(|(offset, key, _)| (key.clone(), *offset)).collect();
        let stays = |(offset, key, value): &(Offset, String, Option<Vec<u8>>)| {
            last.get(key) == Some(offset) && !(drops_tombstones && value.is_none())
        };
        self.state = head.into_iter().filter(stays).chain(tail).collect();
        self.see("compaction");
    }

    /// The owner reads nothing more, waits for every acknowledgement and writes all that it knows.
    fn finish(&mut self) -> Checked {
        self.step(&Step::Owner(Act::Acknowledge { from: 0, count: usize::MAX }))?;
        // The checkpoint that is under way, and the one behind it.
        for act in [Act::Begin, Act::Settle { is_written: true }, Act::Freeze, Act::Begin, Act::Settle { is_written: true }] {
            self.step(&Step::Owner(act))?;
        }
        prop_assert!(!self.owner.lane.is_checkpointing() && !self.owner.lane.is_behind());
        Ok(())
    }

    /// The log is read to its end, and everything in it has come to exactly one end.
    pub fn conclude(&mut self) -> Checked {
        self.step(&Step::Owner(Act::Poll(usize::MAX)))?;
        self.finish()?;
        prop_assert_eq!(&Snapshot::of_lane(&self.owner.lane), self.truth.last_snapshot(), "the owner's last state, and what it should be");
        prop_assert_eq!(self.committed, self.truth.log.last().map(|logged| logged.offset.next()));
        prop_assert!(!self.truth.outcomes.iter().any(|outcome| outcome.applied == Applied::Redelivered));
        prop_assert_eq!(self.decisions.ended.iter().position(|ended| !ended), None, "a record was lost");
        prop_assert_eq!(self.decisions.landed.iter().position(|landed| landed.contains(&false)), None, "a verdict was lost");
        Ok(())
    }
}
