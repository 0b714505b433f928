//! Kafka's key hash, which decides on which partition a thread is.
//!
//! Java's default partitioner hashes keys with murmur2. aiokafka does the same, and so does librdkafka on request (`murmur2_random`). A
//! record on another partition came from a producer with another partitioner. Its thread is then split in two.

use super::Partition;

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
