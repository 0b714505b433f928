//! Checkpoints: the state of a partition as records of a compacted topic, and back.
//!
//! ```text
//! partition        → version, owner, next offset, partition's time
//! <kind>/<key>     → version, applied offset, what is remembered         (null: the key is gone)
//! ```
//!
//! A checkpoint holds the entries that changed since the one before it, and the state of a partition is what its records say last. It is
//! the state as of exactly one offset: `next`, the first event that is not in it. Whoever writes it commits `next` for the group in the
//! same transaction, behind what was published for everything before it.
//!
//! What an entry is, is its stage's matter ([`KeyedState`]): the deciding stage keeps threads, under `thread/<id>`.
//!
//! The encoding is our own because it outlives us: see `layout` for what is written, and `wire` for how.

mod keyed_state;
mod latest;
mod layout;
mod restore;
mod threads;
mod view;

pub use keyed_state::KeyedState;
pub use latest::Latest;
pub use restore::{Restore, Restored};
pub use view::ThreadView;

pub use crate::wire::Malformed;

use crate::record::{Offset, StreamClock};
use crate::thread::StoredThread;
use crate::wire::{Input, Wire};

/// The version that is written. The first byte of every value.
pub const VERSION: u8 = 3;

/// The key of a partition's own record.
const PARTITION_KEY: &str = "partition";

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
    /// That of what is remembered under a key.
    Entry(&'k str),
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
        "the record has a key of {bytes} bytes that is neither `partition` nor `{kind}/<id>`: something other than tollgate has written it, and a null value for its key has it forgotten"
    )]
    Key {
        /// How long it is.
        bytes: usize,
        /// What the entries of this topic are called.
        kind: &'static str,
    },
    /// There are entries and nothing that says as of when.
    #[error("{kind}s: {entries}, and no record of the partition: the topic is not what tollgate left there")]
    NoPartition {
        /// How many.
        entries: usize,
        /// What they are called.
        kind: &'static str,
    },
    /// An entry knows an event that the partition does not.
    #[error(
        "a {kind}'s state is as of offset {applied}, and the partition's ends before that ({next}): the topic is not what tollgate left there"
    )]
    Ahead {
        /// What the entry is called.
        kind: &'static str,
        /// What it knows.
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
    /// Returns the record of what is remembered under a key; `None` says that it is gone.
    #[must_use]
    pub fn entry<K: KeyedState>(key: &str, entry: Option<&K::Entry>) -> Self {
        let encode = |entry| {
            let mut out = Vec::with_capacity(128);
            K::encode(entry, &mut out);
            out
        };
        Self { key: format!("{}/{key}", K::KIND), value: entry.map(encode) }
    }

    /// Returns the record of the partition.
    #[must_use]
    pub fn partition(state: &PartitionState) -> Self {
        Self { key: PARTITION_KEY.to_owned(), value: Some(encode(state)) }
    }

    /// Returns bytes of key and value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Vec::len)
    }
}

impl Checkpoint {
    /// Returns bytes of all keys and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.iter().map(StateRecord::bytes).sum()
    }

    /// Returns the keys that it speaks of.
    pub fn keys<K: KeyedState>(&self) -> impl Iterator<Item = &str> {
        self.records.iter().filter_map(|record| entry_key(&record.key, K::KIND))
    }
}

impl<'k> StateKey<'k> {
    /// Reads a record's key in a topic whose entries are of this kind.
    ///
    /// # Errors
    /// [`StateError::Key`].
    pub fn read(key: Option<&'k [u8]>, kind: &'static str) -> Result<Self, StateError> {
        let key = key.unwrap_or_default();
        let error = StateError::Key { bytes: key.len(), kind };
        let text = std::str::from_utf8(key).map_err(|_| error.clone())?;
        match entry_key(text, kind) {
            Some(key) if !key.is_empty() => Ok(Self::Entry(key)),
            None if text == PARTITION_KEY => Ok(Self::Partition),
            _ => Err(error),
        }
    }
}

/// Returns the key of what is remembered, out of that of its record.
fn entry_key<'k>(key: &'k str, kind: &str) -> Option<&'k str> {
    key.strip_prefix(kind)?.strip_prefix('/')
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
    encode_into(value, &mut out);
    out
}

fn encode_into(value: &impl Wire, out: &mut Vec<u8>) {
    out.push(VERSION);
    value.write(out);
}

fn decode<T: Wire>(value: &[u8]) -> Result<T, StateError> {
    let (&version, bytes) = value.split_first().ok_or(Malformed::Truncated)?;
    match version {
        1..=VERSION => Ok(Input::new(version.into(), bytes).whole()?),
        0 => Err(Malformed::Invalid("the version").into()),
        found => Err(StateError::Newer { found }),
    }
}
