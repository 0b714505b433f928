//! A model of what surrounds a partition processor: the group's offset, the decisions log, a compacted state topic that is written in
//! transactions, the worker that owns the partition, and workers that only believe that they do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use tollgate_core::decide::deciding::Deciding;
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::engine::checkpoint::{Checkpoint, CheckpointSearch, Restore, Restored, StateRecord};
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::{Stage as _, Waiting};
use tollgate_core::event::record::Offset;

use super::schedule::{Act, Step};
use super::truth::{PARTITION, Truth, of_processor, of_restored};
use super::worker::{Checked, OWNER, Outside, Worker};

/// The most workers that were fenced and do not know it yet; with one more, the first of them notices.
const ZOMBIES_MAX: usize = 2;

/// The most marks that are lost in a row.
const LOST_MARKS_MAX: usize = 3;

/// A record of the state topic: offset, key, value.
type Logged = (Offset, String, Option<Vec<u8>>);

/// The model: the topics, the group's offset, and the workers.
pub struct World<'t> {
    pub outside: Outside<'t>,
    /// The state topic without what was aborted.
    state: Vec<Logged>,
    /// What was aborted though it was committed, because the mark of the commit was lost.
    aborted: Vec<Logged>,
    state_end: Offset,
    /// Whether the mark of the next commit is lost.
    loses_mark: bool,
    /// From where on transactions are open whose marks were lost, and how many these are.
    open: Option<(Offset, usize)>,
    committed: Option<Offset>,
    owner: Worker,
    zombies: Vec<Worker>,
}

impl<'t> World<'t> {
    pub fn new(policy: &'t Arc<Policy>, truth: &'t Truth) -> Self {
        Self {
            outside: Outside::new(policy, truth),
            state: Vec::new(),
            aborted: Vec::new(),
            state_end: Offset(0),
            loses_mark: false,
            open: None,
            committed: None,
            owner: Worker::new(PartitionProcessor::new(PARTITION, Deciding::new(Arc::clone(policy))), Offset(0), 0),
            zombies: Vec::new(),
        }
    }

    pub fn step(&mut self, step: &Step) -> Checked {
        match step {
            Step::Owner(Act::Settle { is_written: true }) => match self.owner.writing.take() {
                Some(checkpoint) => {
                    self.commit(&checkpoint)?;
                    self.owner.processor.checkpoint_written();
                    self.owner.was_refused = false;
                    self.owner.written = checkpoint.next;
                    prop_assert_eq!(self.owner.processor.is_behind(), self.owner.next > checkpoint.next);
                    Ok(())
                }
                None => self.owner.hear_of_nothing(),
            },
            Step::Owner(act) => self.act(None, act),
            Step::Zombie(_, _) if self.zombies.is_empty() => Ok(()),
            Step::Zombie(which, act) => self.act(Some(which.index(self.zombies.len())), act),
            Step::Crash { landed, is_written, reread } => {
                self.end_transaction(*is_written)?;
                let lost = std::mem::take(&mut self.owner.unacknowledged);
                let landed = lost.into_iter().zip(landed.iter().cycle()).filter(|(_, landed)| **landed);
                landed.for_each(|(publication, _)| self.outside.land(publication));
                self.outside.see("crash");
                self.see_waiting("crash while waiting");
                self.take_over(*reread).map(drop)
            }
            Step::Usurp { is_written, reread } => {
                self.end_transaction(*is_written)?;
                self.see_waiting("usurped while waiting");
                let zombie = self.take_over(*reread)?;
                self.zombies.truncate(ZOMBIES_MAX - 1);
                self.zombies.insert(0, zombie);
                Ok(())
            }
            Step::Revoke => {
                self.outside.see("revoke");
                self.see_waiting("revoke while waiting");
                self.finish()?;
                self.take_over(0).map(drop)
            }
            Step::LoseMark => {
                self.loses_mark = true;
                Ok(())
            }
            Step::Compact { upto, drops_tombstones } => {
                self.compact(upto.index(self.state.len() + 1), *drops_tombstones);
                Ok(())
            }
        }
    }

    fn see_waiting(&mut self, what: &'static str) {
        if self.owner.waits() {
            self.outside.see(what);
        }
    }

