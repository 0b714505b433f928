//! What a member hands to the judge of a policy on trial. It never waits: what finds no room is dropped, and the judge is told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use tollgate_core::decide::shadow::{Decision, Shadow};
use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::event::record::{OwnedRecord, Partition, Record};

use super::Trial;
use super::judge;
use super::queue::{Decided, JudgeMessage, Waiting};

/// The most threads with dropped records that are remembered one by one.
const MISSED_MAX: usize = 16_384;

/// A member's end of the queue. When it is dropped, the judge ends.
#[derive(Debug)]
pub struct ShadowFeed {
    trial: Trial,
    /// `None` if there is no judge: the system gives no more threads, or no producer could be made.
    judge: Option<Sender<JudgeMessage>>,
    waiting: Arc<Waiting>,
    missed: BTreeSet<(Partition, Box<str>)>,
    has_missed_any: bool,
}

impl ShadowFeed {
    /// Starts the judge of a member. Without one, every record is dropped and counted.
    #[must_use]
    pub fn start(trial: &Trial) -> Self {
        let (sender, fed) = channel();
        let waiting = Arc::<Waiting>::default();
        let started = judge::start(trial.clone(), fed, Arc::clone(&waiting));
        if let Err(error) = &started {
            tracing::error!(%error, "the policy on trial is not tried");
        }
        let judge = started.is_ok().then_some(sender);
        Self { trial: trial.clone(), judge, waiting, missed: BTreeSet::new(), has_missed_any: false }
    }

    /// Notes that a partition was taken over, with the state of the policy in force.
    pub fn taken(&self, partition: Partition, ours: Option<&ThreadStore>) {
        let sampled = ours.map(|ours| Shadow::sampled(ours, &self.trial.policy, self.trial.sample));
        self.send(JudgeMessage::Taken(partition, sampled.map(Box::new)));
    }

    /// Notes that a partition was given up.
    pub fn partition_revoked(&self, partition: Partition) {
        self.send(JudgeMessage::GivenUp(partition));
    }

    /// Hands over a record, with what the policy in force says, if its thread is in the sample.
    pub fn decided(&mut self, record: &Record<'_>, thread_id: &str, ours: impl FnOnce() -> Option<Decision>) {
        if !self.trial.sample.has(thread_id) {
            return;
        }
        if !self.waiting.has_room() || !self.tell_missed() {
            return self.drop_record(record.partition, thread_id);
        }
        let owned = OwnedRecord::of(record);
        let bytes = owned.bytes();
        self.waiting.add(bytes);
        let decided = Decided { record: owned, partition: record.partition, thread_id: thread_id.into(), ours: ours() };
        if !self.send(JudgeMessage::Decided(Box::new(decided))) {
            self.waiting.remove(bytes);
            self.drop_record(record.partition, thread_id);
        }
    }

    fn drop_record(&mut self, partition: Partition, thread_id: &str) {
        self.trial.metrics.shadow_dropped.inc();
        if self.missed.len() >= MISSED_MAX {
            self.missed.clear();
            self.has_missed_any = true;
        }
        if !self.has_missed_any {
            self.missed.insert((partition, thread_id.into()));
        }
    }

    /// Tells the judge what was dropped before it gets the next record. Returns false if there is no judge.
    fn tell_missed(&mut self) -> bool {
        if self.has_missed_any && !self.send(JudgeMessage::MissedAny) {
            return false;
        }
        self.has_missed_any = false;
        if self.missed.is_empty() {
            return self.judge.is_some();
        }
        let missed = std::mem::take(&mut self.missed);
        self.send(JudgeMessage::Missed(missed))
    }

    /// Returns whether there is a judge to take it.
    fn send(&self, fed: JudgeMessage) -> bool {
        self.judge.as_ref().is_some_and(|judge| judge.send(fed).is_ok())
    }
}
