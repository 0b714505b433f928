//! SHA-256 digests. State and verdicts hold digests in place of arguments and results, and state holds fingerprints in place of most ids.

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A whole SHA-256 digest, printed as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

/// The first half of a SHA-256 digest. It is enough to tell ids apart, in half the memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 16]);

impl Digest {
    /// Returns the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the digest of several parts, each preceded by its length, so that no two lists of parts collide.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Returns the digest with these bytes.
    #[must_use]
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the 64 lower-case hex digits.
    #[must_use]
    pub fn hex(&self) -> [u8; 64] {
        hex(&self.0)
    }

    /// Returns the first half of the digest.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let [head @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = self.0;
        Fingerprint(head)
    }
}

impl Fingerprint {
    /// Returns the fingerprint with these bytes.
    #[must_use]
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the 32 lower-case hex digits.
    #[must_use]
    pub fn hex(&self) -> [u8; 32] {
        hex(&self.0)
    }

    /// Returns the fingerprint of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Digest::of(text.as_bytes()).fingerprint()
    }
}

/// The digest of many verdicts, whatever order they come in: the sum of their SHA-256 digests, as numbers of 256 bits that wrap around, and
/// their count. So it is the same however the records were split over partitions, machines and cores. It tells whether two runs decided
/// alike; it is no proof against somebody who looks for verdicts that sum up to the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerdictDigest {
    /// The sum, its lowest 64 bits first.
    limbs: [u64; 4],
    count: u64,
}

impl VerdictDigest {
    /// Adds a verdict, given as the JSON that is published.
    pub fn add(&mut self, json: &[u8]) {
        let mut limbs = [0; 4];
        for (limb, bytes) in limbs.iter_mut().rev().zip(Digest::of(json).as_bytes().chunks_exact(8)) {
            *limb = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        }
        self.merge(&Self { limbs, count: 1 });
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

/// The form that users pin: `sha256-sum:<64 hex digits>:<count>`.
impl std::fmt::Display for VerdictDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [low, second, third, high] = self.limbs;
        write!(f, "sha256-sum:{high:016x}{third:016x}{second:016x}{low:016x}:{}", self.count)
    }
}

/// Returns some bytes as lower-case hex digits, in an array of twice their length.
fn hex<const BYTES: usize, const DIGITS: usize>(bytes: &[u8; BYTES]) -> [u8; DIGITS] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
    let mut text = [0; DIGITS];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0x0f)]);
    }
    text
}

/// Writes hex digits in one piece. Writing them byte by byte would cost more than the digest.
fn write_hex(digits: &[u8], f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    f.write_str(std::str::from_utf8(digits).unwrap_or_default())
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_hex(&self.hex(), f)
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_hex(&self.hex(), f)
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_hex(&self.hex(), f)
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_hex(&self.hex(), f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_print_as_hex() {
        assert_eq!(Digest::of(b"{}").to_string(), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        assert_eq!(Digest::of(b"{}").fingerprint().to_string(), "44136fa355b3678a1146ad16f7e8649e");
    }

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

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(Digest::of_parts(&[b"ab", b"c"]), Digest::of_parts(&[b"a", b"bc"]));
    }
}
