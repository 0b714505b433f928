//! Checkpoints: the state of a partition as records of a compacted topic, and back.
//!
//! ```text
//! partition        → version, owner, next offset, partition's time
//! thread/<id>      → version, applied offset, turn, calls, counters      (null: the thread is gone)
//! ```
//!
//! A checkpoint holds the threads that changed since the one before it, and the state of a partition is what its records say last. It is
//! the state as of exactly one offset: `next`, the first event that is not in it. Whoever writes it commits `next` for the group in the
//! same transaction, behind the verdicts of everything before it.
//!
//! The encoding is our own because it outlives us: see `layout` for what is written, and `wire` for how.

mod latest;
mod layout;
mod restore;
mod view;

pub use latest::Latest;
pub use restore::{Restore, Restored};
pub use view::ThreadView;

pub use crate::wire::Malformed;

use crate::record::Offset;
use crate::thread::{StoredThread, StreamClock};
use crate::wire::{Input, Wire};

/// The version that is written. The first byte of every value.
pub const VERSION: u8 = 3;

/// The key of a partition's own record.
const PARTITION_KEY: &str = "partition";
/// What precedes the id in the key of a thread's record.
const THREAD_KEY_PREFIX: &str = "thread/";

/// One record of the state topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRecord {
    /// Its key.
    pub key: String,
    /// Its value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
}

/// What changed in a partition up to an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The first event that the state does not know: what to commit.
    pub next: Offset,
    /// The records to write, the partition's own last.
    pub records: Vec<StateRecord>,
}

/// What a checkpoint says of the partition itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionState {
    /// Whose state it is: the consumer group and the events topic, as `<group>/<topic>`.
    pub owner: String,
    /// The first event that the state does not know.
    pub next: Offset,
    /// The partition's time.
    pub clock: StreamClock,
}

/// Whose a record of the state topic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKey<'k> {
    /// The partition's own.
    Partition,
    /// A thread's.
    Thread(&'k str),
}

/// Why a record cannot be read, or a partition's records are not its state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A newer version wrote it.
    #[error(
        "the record is of version {found}, and this tollgate reads up to {VERSION}: run the newer tollgate that wrote it, or a later one"
    )]
    Newer {
        /// Its version.
        found: u8,
    },
    /// Something else wrote it, or wrote over it.
    #[error("the record cannot be read ({0}): something other than tollgate has written it, and a null value for its key has it forgotten")]
    Malformed(#[from] Malformed),
    /// It has a key that no version has used.
    #[error(
        "the record has a key of {0} bytes that is neither `partition` nor `thread/<id>`: something other than tollgate has written it, and a null value for its key has it forgotten"
    )]
    Key(usize),
    /// There are threads and nothing that says as of when.
    #[error("threads: {threads}, and no record of the partition: the topic is not what tollgate left there")]
    NoPartition {
        /// How many.
        threads: usize,
    },
    /// A thread knows an event that the partition does not.
    #[error(
        "a thread's state is as of offset {applied}, and the partition's ends before that ({next}): the topic is not what tollgate left there"
    )]
    Ahead {
        /// What the thread knows.
        applied: Offset,
        /// What the partition does not.
        next: Offset,
    },
    /// Another group's.
    #[error(
        "the state is that of {found} (group/topic of events), and this is {wanted}: give each a state topic of its own (kafka.topics.state)"
    )]
    Foreign {
        /// Whose it is.
        found: String,
        /// Who reads it.
        wanted: String,
    },
}

impl StateRecord {
    /// The record of a thread; `None` says that it is gone.
    #[must_use]
    pub fn thread(thread_id: &str, stored: Option<&StoredThread>) -> Self {
        Self { key: format!("{THREAD_KEY_PREFIX}{thread_id}"), value: stored.map(encode) }
    }

    /// The record of the partition.
    #[must_use]
    pub fn partition(state: &PartitionState) -> Self {
        Self { key: PARTITION_KEY.to_owned(), value: Some(encode(state)) }
    }

    /// Bytes of key and value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Vec::len)
    }
}

impl Checkpoint {
    /// Bytes of all keys and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.iter().map(StateRecord::bytes).sum()
    }

    /// The threads that it speaks of.
    pub fn thread_ids(&self) -> impl Iterator<Item = &str> {
        self.records.iter().filter_map(|record| record.key.strip_prefix(THREAD_KEY_PREFIX))
    }
}

impl<'k> StateKey<'k> {
    /// Reads a record's key.
    ///
    /// # Errors
    /// [`StateError::Key`].
    pub fn read(key: Option<&'k [u8]>) -> Result<Self, StateError> {
        let key = key.unwrap_or_default();
        let text = std::str::from_utf8(key).map_err(|_| StateError::Key(key.len()))?;
        match text.strip_prefix(THREAD_KEY_PREFIX) {
            Some(thread_id) if !thread_id.is_empty() => Ok(Self::Thread(thread_id)),
            None if text == PARTITION_KEY => Ok(Self::Partition),
            _ => Err(StateError::Key(key.len())),
        }
    }
}

/// Reads the value of a thread's record.
///
/// # Errors
/// [`StateError::Newer`] or [`StateError::Malformed`].
pub fn read_thread(value: &[u8]) -> Result<StoredThread, StateError> {
    decode(value)
}

/// Reads the value of a partition's record.
///
/// # Errors
/// [`StateError::Newer`] or [`StateError::Malformed`].
pub fn read_partition(value: &[u8]) -> Result<PartitionState, StateError> {
    decode(value)
}

fn encode(value: &impl Wire) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.push(VERSION);
    value.write(&mut out);
    out
}

fn decode<T: Wire>(value: &[u8]) -> Result<T, StateError> {
    let (&version, bytes) = value.split_first().ok_or(Malformed::Truncated)?;
    match version {
        1..=VERSION => Ok(Input::new(version.into(), bytes).whole()?),
        0 => Err(Malformed::Invalid("the version").into()),
        found => Err(StateError::Newer { found }),
    }
}