    /// Does what a worker does by itself. A zombie's checkpoints are refused, since it is fenced.
    fn act(&mut self, zombie: Option<usize>, act: &Act) -> Checked {
        let worker = match zombie {
            Some(which) => &mut self.zombies[which],
            None => &mut self.owner,
        };
        let outside = &mut self.outside;
        match act {
            Act::Poll(count) => worker.poll(outside, *count)?,
            Act::Acknowledge { from, count } => worker.acknowledge(outside, *from, *count)?,
            Act::Answer { from, count, rounds } => {
                for _ in 0..*rounds {
                    if !worker.waits() {
                        break;
                    }
                    worker.answer(outside, *from, *count)?;
                }
                worker.check_state(outside.truth)?;
            }
            Act::Freeze => worker.freeze(outside)?,
            Act::Begin => worker.begin(outside)?,
            Act::Settle { .. } => {
                if worker.writing.take().is_some() {
                    worker.processor.checkpoint_refused();
                    worker.was_refused = true;
                    prop_assert!(worker.processor.is_behind(), "what was refused is still to be written");
                    outside.see(if zombie.is_some() { "fenced" } else { "refused checkpoint" });
                }
            }
        }
        worker.check(outside.truth)?;
        if zombie.is_none() && matches!(act, Act::Settle { .. }) && self.owner.was_refused {
            self.abort();
        }
        Ok(())
    }

    /// Aborts what is open: what its transaction holds, and what came before it without a mark.
    fn abort(&mut self) {
        if let Some((from, _)) = self.open.take() {
            let at = self.state.partition_point(|(offset, ..)| *offset < from);
            self.aborted.extend(self.state.split_off(at));
            self.outside.see("commit lost");
        }
        self.state_end = self.state_end.next();
    }

    /// Ends the transaction that a worker leaves behind. Its successor finds it written or not, whatever the worker knows of it.
    fn end_transaction(&mut self, is_written: bool) -> Checked {
        match self.owner.writing.clone().filter(|_| is_written) {
            Some(checkpoint) => {
                self.outside.see("unknown outcome, written");
                self.commit(&checkpoint)?;
            }
            None if self.owner.writing.is_some() => self.abort(),
            None => {}
        }
        Ok(())
    }

    /// Writes a checkpoint and commits its offset, both or neither.
    fn commit(&mut self, checkpoint: &Checkpoint) -> Checked {
        prop_assert!(self.committed < Some(checkpoint.next), "{} after {:?}", checkpoint.next, self.committed);
        let committed = self.outside.truth.index_of(checkpoint.next);
        let missing = self.outside.landed.iter().take(committed).position(|landed| landed.contains(&false));
        prop_assert_eq!(missing, None, "committed {} without a verdict", checkpoint.next);
        prop_assert_eq!(checkpoint.records.last().map(|record| record.key.as_str()), Some("partition"));
        let mut written = BTreeSet::new();
        for record in &checkpoint.records {
            prop_assert!(record.value.is_none() || written.insert(&record.key), "{} is written twice", record.key);
            let last = self.state.iter().rev().find(|(_, key, _)| *key == record.key).and_then(|(_, _, value)| value.as_ref());
            // After a refusal the checkpoints before it are written once more.
            let is_news = record.value.is_none() || record.value.as_ref() != last || self.owner.was_refused;
            prop_assert!(is_news, "{} is written though it has not changed", record.key);
            *self.outside.seen.entry(if record.value.is_some() { "value" } else { "tombstone" }).or_default() += 1;
            self.state.push((self.state_end, record.key.clone(), record.value.clone()));
            self.state_end = self.state_end.next();
        }
        let (first, open) = self.open.unwrap_or((Offset(self.state_end.0 - checkpoint.records.len() as i64), 0));
        if std::mem::take(&mut self.loses_mark) && open < LOST_MARKS_MAX {
            self.open = Some((first, open + 1));
        } else {
            // The mark of the transaction takes an offset, and ends those before it.
            (self.state_end, self.open) = (self.state_end.next(), None);
        }
        self.committed = Some(checkpoint.next);
        // What is open is not seen until its transactions end.
        if self.open.is_none() { self.check(self.read()?.as_ref()) } else { Ok(()) }
    }

    fn read(&self) -> Result<Option<Restored<ThreadStore>>, TestCaseError> {
        let mut restore = Restore::default();
        self.state.iter().for_each(|(offset, key, value)| restore.take(*offset, Some(key.as_bytes()), value.as_deref()));
        restore.finish(OWNER, self.outside.policy.store_limits()).map_err(|(_, error)| TestCaseError::fail(error.to_string()))
    }

