//! What waits between a member and the judge of a policy on trial.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate_core::decide::shadow::Decision;
use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::event::record::{OwnedRecord, Partition};

/// The most records that wait for the judge, and their bytes.
const RECORDS_MAX: usize = 16_384;
const BYTES_MAX: usize = 64 << 20;

/// What the judge is handed.
#[derive(Debug)]
pub(super) enum JudgeMessage {
    /// A partition was taken over, with the sampled threads that the policy in force remembers there.
    Taken(Partition, Option<Box<ThreadStore>>),
    /// A partition was given up.
    GivenUp(Partition),
    /// Records of these threads were dropped.
    Missed(BTreeSet<(Partition, Box<str>)>),
    /// Records of any threads were dropped.
    MissedAny,
    /// A record that was decided on.
    Decided(Box<Decided>),
}

/// A record, and what the policy in force says.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) record: OwnedRecord,
    pub(super) partition: Partition,
    pub(super) thread_id: Box<str>,
    /// `None` where there is no verdict.
    pub(super) ours: Option<Decision>,
}

/// How much waits for the judge.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    records: AtomicUsize,
    bytes: AtomicUsize,
}

impl Waiting {
    pub(super) fn has_room(&self) -> bool {
        self.records.load(Ordering::Relaxed) < RECORDS_MAX && self.bytes.load(Ordering::Relaxed) < BYTES_MAX
    }

    pub(super) fn add(&self, bytes: usize) {
        self.records.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.records.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
