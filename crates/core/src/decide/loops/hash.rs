//! A quick hash. Values of it stand in state, so it stays as it is from release to release and on every machine.

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The state of a hash. Two texts that are given in other pieces hash differently.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mix(u64);

impl Mix {
    /// Adds a number.
    pub fn word(&mut self, word: u64) {
        let product = (self.0.rotate_left(23) ^ word).wrapping_add(1).wrapping_mul(MULTIPLIER);
        self.0 = product ^ (product >> 32);
    }

    /// Adds a byte.
    pub fn byte(&mut self, byte: u8) {
        self.word(u64::from(byte));
    }

    /// Adds bytes, and how many they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        let last = rest.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte));
        self.word(last ^ (bytes.len() as u64) << 56);
    }

    /// Returns the hash.
    pub fn value(self) -> u64 {
        self.0
    }

    /// Returns half of the hash.
    pub fn half(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns a quarter of the hash.
    pub fn short(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

/// Returns the hash of bytes.
pub fn half_of(bytes: &[u8]) -> u32 {
    let mut mix = Mix::default();
    mix.bytes(bytes);
    mix.half()
}
