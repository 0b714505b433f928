//! Random numbers that are the same for the same seed.

/// A generator of random numbers, with the ways in which cases are made.
#[derive(Debug, Clone)]
pub struct Random(fastrand::Rng);

impl Random {
    /// Returns the generator for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns a number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end.max(1))
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
