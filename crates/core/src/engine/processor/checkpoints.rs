//! The checkpoints of a partition: when its state is frozen, and when it may be written.
//!
//! ```text
//! freeze (state as of `next`) ─▶ everything before `next` acknowledged ─▶ written with the offset ─▶ none
//!                                                                      └▶ refused: frozen again later
//! ```
//!
//! State is never written ahead of what was published: a worker that restores such state would find the record applied and publish nothing.
//! Nor does a checkpoint mix the state of two offsets. A key may still have records before `next` that wait for a response. Its entry is
//! frozen when the last of these has been applied, and before the first record from `next` on is.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use crate::engine::checkpoint::{Checkpoint, KeyedState, PartitionState, StateOwner, StateRecord};
use crate::engine::stage::Stage;
use crate::event::record::Offset;

use super::PartitionProcessor;

/// How many written checkpoints are written once more after a refusal. A broker that crashes again and again may lose the marks of several.
const RECENT_MAX: usize = 3;

/// The state of a partition's checkpoint: there is at most one under way.
#[derive(Debug)]
pub(super) struct CheckpointProgress {
    step: Step,
    /// The offset that the last written checkpoint reached, or else where the partition began.
    written_up_to: Offset,
    /// The keys of the last written checkpoints, the newest at the end. Their records are known to stay once later ones are written too.
    recent: VecDeque<Vec<Box<str>>>,
}

#[derive(Debug, Default)]
enum Step {
    #[default]
    None,
    /// The checkpoint is frozen, and some of its keys wait or not everything before it is acknowledged.
    Frozen(Frozen),
    /// The checkpoint was handed out and is being written.
    Writing(Arc<Checkpoint>),
}

#[derive(Debug)]
struct Frozen {
    next: Offset,
    /// The entries as of `next`, except for those in `awaited`.
    entries: Vec<StateRecord>,
    partition: StateRecord,
    /// Keys that have waiting records before `next`.
    awaited: HashSet<Box<str>>,
}

impl CheckpointProgress {
    /// Returns the state of a partition that was restored as of an offset, with no checkpoint under way.
    pub(super) fn written_up_to(next: Offset) -> Self {
        Self { step: Step::None, written_up_to: next, recent: VecDeque::new() }
    }

    /// Ends the checkpoint that is being written and returns it. One that is only frozen stays: it was not handed out, so no report can be
    /// about it.
    fn end_writing(&mut self) -> Option<Arc<Checkpoint>> {
        match std::mem::take(&mut self.step) {
            Step::Writing(checkpoint) => Some(checkpoint),
            step => {
                self.step = step;
                None
            }
        }
    }

    /// Notes that a waiting record of a key has been applied, and the offset of the next one of that key that waits.
    pub(super) fn applied_waiting<K: KeyedState>(&mut self, key: &str, next: Option<Offset>, state: &mut K) {
        let Step::Frozen(frozen) = &mut self.step else { return };
        if next.is_some_and(|next| next < frozen.next) || !frozen.awaited.remove(key) {
            return;
        }
        frozen.entries.push(StateRecord::entry::<K>(key, state.take_change(key)));
    }
}

