//! A small generator of pseudo-random numbers (SplitMix64). It is written out here so that a seed gives the same traffic with every version
//! and on every machine: it takes only integer steps, and floating-point steps whose results IEEE 754 fixes.

/// A generator of pseudo-random numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns the generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to, and not including, `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let product = u128::from(self.bits()) * limit as u128;
        (product >> 64) as usize
    }

    /// Returns a number from 0 up to, and not including, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns whether something happens that has this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// Returns a size between two bounds, small ones being more frequent: half of them are within the first eighth of the range.
    pub fn size(&mut self, min: usize, max: usize) -> usize {
        let fraction = self.fraction();
        min + (max.saturating_sub(min) as f64 * fraction * fraction * fraction) as usize
    }
}

/// Draws ranks by Zipf's law with exponent 1: the second rank comes half as often as the first, the third a third as often.
#[derive(Debug, Clone)]
pub struct Zipf {
    /// Sums of the weights of all ranks up to each.
    sums: Vec<f64>,
}

impl Zipf {
    /// Returns the law over so many ranks.
    #[must_use]
    pub fn new(ranks: usize) -> Self {
        let mut sum = 0.0;
        let sums = (1..=ranks.max(1)).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self { sums: sums.collect() }
    }

    /// Draws a rank, from 0.
    pub fn draw(&self, random: &mut Random) -> usize {
        let total = self.sums.last().copied().unwrap_or_default();
        let at = random.fraction() * total;
        self.sums.partition_point(|sum| *sum <= at).min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_sequence() {
        // The first numbers of SplitMix64 for the seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(
            [random.bits(), random.bits(), random.bits()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn ranks_come_by_zipfs_law() {
        let (zipf, mut random) = (Zipf::new(1_000), Random::new(1));
        let mut counts = vec![0_u32; 1_000];
        (0..100_000).for_each(|_| counts[zipf.draw(&mut random)] += 1);
        let share = f64::from(counts[0]) / 100_000.0;
        assert!((0.128..0.139).contains(&share), "{share}");
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((1.8..2.2).contains(&ratio), "{ratio}");
        assert!(counts[500..].iter().sum::<u32>() > 8_000);
    }

    #[test]
    fn sizes_stay_within_their_bounds() {
        let mut random = Random::new(2);
        let sizes: Vec<_> = (0..10_000).map(|_| random.size(200, 4_000)).collect();
        assert!(sizes.iter().all(|size| (200..4_000).contains(size)));
        assert!(sizes.iter().filter(|size| **size < 675).count().abs_diff(5_000) < 300);
        assert_eq!(random.size(5, 5), 5);
        assert!((0..100).all(|_| random.below(3) < 3));
    }
}
