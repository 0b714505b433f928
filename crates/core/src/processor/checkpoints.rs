//! When the state of a partition may be written down.
//!
//! ```text
//! freeze (state as of `next`) ─▶ everything before `next` acknowledged ─▶ written with the offset ─▶ none
//!                                                                      └▶ refused: frozen again later
//! ```
//!
//! State is never written ahead of what was published: whoever restored it would find the record applied, and publish nothing. Nor is it as
//! of two offsets: a key of which a record before `next` still waits for a response is frozen when its last one has been applied, and before
//! the first one behind is.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::checkpoint::{Checkpoint, KeyedState, PartitionState, StateRecord};
use crate::record::Offset;
use crate::stage::Stage;

use super::PartitionProcessor;

/// How far the one checkpoint of a partition that is under way has come.
#[derive(Debug, Default)]
pub(super) struct CheckpointProgress {
    step: Step,
    /// What the last one that was written reached.
    written: Option<Offset>,
}

#[derive(Debug, Default)]
enum Step {
    #[default]
    None,
    /// Some of its keys wait, or not everything before it is acknowledged.
    Frozen(Frozen),
    /// It is being written.
    Writing(Arc<Checkpoint>),
}

#[derive(Debug)]
struct Frozen {
    next: Offset,
    /// The entries as of `next`, but for those that are awaited.
    entries: Vec<StateRecord>,
    partition: StateRecord,
    /// Keys of which records before `next` wait.
    awaited: FxHashSet<Box<str>>,
}

impl CheckpointProgress {
    /// Returns the progress of a partition whose state was restored as of an offset.
    pub(super) fn written_up_to(next: Offset) -> Self {
        Self { step: Step::None, written: Some(next) }
    }

    /// Notes that a record of a key that waited has been applied, and which is the next one that waits.
    pub(super) fn passed<K: KeyedState>(&mut self, key: &str, next: Option<Offset>, state: &mut K) {
        let Step::Frozen(frozen) = &mut self.step else { return };
        if next.is_some_and(|next| next < frozen.next) || !frozen.awaited.remove(key) {
            return;
        }
        frozen.entries.push(StateRecord::entry::<K>(key, state.take_change(key)));
    }
}

impl<S: Stage> PartitionProcessor<S> {
    /// Freezes what has changed, as of the last record that was applied, unless a checkpoint is under way or nothing was applied since.
    /// `owner` is whose state it is.
    pub fn freeze(&mut self, owner: &str) {
        if self.is_checkpointing() || !self.is_behind() {
            return;
        }
        let awaited: FxHashSet<Box<str>> = self.stage.waiting_keys().map(Into::into).collect();
        let state = self.stage.state_mut();
        let mut entries = Vec::new();
        state.take_changes(|key, entry| {
            if !awaited.contains(key) {
                entries.push(StateRecord::entry::<S::State>(key, entry));
            }
        });
        let partition = PartitionState { owner: owner.to_owned(), next: self.next, clock: state.clock() };
        self.checkpoint.step = Step::Frozen(Frozen { next: self.next, entries, partition: StateRecord::partition(&partition), awaited });
    }

    /// Returns the frozen checkpoint, once everything before it is acknowledged. It is handed out once; whoever has it says what became of
    /// it.
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

    /// Notes that the checkpoint that was handed out is written, and its offset committed.
    pub fn checkpoint_written(&mut self) {
        if let Step::Writing(checkpoint) = std::mem::take(&mut self.checkpoint.step) {
            self.checkpoint.written = Some(checkpoint.next);
        }
    }

    /// Notes that the checkpoint that was handed out came to nothing: what was in it belongs to the next one.
    pub fn checkpoint_refused(&mut self) {
        if let Step::Writing(checkpoint) = std::mem::take(&mut self.checkpoint.step) {
            let state = self.stage.state_mut();
            checkpoint.keys::<S::State>().for_each(|key| state.mark_changed(key));
        }
    }

    /// Returns whether a checkpoint is frozen or being written.
    #[must_use]
    pub fn is_checkpointing(&self) -> bool {
        !matches!(self.checkpoint.step, Step::None)
    }

    /// Returns whether records were applied that no written checkpoint knows.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.has_applied && Some(self.next) > self.checkpoint.written
    }
}
