//! Checkpoints: writes the state of a partition as records of a compacted topic, and reads it back.
//!
//! ```text
//! partition        → version, owner, next offset, partition's time, number of partitions
//! <kind>/<key>     → version, applied offset, what is remembered         (null: the key is gone)
//! rekey            → version, from and to how many partitions the entries are being moved, and their sum
//! ```
//!
//! A checkpoint holds the entries that changed since the one before it. The state of a partition is what its records say last. A checkpoint
//! is the state as of exactly one offset, `next`: the first event that is not in it. Its writer commits `next` for the group in the same
//! transaction, after everything that was published for the events before it.
//!
//! Each stage defines its own entries ([`KeyedState`]): the deciding stage stores threads, under `thread/<id>`.
//!
//! The encoding does not depend on a library, because state outlives the program that wrote it. `layout!` defines what is written, and
//! `wire` how.

mod keyed_state;
mod rekey;
mod restore;
mod search;

pub use keyed_state::KeyedState;
pub use rekey::{Anchor, KeyedFor, Keying, OwnRecords, Place, Portable, Rekey, RekeyMark, StateSum, adopted_clock};
pub use restore::{Latest, Restore, Restored};
pub use search::CheckpointSearch;

pub use crate::engine::wire::Malformed;

use crate::engine::wire::{Input, Wire, layout};
use crate::event::record::{Offset, StreamClock};

/// The version of the format that is written. It is the first byte of every value.
pub const VERSION: u8 = 1;
/// The oldest version of the format that is read.
pub const VERSION_MIN: u8 = 1;

/// The key of a partition's own record.
const PARTITION_KEY: &str = "partition";
/// The key of the note that the entries of a partition are being moved.
const REKEY_KEY: &str = "rekey";
/// The key of a record that says nothing. No stage has such a key.
const FILLER_KEY: &str = "none";

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
    /// The first event that is not in the state: the offset to commit.
    pub next: Offset,
    /// The records to write. The partition's own record is the last.
    pub records: Vec<StateRecord>,
}

/// The partition's own record in a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionState {
    /// The owner of the state: the consumer group and the events topic, as `<group>/<topic>`.
    pub owner: String,
    /// The first event that is not in the state.
    pub next: Offset,
    /// The partition's time.
    pub clock: StreamClock,
    /// How many partitions the input topic had when the entries were keyed; `None` if a version before 5 wrote the record.
    pub partitions: Option<u32>,
}

/// The owner that a state must name, and the number of partitions that it must be keyed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateOwner<'o> {
    /// The consumer group and the events topic, as `<group>/<topic>`.
    pub name: &'o str,
    /// How many partitions the events topic has; `None` if any number will do.
    pub partitions: Option<u32>,
}

impl<'o> From<&'o str> for StateOwner<'o> {
    fn from(name: &'o str) -> Self {
        Self { name, partitions: None }
    }
}

impl<'o> From<&'o String> for StateOwner<'o> {
    fn from(name: &'o String) -> Self {
        Self::from(name.as_str())
    }
}

/// The subject of a record of the state topic, as its key names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKey<'k> {
    /// The partition itself.
    Partition,
    /// The note that its entries are being moved.
    Rekey,
    /// The entry under this key.
    Entry(&'k str),
}

/// Why a record of the state topic cannot be read, or why a partition's records are not a valid state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A newer version wrote the record.
    #[error(
        "the record is of version {found}, and this tollgate reads up to {VERSION}: run the newer tollgate that wrote it, or a later one"
    )]
    Newer {
        /// The version of the record.
        found: u8,
    },
    /// Something other than Tollgate wrote the record, or wrote over it.
    #[error("the record cannot be read ({0}): something other than tollgate has written it, and a null value for its key has it forgotten")]
    Malformed(#[from] Malformed),
    /// The record has a key that no version has used.
    #[error(
        "the record has a key of {bytes} bytes that is neither `partition` nor `{kind}/<id>`: something other than tollgate has written it, and a null value for its key has it forgotten"
    )]
    Key {
        /// The length of the key.
        bytes: usize,
        /// The kind of the entries of this topic.
        kind: &'static str,
    },
    /// There are entries, and there is no record that says as of which offset they are.
    #[error("{kind}s: {entries}, and no record of the partition: the topic is not what tollgate left there")]
    NoPartition {
        /// How many entries there are.
        entries: usize,
        /// Their kind.
        kind: &'static str,
    },
    /// An entry includes an event that the partition's record does not.
    #[error(
        "a {kind}'s state is as of offset {applied}, and the partition's ends before that ({next}): the topic is not what tollgate left there"
    )]
    Ahead {
        /// The kind of the entry.
        kind: &'static str,
        /// The offset of the last event in the entry.
        applied: Offset,
        /// The first offset that is not in the partition's state.
        next: Offset,
    },
    /// The state belongs to another group or topic.
    #[error(
        "the state is that of {found} (group/topic of events), and this is {wanted}: give each a state topic of its own (kafka.topics.state)"
    )]
    Foreign {
        /// The owner that the record names.
        found: String,
        /// The owner that reads it.
        wanted: String,
    },
    /// The entries are keyed for another number of partitions.
    #[error(
        "the state is keyed for {found} partitions, and this worker knows {wanted}: threads that hash elsewhere would start without what is known of them. Stop all workers of the group, run `tollgate state rekey`, and start them again"
    )]
    OtherPartitions {
        /// The number that the state names.
        found: u32,
        /// The number of partitions that there are.
        wanted: u32,
    },
    /// The entries are being moved to other partitions.
    #[error(
        "the state is being moved from {from} to {to} partitions, and that has not ended: let `tollgate state rekey --execute` end, or run it again"
    )]
    Rekeying {
        /// The number of partitions that they were keyed for.
        from: u32,
        /// The number of partitions that they will be keyed for.
        to: u32,
    },
}

