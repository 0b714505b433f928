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

    /// Returns the first eight bytes, as a big-endian number.
    pub fn first_u64(&self) -> u64 {
        self.0.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// Returns the first sixteen bytes, as two numbers.
    pub fn first_words(&self) -> (u64, u64) {
        let words = u128::from_ne_bytes(self.fingerprint().0);
        (words as u64, (words >> 64) as u64)
    }

    /// Returns the digest with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads a digest of 64 lower-case hex digits; `None` of any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
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
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Reads a fingerprint of 32 lower-case hex digits; `None` of any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the first half as a number, which tells it from another one where that is not looked for with intent.
    #[must_use]
    pub fn mark(&self) -> u64 {
        let (mark, _) = self.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
        u64::from_be_bytes(*mark)
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

/// Returns the bytes of lower-case hex digits, two digits for each byte; `None` of any other text.
fn unhex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (mut bytes, mut digits) = ([0; BYTES], text.bytes());
    for byte in &mut bytes {
        *byte = (digit(digits.next()?)? << 4) | digit(digits.next()?)?;
    }
    digits.next().is_none().then_some(bytes)
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
    fn lower_case_hex_digits_are_read_and_nothing_else() {
        let (digest, half) = (Digest::of(b"x"), Fingerprint::of("x"));
        let (text, half_text) = (digest.to_string(), half.to_string());
        assert_eq!((Digest::parse(&text), Fingerprint::parse(&half_text)), (Some(digest), Some(half)));
        for bad in ["", "ab", &half_text, &format!("{text}0"), &text.to_uppercase(), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
        assert_eq!(Fingerprint::parse(&text), None);
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(Digest::of_parts(&[b"ab", b"c"]), Digest::of_parts(&[b"a", b"bc"]));
    }
}
