//! A Kafka record as the core sees it, the partition of its key, and the time of a partition.

mod clock;

pub use clock::StreamClock;

/// The number of a partition. It is a type of its own, so that it cannot be mistaken for an [`Offset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub i32);

/// The position of a record in its partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

impl Offset {
    /// Returns the position behind this one, which a consumer commits once this record is finished.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::fmt::Display for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A record header; its value may be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The header's name, case-sensitive as in Kafka.
    pub name: &'a str,
    /// The header's value.
    pub value: Option<&'a [u8]>,
}

/// A consumed record, borrowed from its consumer.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The topic it stands in.
    pub topic: &'a str,
    /// The partition it stands in.
    pub partition: Partition,
    /// Its offset there.
    pub offset: Offset,
    /// The record's own timestamp in milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is Kafka's null.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: &'a [Header<'a>],
}

impl<'a> Record<'a> {
    /// Returns the value of the last header of that name, if it is not null.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().rev().find(|header| header.name == name).and_then(|header| header.value)
    }

    /// Returns the record's position as `<topic>/<partition>/<offset>`. This is the id of an event that brings none.
    #[must_use]
    pub fn coordinates(&self) -> String {
        format!("{}/{}/{}", self.topic, self.partition, self.offset)
    }
}

/// An owned copy of a record, for a record that has to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRecord {
    topic: Box<str>,
    partition: Partition,
    offset: Offset,
    timestamp_ms: Option<i64>,
    key: Option<Box<[u8]>>,
    value: Option<Box<[u8]>>,
    headers: Box<[OwnedHeader]>,
}

type OwnedHeader = (Box<str>, Option<Box<[u8]>>);

impl OwnedRecord {
    /// Returns a copy of a record.
    #[must_use]
    pub fn of(record: &Record<'_>) -> Self {
        Self {
            topic: record.topic.into(),
            partition: record.partition,
            offset: record.offset,
            timestamp_ms: record.timestamp_ms,
            key: record.key.map(Into::into),
            value: record.value.map(Into::into),
            headers: record.headers.iter().map(|header| (header.name.into(), header.value.map(Into::into))).collect(),
        }
    }

    /// Returns the record's offset.
    #[must_use]
    pub fn offset(&self) -> Offset {
        self.offset
    }

    /// Calls `use_record` with the record in its borrowed form, and returns the result.
    pub fn with_borrowed<T>(&self, use_record: impl FnOnce(&Record<'_>) -> T) -> T {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
        use_record(&Record {
            topic: &self.topic,
            partition: self.partition,
            offset: self.offset,
            timestamp_ms: self.timestamp_ms,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: &headers,
        })
    }

    /// Returns about how many bytes the record takes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let length = |bytes: &Option<Box<[u8]>>| bytes.as_ref().map_or(0, |bytes| bytes.len());
        let headers: usize = self.headers.iter().map(|(name, value)| size_of::<OwnedHeader>() + name.len() + length(value)).sum();
        size_of::<Self>() + self.topic.len() + length(&self.key) + length(&self.value) + headers
    }
}

/// What the state of a partition has let go of to keep within its limits, since it was made. It is counted for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departures {
    /// Entries that were dropped because they were idle for too long.
    pub expired: u64,
    /// Entries that were dropped to make room for others.
    pub evicted: u64,
    /// Entries that were not taken in, because nothing could make room for them.
    pub refused: u64,
}

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;

/// Returns the partition of a key among `partitions`, as Java computes it: `(murmur2(key) & 0x7fffffff) % partitions`.
#[must_use]
pub fn partition_of(key: &[u8], partitions: u32) -> Partition {
    let positive = murmur2(key) & 0x7fff_ffff;
    Partition(positive.checked_rem(partitions).and_then(|partition| i32::try_from(partition).ok()).unwrap_or_default())
}

/// Returns the hash of some bytes by Kafka's variant of MurmurHash2.
#[must_use]
pub fn murmur2(data: &[u8]) -> u32 {
    // Java's length is a 32-bit int; a Kafka key is far below 4 GiB.
    let mut hash = SEED ^ (data.len() as u32);
    let mut chunks = data.chunks_exact(4);
    for chunk in &mut chunks {
        let mut word = chunk.iter().rev().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)).wrapping_mul(MULTIPLIER);
        word ^= word >> 24;
        hash = hash.wrapping_mul(MULTIPLIER) ^ word.wrapping_mul(MULTIPLIER);
    }
    let tail = chunks.remainder();
    if !tail.is_empty() {
        hash ^= tail.iter().rev().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte));
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors that Kafka's own tests publish.
    #[test]
    fn hashes_as_java_does() {
        let vectors: Vec<serde_json::Value> = serde_json::from_str(include_str!("../../../tests/fixtures/murmur2.json")).unwrap();
        assert_eq!(vectors.len(), 6);
        for vector in vectors {
            let key = vector["key"].as_str().unwrap();
            assert_eq!(Some(i64::from(murmur2(key.as_bytes()) as i32)), vector["murmur2"].as_i64(), "{key}");
        }
    }

    #[test]
    fn no_partitions_is_no_fault() {
        assert_eq!(partition_of(b"x", 0), Partition(0));
        assert!(partition_of(b"x", 7).0 < 7);
    }
}
