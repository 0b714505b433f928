//! The phases of a partition's state, and the transitions between them. There is no I/O and no clock: the caller says what has happened,
//! and when.
//!
//! | phase | records | state |
//! |---|---|---|
//! | restoring | wait | is being read |
//! | ready | wait until the consumer is positioned | is restored |
//! | running | are taken | is written at intervals |
//! | draining | are not taken any more | is written as soon as possible |
//! | lost | wait | belongs to another member or is uncertain, and is read again after a pause |

use std::time::{Duration, Instant};

use tollgate_core::event::record::Offset;

/// How often at most the pause before a lost state is read again is doubled.
const DOUBLINGS_MAX: u32 = 4;

/// The phase of a partition's state. `W` is the type of its checkpoint writer, and `P` that of its processor, which exists only once the
/// state is here.
#[derive(Debug)]
pub enum Phase<W, P> {
    /// The state is being read.
    Restoring {
        /// The checkpoint writer that reads it.
        writer: W,
        /// Whether the last attempt failed and another one follows.
        has_failed: bool,
        /// What is remembered for the next restore.
        retry: Retry,
    },
    /// The state is restored, and the consumer is not positioned yet.
    Ready {
        /// The checkpoint writer that will write it.
        writer: W,
        /// The processor with the restored state.
        processor: P,
        /// What is remembered for the next restore.
        retry: Retry,
    },
    /// Records are taken.
    Running(ActivePartition<W, P>),
    /// The partition is being given up.
    Draining(ActivePartition<W, P>),
    /// The state may not be written any more.
    Lost {
        /// When the state is read again; `None` if the partition is being given up.
        until: Option<Instant>,
        /// What is remembered for the next restore.
        retry: Retry,
    },
}

/// What a partition has that takes records or is draining.
#[derive(Debug)]
pub struct ActivePartition<W, P> {
    /// The processor.
    pub processor: P,
    /// The checkpoint writer; `None` if the state is in memory only, because the broker lives no longer than the process.
    writer: Option<W>,
    /// When the next checkpoint is due; `None` means at once.
    checkpoint_due: Option<Instant>,
    /// Whether the group has refused the last checkpoint because of a rebalance. The next one is refused too, until the consumer has
    /// learned of the rebalance.
    is_outdated: bool,
    retry: Retry,
}

/// What is remembered of a partition from before its state was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retry {
    /// How often in a row the state was lost without a checkpoint in between.
    losses: u32,
    /// The first record that was taken, in case that no offset is committed when the state is read again.
    start: Option<Offset>,
}

/// What the caller has to do for a partition because of what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing is to be done.
    None,
    /// The state is restored: resume the partition from this record on.
    Resume(Offset),
    /// The state is lost: pause the partition, and drop what is in memory.
    Pause,
}

impl<W, P> ActivePartition<W, P> {
    /// Returns the checkpoint writer; `None` if the state is in memory only.
    pub fn writer(&self) -> Option<&W> {
        self.writer.as_ref()
    }

    /// Returns whether a checkpoint is due. If so, the next one is due an interval later.
    pub fn is_checkpoint_due(&mut self, now: Instant, interval: Duration) -> bool {
        let is_due = self.checkpoint_due.is_none_or(|due| now >= due);
        if is_due && self.checkpoint_due.is_some() {
            self.checkpoint_due = Some(now + interval);
        }
        is_due
    }
}

impl<W, P> Phase<W, P> {
    /// Returns the phase of a partition that was just assigned, and whose state this writer reads.
    pub fn restoring(writer: W) -> Self {
        Self::Restoring { writer, has_failed: false, retry: Retry::default() }
    }

    /// Returns the phase of a partition whose state is held in memory only.
    #[must_use]
    pub fn in_memory(processor: P, now: Instant) -> Self {
        Self::Running(ActivePartition { processor, writer: None, checkpoint_due: Some(now), is_outdated: false, retry: Retry::default() })
    }

    /// Notes that the state is restored, in this processor. `start` is the first record to read by the committed offset or the state,
    /// `default_start` the one if neither gives any.
    pub fn restored(&mut self, processor: P, start: Option<Offset>, default_start: Offset) -> Effect {
        let mut effect = Effect::None;
        self.change(|phase| match phase {
            Self::Restoring { writer, retry, .. } => {
                let start = start.or(retry.start).unwrap_or(default_start);
                effect = Effect::Resume(start);
                Self::Ready { writer, processor, retry: Retry { start: Some(start), ..retry } }
            }
            other => other,
        });
        effect
    }

    /// Notes that the state could not be read. The writer tries again.
    pub fn restore_failed(&mut self) -> Effect {
        if let Self::Restoring { has_failed, .. } = self {
            *has_failed = true;
        }
        Effect::None
    }

