//! A sample of threads that depends on nothing but their ids, so that everybody who takes the same share takes the same threads.

use tollgate_json::digest::Digest;

/// A share of all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Threads below this are in it: the share, in units of 2^-64.
    below: u128,
}

impl Sample {
    /// Every thread.
    pub const ALL: Self = Self { below: 1 << 64 };

    /// Returns the sample of this many per cent of all threads; `None` unless it is more than 0 and at most 100.
    #[must_use]
    pub fn of_percent(percent: f64) -> Option<Self> {
        let is_share = percent > 0.0 && percent <= 100.0;
        // Casts of floating-point numbers saturate, and the least share still has a place.
        is_share.then(|| Self { below: ((percent / 100.0 * 2_f64.powi(64)) as u128).clamp(1, 1 << 64) })
    }

    /// Returns whether a thread is in the sample: the first eight bytes of the SHA-256 of its id, as a big-endian number, are below the
    /// share of 2^64.
    #[must_use]
    pub fn has(self, thread_id: &str) -> bool {
        self == Self::ALL || u128::from(Digest::of(thread_id.as_bytes()).first_u64()) < self.below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_and_a_larger_one_has_it_all() {
        let ids: Vec<_> = (0..20_000).map(|number| format!("thread-{number}")).collect();
        let of = |percent| ids.iter().filter(|id| Sample::of_percent(percent).unwrap().has(id)).collect::<Vec<_>>();
        let (five, fifty, all) = (of(5.0), of(50.0), of(100.0));
        assert!((900..1_100).contains(&five.len()) && (9_700..10_300).contains(&fifty.len()), "{} {}", five.len(), fifty.len());
        assert_eq!(all.len(), ids.len());
        assert!(five.iter().all(|id| fifty.contains(id)));
    }

    /// The rule is documented, and others compute it too.
    #[test]
    fn the_rule_is_the_documented_one() {
        // SHA-256 of "t1" begins with 628b49d96dcde97a, of "abc" with ba7816bf8f01cfea.
        let half = Sample::of_percent(50.0).unwrap();
        assert!(half.has("t1") && !half.has("abc"));
        assert!(Sample::of_percent(72.9).unwrap().has("abc") && !Sample::of_percent(72.8).unwrap().has("abc"));
    }

    #[test]
    fn only_shares_are_samples() {
        for percent in [0.0, -1.0, 100.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Sample::of_percent(percent), None);
        }
        assert_eq!(Sample::of_percent(100.0), Some(Sample::ALL));
        assert!(Sample::of_percent(f64::MIN_POSITIVE).is_some());
    }
}
