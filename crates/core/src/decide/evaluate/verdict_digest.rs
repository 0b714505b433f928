//! One digest over many verdicts.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;

use tollgate_json::digest::Digest;

/// How many threads can add verdicts side by side, about.
const SHARDS: usize = 64;

/// The digest of many verdicts, whatever order they come in: the sum of their SHA-256 digests, as numbers of 256 bits that wrap around, and
/// their count. So it is the same however the records were split over partitions, machines and cores. It tells whether two runs decided
/// alike; it is no proof against somebody who looks for verdicts that sum up to the same.
///
/// A verdict's `timestamp` is left out of it: a replay sends records at another time and is decided alike all the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerdictDigest {
    /// The sum, its lowest 64 bits first.
    limbs: [u64; 4],
    count: u64,
}

impl VerdictDigest {
    /// Adds a verdict, given as the JSON that is published.
    pub fn add(&mut self, json: &[u8]) {
        self.merge(&Self::of(json));
    }

    fn of(json: &[u8]) -> Self {
        let mut limbs = [0; 4];
        let digest = without_timestamp(json).map_or_else(|| Digest::of(json), |rest| Digest::of(&[rest, b"}"].concat()));
        for (limb, bytes) in limbs.iter_mut().rev().zip(digest.as_bytes().chunks_exact(8)) {
            *limb = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        }
        Self { limbs, count: 1 }
    }

    /// Adds all verdicts of another digest.
    pub fn merge(&mut self, other: &Self) {
        let mut carry = false;
        for (limb, added) in self.limbs.iter_mut().zip(other.limbs) {
            let (sum, first) = limb.overflowing_add(added);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, first || second);
        }
        self.count += other.count;
    }

    /// Returns how many verdicts were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Returns a verdict up to its timestamp, if it has one: a verdict ends with it.
fn without_timestamp(json: &[u8]) -> Option<&[u8]> {
    let text = json.strip_suffix(b"\"}")?;
    let quote = text.iter().rposition(|byte| *byte == b'"')?;
    // Within a string the quotes have backslashes before them, so this is the member itself.
    text.get(..=quote)?.strip_suffix(b",\"timestamp\":\"")
}

/// Verdicts of which each counts once, however often it is published. Several threads may add to it.
///
/// It remembers 64 bits of each verdict's digest, which is about 16 bytes of memory a verdict. Two different verdicts out of a hundred
/// million have the same 64 bits with a chance of 1 to 3,700.
#[derive(Debug)]
pub struct DistinctVerdicts {
    /// By some bits of the digest, so that threads seldom wait for each other.
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    seen: FxHashSet<u64>,
    digest: VerdictDigest,
}

impl Default for DistinctVerdicts {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl DistinctVerdicts {
    /// Adds a verdict, given as the JSON that is published. Returns whether it is new.
    pub fn add(&self, json: &[u8]) -> bool {
        let digest = VerdictDigest::of(json);
        let [id, place, ..] = digest.limbs;
        let shard = usize::try_from(place).unwrap_or_default() % SHARDS;
        let Some(shard) = self.shards.get(shard) else { return false };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = shard.seen.insert(id);
        if is_new {
            shard.digest.merge(&digest);
        }
        is_new
    }

    /// Returns the digest of all verdicts so far.
    #[must_use]
    pub fn digest(&self) -> VerdictDigest {
        self.shards.iter().fold(VerdictDigest::default(), |mut sum, shard| {
            sum.merge(&shard.lock().unwrap_or_else(PoisonError::into_inner).digest);
            sum
        })
    }
}

/// The form that users pin: `sha256-sum:<64 hex digits>:<count>`.
impl std::fmt::Display for VerdictDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [low, second, third, high] = self.limbs;
        write!(f, "sha256-sum:{high:016x}{third:016x}{second:016x}{low:016x}:{}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_verdicts_does_not_matter_and_their_number_does() {
        let of = |verdicts: &[&str]| {
            let mut digest = VerdictDigest::default();
            verdicts.iter().for_each(|verdict| digest.add(verdict.as_bytes()));
            digest
        };
        assert_eq!(of(&["{}"]).to_string(), format!("sha256-sum:{}:1", Digest::of(b"{}")));
        assert_eq!(of(&["a", "b", "c", "d"]), of(&["d", "b", "a", "c"]));
        let mut merged = of(&["a", "c"]);
        merged.merge(&of(&["d", "b"]));
        assert_eq!(merged, of(&["a", "b", "c", "d"]));
        for other in [&["a", "b", "c"][..], &["a", "b", "c", "e"], &["a", "b", "c", "d", "d"]] {
            assert_ne!(of(other), merged);
        }
    }

    /// Events of a file have no time, and a replay gives them others.
    #[test]
    fn the_time_of_an_event_does_not_matter_and_all_else_does() {
        let of = |verdict: &str| VerdictDigest::of(verdict.as_bytes());
        let plain = of(r#"{"code":"allow","tenant_id":"a"}"#);
        for time in ["2026-01-31T12:00:00Z", "1970-01-01T00:00:00.5+01:00"] {
            assert_eq!(of(&format!(r#"{{"code":"allow","tenant_id":"a","timestamp":"{time}"}}"#)), plain);
        }
        let names_it = r#"{"code":"allow","tenant_id":"a,\"timestamp\":\"b"}"#;
        assert_ne!(of(names_it), of(&names_it.replace(r#"\"b"#, r#"\"c"#)));
        assert_ne!(of(r#"{"code":"allow","tenant_id":"b","timestamp":"2026-01-31T12:00:00Z"}"#), plain);
        assert_eq!(without_timestamp(br#"{"timestamp":"#), None);
    }

    #[test]
    fn a_verdict_that_is_published_again_does_not_count() {
        let distinct = DistinctVerdicts::default();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    (0..1_000).for_each(|at| {
                        distinct.add(format!("verdict {at}").as_bytes());
                    });
                });
            }
        });
        assert!(!distinct.add(b"verdict 7") && distinct.add(b"another"));
        let mut plain = VerdictDigest::default();
        (0..1_000).for_each(|at| plain.add(format!("verdict {at}").as_bytes()));
        plain.add(b"another");
        assert_eq!(distinct.digest(), plain);
    }

    #[test]
    fn sums_carry_and_wrap_around() {
        let all = VerdictDigest { limbs: [u64::MAX; 4], count: 1 };
        let mut sum = all;
        sum.merge(&VerdictDigest { limbs: [1, 0, 0, 0], count: 1 });
        assert_eq!(sum, VerdictDigest { limbs: [0; 4], count: 2 });
        let mut twice = all;
        twice.merge(&all);
        assert_eq!(twice.limbs, [u64::MAX - 1, u64::MAX, u64::MAX, u64::MAX]);
    }
}