    /// Restores the state as a takeover does, and checks that it is as of exactly the committed offset.
    fn restore(&mut self) -> Result<Option<Restored<ThreadStore>>, TestCaseError> {
        self.abort();
        let mut restored = self.read()?;
        let seen = restored.as_ref().map(|restored| restored.next);
        if let Some(committed) = self.committed.filter(|committed| seen < Some(*committed)) {
            let mut search = CheckpointSearch::<ThreadStore>::new(seen, committed);
            let all: BTreeMap<Offset, &Logged> = self.state.iter().chain(&self.aborted).map(|logged| (logged.0, logged)).collect();
            all.values().for_each(|(offset, key, value)| search.take(*offset, Some(key.as_bytes()), value.as_deref()));
            for StateRecord { key, value } in search.finish().ok_or_else(|| TestCaseError::fail("a checkpoint is not in the log"))? {
                self.state.push((self.state_end, key, value));
                self.state_end = self.state_end.next();
            }
            self.state_end = self.state_end.next();
            self.outside.see("written again");
            restored = self.read()?;
        }
        self.check(restored.as_ref())?;
        Ok(restored)
    }

    /// Checks that state is as of exactly the committed offset.
    fn check(&self, restored: Option<&Restored<ThreadStore>>) -> Checked {
        prop_assert_eq!(restored.map(|restored| restored.next), self.committed);
        if let Some(restored) = restored {
            let expected = self.outside.truth.snapshot(restored.next);
            prop_assert_eq!(&of_restored(restored), expected, "what was restored, and what it should be");
        }
        Ok(())
    }

    /// Makes another worker the owner, which reads from up to `reread` records before the committed offset. Returns the owner before it.
    fn take_over(&mut self, reread: usize) -> Result<Worker, TestCaseError> {
        let policy = self.outside.policy;
        let processor = match self.restore()? {
            Some(Restored { next, state }) => {
                PartitionProcessor::restored(PARTITION, Deciding::with_threads(Arc::clone(policy), state), next)
            }
            None => PartitionProcessor::new(PARTITION, Deciding::new(Arc::clone(policy))),
        };
        let restored_at = self.committed.unwrap_or(Offset(0));
        let committed = self.outside.truth.index_of(restored_at);
        let at = committed.saturating_sub(reread);
        if at < committed {
            self.outside.see("redelivery");
        }
        Ok(std::mem::replace(&mut self.owner, Worker::new(processor, restored_at, at)))
    }

    /// Compacts the topic up to some record: of every key the last one stays, and a tombstone may go with what it deletes.
    fn compact(&mut self, upto: usize, drops_tombstones: bool) {
        let open = self.open.map_or(self.state.len(), |(from, _)| self.state.partition_point(|(offset, ..)| *offset < from));
        let upto = upto.min(open);
        let tail = self.state.split_off(upto);
        let head = std::mem::take(&mut self.state);
        let last: BTreeMap<String, Offset> = head.iter().map(|(offset, key, _)| (key.clone(), *offset)).collect();
        let stays = |(offset, key, value): &Logged| last.get(key) == Some(offset) && !(drops_tombstones && value.is_none());
        self.state = head.into_iter().filter(stays).chain(tail).collect();
        self.outside.see("compaction");
    }

    /// Has the owner read nothing more, wait for every answer and acknowledgement, and write all that it knows.
    fn finish(&mut self) -> Checked {
        self.step(&Step::Owner(Act::Answer { from: 0, count: usize::MAX, rounds: usize::MAX }))?;
        self.step(&Step::Owner(Act::Acknowledge { from: 0, count: usize::MAX }))?;
        // These are the checkpoint that is being written, and the one behind it.
        for act in [Act::Begin, Act::Settle { is_written: true }, Act::Freeze, Act::Begin, Act::Settle { is_written: true }] {
            self.step(&Step::Owner(act))?;
        }
        prop_assert!(!self.owner.processor.is_checkpointing() && !self.owner.processor.is_behind());
        prop_assert_eq!(self.owner.processor.stage().waiting(), Waiting { records: 0, bytes: 0 });
        Ok(())
    }

    /// Reads the log to its end, and checks that every record in it has come to exactly one end.
    pub fn conclude(&mut self) -> Checked {
        self.step(&Step::Owner(Act::Poll(usize::MAX)))?;
        self.finish()?;
        let last = of_processor(&self.owner.processor);
        prop_assert_eq!(&last, self.outside.truth.last_snapshot(), "the owner's last state, and what it should be");
        prop_assert_eq!(self.committed, self.outside.truth.log.last().map(|logged| logged.offset.next()));
        prop_assert!(!self.outside.truth.outcomes.iter().any(|(applied, _)| *applied == Applied::Redelivered));
        prop_assert_eq!(self.outside.ended.iter().position(|ended| !ended), None, "a record was lost");
        prop_assert_eq!(self.outside.landed.iter().position(|landed| landed.contains(&false)), None, "a verdict was lost");
        Ok(())
    }
}