    /// Notes that the consumer is positioned and the records flow. The first checkpoint is due at the given time.
    pub fn resumed(&mut self, checkpoint_due: Instant) {
        self.change(|phase| match phase {
            Self::Ready { writer, processor, retry } => {
                let (writer, checkpoint_due) = (Some(writer), Some(checkpoint_due));
                Self::Running(ActivePartition { processor, writer, checkpoint_due, is_outdated: false, retry })
            }
            other => other,
        });
    }

    /// Notes that a checkpoint is written.
    pub fn checkpoint_written(&mut self) -> Effect {
        if let Self::Running(work) | Self::Draining(work) = self {
            (work.is_outdated, work.retry.losses) = (false, 0);
        }
        Effect::None
    }

    /// Notes that a checkpoint was refused because of a rebalance that the consumer has not learned of yet.
    pub fn outdated(&mut self) -> Effect {
        if let Self::Running(work) | Self::Draining(work) = self {
            work.is_outdated = true;
        }
        Effect::None
    }

    /// Notes that the writer has ended. The state is read again after a pause, which grows from loss to loss: otherwise two members that
    /// both consider a partition theirs could fence each other for ever. A partition that is being given up is left to its next owner.
    pub fn lose(&mut self, now: Instant, pause: Duration) -> Effect {
        let (retry, is_given_up) = match self {
            Self::Restoring { retry, .. } | Self::Ready { retry, .. } | Self::Lost { retry, .. } => (*retry, false),
            Self::Running(work) => (work.retry, false),
            Self::Draining(work) => (work.retry, true),
        };
        let until = (!is_given_up).then(|| now + pause * (1 << retry.losses.min(DOUBLINGS_MAX)));
        *self = Self::Lost { until, retry: Retry { losses: retry.losses + 1, ..retry } };
        Effect::Pause
    }

    /// Returns whether a lost state is to be read again.
    #[must_use]
    pub fn is_restore_due(&self, now: Instant) -> bool {
        matches!(self, Self::Lost { until: Some(until), .. } if now >= *until)
    }

    /// Notes that this writer reads a lost state again.
    pub fn restore_with(&mut self, writer: W) {
        if let Self::Lost { retry, .. } = self {
            *self = Self::Restoring { writer, has_failed: false, retry: *retry };
        }
    }

    /// Starts to drain: what was applied is written at once. A checkpoint is also tried again after a rebalance, since the consumer may
    /// have learned of it.
    pub fn drain(&mut self) {
        self.change(|phase| match phase {
            Self::Running(work) | Self::Draining(work) => {
                Self::Draining(ActivePartition { checkpoint_due: None, is_outdated: false, ..work })
            }
            other => other,
        });
    }

    /// Returns what the partition has while it takes records.
    pub fn running_mut(&mut self) -> Option<&mut ActivePartition<W, P>> {
        if let Self::Running(work) = self { Some(work) } else { None }
    }

    /// Returns what the partition has while it takes records or is draining.
    pub fn active(&self) -> Option<&ActivePartition<W, P>> {
        if let Self::Running(work) | Self::Draining(work) = self { Some(work) } else { None }
    }

    /// Returns the same to be changed.
    pub fn active_mut(&mut self) -> Option<&mut ActivePartition<W, P>> {
        if let Self::Running(work) | Self::Draining(work) = self { Some(work) } else { None }
    }

