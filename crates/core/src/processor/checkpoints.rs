//! When a lane's state may be written down.
//!
//! ```text
//! freeze (state as of `next`) ─▶ verdicts before `next` acknowledged ─▶ written with the offset ─▶ done
//!                                                                    └▶ refused: thawed, and frozen again later
//! ```
//!
//! State is never written ahead of a verdict: whoever restored it would find the event applied, and publish nothing. Nor is it as of two
//! offsets: a thread of which an event before `next` still waits for an answer is frozen when its last one has been applied, and before
//! the first one behind is.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::checkpoint::{Checkpoint, PartitionState, StateRecord};
use crate::record::Offset;
use crate::thread::ThreadStore;

use super::Lane;

/// Where the one checkpoint of a lane that is under way stands.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    stage: Stage,
    /// What the last one that was written reached.
    written: Option<Offset>,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    None,
    /// Some of its threads wait, or its verdicts are not all acknowledged.
    Frozen(Frozen),
    /// It is being written.
    Writing(Arc<Checkpoint>),
}

#[derive(Debug)]
struct Frozen {
    next: Offset,
    /// The threads as of `next`, but for those that are awaited.
    threads: Vec<StateRecord>,
    partition: StateRecord,
    /// Threads of which events before `next` wait.
    awaited: FxHashSet<Box<str>>,
}

impl Checkpoints {
    /// Those of a lane whose state was restored as of an offset.
    pub(super) fn written_up_to(next: Offset) -> Self {
        Self { stage: Stage::None, written: Some(next) }
    }

    /// Notes that an event of a thread that waited has been applied, and which is the next one that waits.
    pub(super) fn passed(&mut self, thread_id: &str, next: Option<Offset>, threads: &mut ThreadStore) {
        let Stage::Frozen(frozen) = &mut self.stage else { return };
        if next.is_some_and(|next| next < frozen.next) || !frozen.awaited.remove(thread_id) {
            return;
        }
        frozen.threads.push(StateRecord::thread(thread_id, threads.take_change(thread_id)));
    }
}

impl Lane {
    /// Freezes what has changed, as of the last record that was applied, unless a checkpoint is under way or nothing was applied since.
    /// `owner` is whose state it is.
    pub fn freeze(&mut self, owner: &str) {
        if !matches!(self.checkpoints.stage, Stage::None) || !self.is_behind() {
            return;
        }
        let awaited: FxHashSet<Box<str>> = self.waiting.thread_ids().map(Into::into).collect();
        let mut threads = Vec::new();
        self.threads.take_changes(|id, stored| {
            if !awaited.contains(id) {
                threads.push(StateRecord::thread(id, stored));
            }
        });
        let partition = PartitionState { owner: owner.to_owned(), next: self.next, clock: self.threads.clock() };
        self.checkpoints.stage = Stage::Frozen(Frozen { next: self.next, threads, partition: StateRecord::partition(&partition), awaited });
    }

    /// The frozen checkpoint, once every verdict before it is acknowledged. It is handed out once; whoever has it says what became of it.
    pub fn take_checkpoint(&mut self) -> Option<Arc<Checkpoint>> {
        match std::mem::take(&mut self.checkpoints.stage) {
            Stage::Frozen(frozen) if frozen.awaited.is_empty() && self.ledger.finished() >= Some(frozen.next) => {
                let Frozen { next, threads: mut records, partition, .. } = frozen;
                records.push(partition);
                let checkpoint = Arc::new(Checkpoint { next, records });
                self.checkpoints.stage = Stage::Writing(Arc::clone(&checkpoint));
                Some(checkpoint)
            }
            stage => {
                self.checkpoints.stage = stage;
                None
            }
        }
    }

    /// The checkpoint that was handed out is written, and its offset committed.
    pub fn checkpoint_written(&mut self) {
        if let Stage::Writing(checkpoint) = std::mem::take(&mut self.checkpoints.stage) {
            self.checkpoints.written = Some(checkpoint.next);
        }
    }

    /// The checkpoint that was handed out came to nothing: what was in it belongs to the next one.
    pub fn checkpoint_refused(&mut self) {
        if let Stage::Writing(checkpoint) = std::mem::take(&mut self.checkpoints.stage) {
            checkpoint.thread_ids().for_each(|id| self.threads.mark_changed(id));
        }
    }

    /// Whether a checkpoint is frozen or being written.
    #[must_use]
    pub fn is_checkpointing(&self) -> bool {
        !matches!(self.checkpoints.stage, Stage::None)
    }

    /// Whether records were applied that no written checkpoint knows.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.has_applied && Some(self.next) > self.checkpoints.written
    }
}
