//! When a lane's state may be written down.
//!
//! ```text
//! freeze (state as of `next`) ─▶ verdicts before `next` acknowledged ─▶ written with the offset ─▶ done
//!                                                                    └▶ refused: thawed, and frozen again later
//! ```
//!
//! State is never written ahead of a verdict: whoever restored it would find the event applied, and publish nothing.

use std::sync::Arc;

use crate::checkpoint::{Checkpoint, PartitionState, StateRecord};
use crate::decode::Offset;

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
    /// Its verdicts are not all acknowledged.
    Frozen(Checkpoint),
    /// It is being written.
    Writing(Arc<Checkpoint>),
}

impl Checkpoints {
    /// Those of a lane whose state was restored as of an offset.
    pub(super) fn written_up_to(next: Offset) -> Self {
        Self { stage: Stage::None, written: Some(next) }
    }
}

impl Lane {
    /// Freezes what has changed, as of the last record that was applied, unless a checkpoint is under way or nothing was applied since.
    /// `owner` is whose state it is.
    pub fn freeze(&mut self, owner: &str) {
        if !matches!(self.checkpoints.stage, Stage::None) || !self.is_behind() {
            return;
        }
        let mut records = Vec::new();
        self.threads.take_changes(|id, stored| records.push(StateRecord::thread(id, stored)));
        let partition = PartitionState { owner: owner.to_owned(), next: self.next, clock: self.threads.clock() };
        records.push(StateRecord::partition(&partition));
        self.checkpoints.stage = Stage::Frozen(Checkpoint { next: self.next, records });
    }

    /// The frozen checkpoint, once every verdict before it is acknowledged. It is handed out once; whoever has it says what became of it.
    pub fn take_checkpoint(&mut self) -> Option<Arc<Checkpoint>> {
        match std::mem::take(&mut self.checkpoints.stage) {
            Stage::Frozen(checkpoint) if self.ledger.finished() >= Some(checkpoint.next) => {
                let checkpoint = Arc::new(checkpoint);
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