impl StateRecord {
    /// Returns the record of an entry; `None` makes it a tombstone, because the entry is gone.
    #[must_use]
    pub fn entry<K: KeyedState>(key: &str, entry: Option<&K::Entry>) -> Self {
        let encode = |entry| {
            let mut out = Vec::with_capacity(128);
            K::encode(entry, &mut out);
            out
        };
        Self { key: format!("{}/{key}", K::KIND), value: entry.map(encode) }
    }

    /// Returns the partition's own record.
    #[must_use]
    pub fn partition(state: &PartitionState) -> Self {
        Self { key: PARTITION_KEY.to_owned(), value: Some(encode(state)) }
    }

    /// Returns the note that a partition's entries are being moved; `None` removes it.
    #[must_use]
    pub fn rekey(mark: Option<&RekeyMark>) -> Self {
        Self { key: REKEY_KEY.to_owned(), value: mark.map(encode) }
    }

    /// Returns a record that says nothing, for a transaction that is only begun to be aborted. Its value is null, so that it removes nothing
    /// and is no entry if it is read all the same.
    #[must_use]
    pub fn filler() -> Self {
        Self { key: FILLER_KEY.to_owned(), value: None }
    }

    /// Returns the bytes of key and value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Vec::len)
    }
}

impl Checkpoint {
    /// Returns the bytes of all keys and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.iter().map(StateRecord::bytes).sum()
    }

    /// Returns the keys of the entries that it contains.
    pub fn keys<K: KeyedState>(&self) -> impl Iterator<Item = &str> {
        self.records.iter().filter_map(|record| entry_key(&record.key, K::KIND))
    }
}

impl<'k> StateKey<'k> {
    /// Reads the key of a record, in a topic whose entries are of this kind.
    ///
    /// # Errors
    /// [`StateError::Key`] for a key of another form.
    pub fn read(key: Option<&'k [u8]>, kind: &'static str) -> Result<Self, StateError> {
        let key = key.unwrap_or_default();
        let error = StateError::Key { bytes: key.len(), kind };
        let text = std::str::from_utf8(key).map_err(|_| error.clone())?;
        match entry_key(text, kind) {
            Some(key) if !key.is_empty() => Ok(Self::Entry(key)),
            None if text == PARTITION_KEY => Ok(Self::Partition),
            None if text == REKEY_KEY => Ok(Self::Rekey),
            _ => Err(error),
        }
    }
}

/// Returns the key of an entry, taken from the key of its record.
fn entry_key<'k>(key: &'k str, kind: &str) -> Option<&'k str> {
    key.strip_prefix(kind)?.strip_prefix('/')
}

/// Reads the value of a partition's record.
pub fn read_partition(value: &[u8]) -> Result<PartitionState, StateError> {
    decode(value)
}

/// Reads the value of the note that a partition's entries are being moved.
pub fn read_rekey(value: &[u8]) -> Result<RekeyMark, StateError> {
    decode(value)
}

fn encode(value: &impl Wire) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    encode_into(value, &mut out);
    out
}

/// Writes a value behind the version.
pub(crate) fn encode_into(value: &impl Wire, out: &mut Vec<u8>) {
    out.push(VERSION);
    value.write(out);
}

/// Reads a value behind the version.
pub(crate) fn decode<T: Wire>(value: &[u8]) -> Result<T, StateError> {
    let (&version, bytes) = value.split_first().ok_or(Malformed::Truncated)?;
    match version {
        VERSION_MIN..=VERSION => Ok(Input::new(version.into(), bytes).whole()?),
        0 => Err(Malformed::Invalid("the version").into()),
        found => Err(StateError::Newer { found }),
    }
}

layout! {
    PartitionState { owner, next, clock, partitions }
    RekeyMark { from, to, sum }
    StateSum { entries, high, low }
    StreamClock { began_ms, now_ms, outvoted }
}

impl Wire for Offset {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        i64::read(input).map(Self)
    }
}