impl<S: Stage> PartitionProcessor<S> {
    /// Freezes what has changed, as of the last record that was applied. It does nothing if a checkpoint is under way or nothing was
    /// applied since the last one. `owner` names the owner of the state.
    pub fn freeze<'o>(&mut self, owner: impl Into<StateOwner<'o>>) {
        if self.is_checkpointing() || !self.is_behind() {
            return;
        }
        let awaited: HashSet<Box<str>> = self.stage.waiting_keys().map(Into::into).collect();
        let state = self.stage.state_mut();
        let mut entries = Vec::new();
        state.take_changes(|key, entry| {
            if !awaited.contains(key) {
                entries.push(StateRecord::entry::<S::State>(key, entry));
            }
        });
        let StateOwner { name, partitions } = owner.into();
        let partition = PartitionState { owner: name.to_owned(), next: self.next, clock: state.clock(), partitions };
        self.checkpoint.step = Step::Frozen(Frozen { next: self.next, entries, partition: StateRecord::partition(&partition), awaited });
    }

    /// Returns the frozen checkpoint once everything before it is acknowledged. It is handed out once. The caller then reports the result
    /// with [`Self::checkpoint_written`] or [`Self::checkpoint_refused`].
    pub fn take_checkpoint(&mut self) -> Option<Arc<Checkpoint>> {
        match std::mem::take(&mut self.checkpoint.step) {
            Step::Frozen(frozen) if frozen.awaited.is_empty() && self.tracker.committable() >= Some(frozen.next) => {
                let Frozen { next, entries: mut records, partition, .. } = frozen;
                records.push(partition);
                let checkpoint = Arc::new(Checkpoint { next, records });
                self.checkpoint.step = Step::Writing(Arc::clone(&checkpoint));
                Some(checkpoint)
            }
            step => {
                self.checkpoint.step = step;
                None
            }
        }
    }

    /// Notes that the checkpoint that was handed out is written and its offset committed.
    pub fn checkpoint_written(&mut self) {
        if let Some(checkpoint) = self.checkpoint.end_writing() {
            self.checkpoint.written_up_to = checkpoint.next;
            if self.checkpoint.recent.len() >= RECENT_MAX {
                self.checkpoint.recent.pop_front();
            }
            self.checkpoint.recent.push_back(checkpoint.keys::<S::State>().map(Into::into).collect());
            self.stage.checkpoint_written(checkpoint.next);
        }
    }

    /// Notes that the checkpoint that was handed out was not written, or that it is unknown whether it was. Its changes become part of the
    /// next one, and so do those of the last ones before it: brokers can lose the mark that ends a transaction, and what aborts this
    /// transaction then aborts those too.
    pub fn checkpoint_refused(&mut self) {
        if let Some(checkpoint) = self.checkpoint.end_writing() {
            let (state, recent) = (self.stage.state_mut(), std::mem::take(&mut self.checkpoint.recent));
            let keys: BTreeSet<&str> = recent.iter().flatten().map(AsRef::as_ref).chain(checkpoint.keys::<S::State>()).collect();
            keys.into_iter().for_each(|key| state.mark_changed(key));
        }
    }

    /// Returns whether a checkpoint is frozen or being written.
    #[must_use]
    pub fn is_checkpointing(&self) -> bool {
        !matches!(self.checkpoint.step, Step::None)
    }

    /// Returns whether records were applied that no written checkpoint includes.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.next > self.checkpoint.written_up_to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::deciding::{Deciding, VerdictBuffer};
    use crate::decide::policy::{Policy, PolicySettings};
    use crate::event::record::{Partition, Record};
    use serde_json::{Value, json};

    /// Applies an event of a thread that waits for no acknowledgement.
    fn feed(processor: &mut PartitionProcessor<Deciding>, offset: i64, event: &Value) {
        let (value, offset) = (event.to_string(), Offset(offset));
        let value = Some(value.as_bytes());
        let record = Record { topic: "agent.events", partition: Partition(0), offset, timestamp_ms: None, key: None, value, headers: &[] };
        processor.apply(&record, &mut VerdictBuffer::default()).unwrap();
        processor.published(offset, 0).unwrap();
    }

    fn call(thread: &str) -> Value {
        json!({"type": "tool_call", "thread_id": thread, "tool_call_id": "c", "tool_name": "ls", "tool_input": {}})
    }

    fn end(thread: &str) -> Value {
        json!({"type": "turn_end", "thread_id": thread})
    }

    fn checkpoint(processor: &mut PartitionProcessor<Deciding>) -> Option<(i64, Vec<(String, bool)>)> {
        processor.freeze("tollgate/agent.events");
        let checkpoint = processor.take_checkpoint()?;
        let mut records: Vec<_> = checkpoint.records.iter().map(|record| (record.key.clone(), record.value.is_some())).collect();
        assert_eq!(records.pop(), Some(("partition".to_owned(), true)), "the partition's own is the last");
        records.sort();
        Some((checkpoint.next.0, records))
    }

    fn records<const N: usize>(next: i64, records: [(&str, bool); N]) -> Option<(i64, Vec<(String, bool)>)> {
        Some((next, records.map(|(key, is_there)| (key.to_owned(), is_there)).to_vec()))
    }

    /// Where the mark of a commit is lost, the next abort takes the committed records with it.
    #[test]
    fn what_was_written_before_a_refusal_is_written_once_more() {
        let policy = Arc::new(Policy::new(&PolicySettings::from_yaml("{}").unwrap()));
        let mut processor = PartitionProcessor::new(Partition(0), Deciding::new(policy));
        let write = |processor: &mut PartitionProcessor<Deciding>, offset: i64, thread: &str| {
            feed(processor, offset, &call(thread));
            assert_eq!(checkpoint(processor), records(offset + 1, [(format!("thread/{thread}").as_str(), true)]));
            processor.checkpoint_written();
        };
        (0..).zip(["a", "ends", "b", "c"]).for_each(|(offset, thread)| write(&mut processor, offset, thread));
        feed(&mut processor, 4, &end("ends"));
        assert_eq!(checkpoint(&mut processor), records(5, [("thread/ends", false)]));
        processor.checkpoint_refused();
        let all = records(5, [("thread/b", true), ("thread/c", true), ("thread/ends", false)]);
        assert_eq!(checkpoint(&mut processor), all, "and what was written before that stays");
        processor.checkpoint_refused();
        assert_eq!(checkpoint(&mut processor), all);
        processor.checkpoint_written();
        write(&mut processor, 5, "t");
    }
}
