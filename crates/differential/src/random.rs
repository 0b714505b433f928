//! Random numbers that are the same for the same seed.

/// A generator of random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns the generator for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = end.max(1) as u64;
        usize::try_from(self.next_number() % end).unwrap_or_default()
    }

    /// Returns true in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of some texts; the empty text if there are none.
    pub fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts.get(self.below(texts.len())).copied().unwrap_or_default()
    }

    /// Changes a text at some places: characters and pieces are put in, taken away, doubled and swapped.
    pub fn mutate(&mut self, text: &str, pieces: &[&str]) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(3) {
            let at = self.below(characters.len() + 1);
            let end = (at + 1 + self.below(4)).min(characters.len());
            match self.below(5) {
                0 | 1 => drop(characters.splice(at..at, self.pick(pieces).chars())),
                2 if at < end => drop(characters.splice(at..end, self.pick(pieces).chars())),
                3 if at < end => drop(characters.drain(at..end)),
                _ if at < end => {
                    let doubled: Vec<char> = characters.get(at..end).unwrap_or_default().to_vec();
                    let to = self.below(characters.len() + 1);
                    characters.splice(to..to, doubled);
                }
                _ => {}
            }
        }
        characters.into_iter().collect()
    }
}