    /// Returns whether records are taken.
    #[must_use]
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// Returns whether records are taken, or the last ones are being finished.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        self.active().is_some()
    }

    /// Returns whether the state is restored and the consumer is not positioned yet.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }

    /// Returns whether the state could not be read, or was lost while the partition was being given up.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self, Self::Restoring { has_failed: true, .. } | Self::Lost { until: None, .. })
    }

    /// Returns whether a checkpoint would be refused because of a rebalance that the consumer has not learned of yet.
    #[must_use]
    pub fn is_outdated(&self) -> bool {
        self.active().is_some_and(|work| work.is_outdated)
    }

    /// Replaces the phase by the one that `change` returns.
    fn change(&mut self, change: impl FnOnce(Self) -> Self) {
        let phase = std::mem::replace(self, Self::Lost { until: None, retry: Retry::default() });
        *self = change(phase);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(100);

    /// Returns a partition at work whose state was restored by a writer, with its first checkpoint due at `now`.
    fn running(now: Instant) -> Phase<&'static str, &'static str> {
        let mut phase = Phase::restoring("writer");
        assert_eq!(phase.restored("processor", Some(Offset(7)), Offset(0)), Effect::Resume(Offset(7)));
        phase.resumed(now);
        phase
    }

    #[test]
    fn records_are_taken_once_the_state_is_here_and_the_consumer_is_positioned() {
        let now = Instant::now();
        let mut phase = Phase::restoring("writer");
        phase.resumed(now);
        assert!(!phase.is_running() && !phase.is_ready() && phase.active().is_none(), "{phase:?}");
        assert_eq!(phase.restored("processor", None, Offset(3)), Effect::Resume(Offset(3)));
        assert!(phase.is_ready() && !phase.is_running() && phase.active().is_none(), "{phase:?}");
        phase.resumed(now);
        assert!(phase.is_running() && phase.active().is_some(), "{phase:?}");
        assert_eq!(phase.restored("processor", Some(Offset(9)), Offset(0)), Effect::None, "a state comes once");
    }

    #[test]
    fn a_state_that_cannot_be_read_is_tried_again() {
        let mut phase = Phase::restoring("writer");
        assert_eq!(phase.restore_failed(), Effect::None);
        assert!(phase.has_failed() && !phase.is_at_work());
        assert_eq!(phase.restored("processor", Some(Offset(1)), Offset(0)), Effect::Resume(Offset(1)));
        assert!(!phase.has_failed() && phase.is_ready());
    }

    #[test]
    fn checkpoints_are_due_at_intervals_and_at_once_while_draining() {
        let now = Instant::now();
        let mut phase = running(now + PAUSE);
        let is_due = |phase: &mut Phase<_, _>, at: Instant| phase.active_mut().is_some_and(|work| work.is_checkpoint_due(at, INTERVAL));
        assert!(!is_due(&mut phase, now));
        assert!(is_due(&mut phase, now + PAUSE));
        assert!(!is_due(&mut phase, now + PAUSE + INTERVAL / 2));
        assert!(is_due(&mut phase, now + PAUSE + INTERVAL));
        phase.drain();
        assert!(!phase.is_running() && phase.is_at_work());
        assert!(is_due(&mut phase, now) && is_due(&mut phase, now));
    }

    #[test]
    fn a_lost_state_is_read_again_after_pauses_that_grow_until_a_checkpoint_is_written() {
        let now = Instant::now();
        let mut phase = running(now);
        let mut pause = PAUSE;
        for _ in 0..3 {
            assert_eq!(phase.lose(now, PAUSE), Effect::Pause);
            assert!(!phase.is_at_work() && !phase.has_failed() && phase.active().is_none(), "{phase:?}");
            assert!(!phase.is_restore_due(now + pause - Duration::from_millis(1)) && phase.is_restore_due(now + pause), "{phase:?}");
            phase.restore_with("next writer");
            assert_eq!(phase.restored("processor", None, Offset(0)), Effect::Resume(Offset(7)), "where it began, if nothing is committed");
            phase.resumed(now);
            pause *= 2;
        }
        assert_eq!(phase.checkpoint_written(), Effect::None);
        phase.lose(now, PAUSE);
        assert!(phase.is_restore_due(now + PAUSE));
    }

    #[test]
    fn the_pause_does_not_grow_for_ever() {
        let now = Instant::now();
        let mut phase = running(now);
        for _ in 0..40 {
            phase.lose(now, PAUSE);
            phase.restore_with("next writer");
        }
        phase.lose(now, PAUSE);
        assert!(phase.is_restore_due(now + PAUSE * (1 << DOUBLINGS_MAX)));
    }

    #[test]
    fn a_partition_that_is_given_up_is_left_to_its_next_owner() {
        let now = Instant::now();
        let mut phase = running(now);
        phase.drain();
        assert_eq!(phase.lose(now, PAUSE), Effect::Pause);
        assert!(phase.has_failed() && !phase.is_restore_due(now + Duration::from_secs(3_600)));
        // A partition with nothing to finish is not changed by draining.
        let mut restoring = Phase::restoring("writer");
        restoring.drain();
        assert_eq!(restoring.restored("processor", Some(Offset(1)), Offset(0)), Effect::Resume(Offset(1)));
    }

    #[test]
    fn a_group_that_has_rebalanced_takes_no_checkpoint_until_the_consumer_knows() {
        let mut phase = running(Instant::now());
        assert!(!phase.is_outdated());
        phase.outdated();
        assert!(phase.is_outdated());
        phase.drain();
        assert!(!phase.is_outdated(), "draining begins with what the group says now");
        phase.outdated();
        phase.checkpoint_written();
        assert!(!phase.is_outdated());
    }

    #[test]
    fn state_in_memory_has_no_writer() {
        let mut phase = Phase::<&str, &str>::in_memory("processor", Instant::now());
        assert!(phase.is_running() && phase.active().is_some_and(|work| work.writer().is_none()));
        phase.drain();
        assert!(!phase.is_running() && phase.active().is_some_and(|work| work.writer().is_none()));
        assert!(running(Instant::now()).active().is_some_and(|work| work.writer().is_some()));
    }
}
