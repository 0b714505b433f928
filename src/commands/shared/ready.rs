//! Says on how many partitions a worker decides, once it does, and again when that changes.

use std::time::{Duration, Instant};

/// How long something has to stay as it is before it is said. While a group rebalances, partitions come and go.
const SETTLED: Duration = Duration::from_secs(1);
/// After how long a worker that was not ready says again that it is, though its partitions are as many as before.
const LONG: Duration = Duration::from_secs(10);

/// What was seen and said of a worker.
#[derive(Debug)]
pub(crate) struct Readiness {
    /// How many partitions were last seen at work, and since when; `None` while the worker is not ready.
    seen: (Option<usize>, Instant),
    /// How many were last said.
    said: Option<usize>,
}

impl Readiness {
    /// Returns the readiness of a worker that is not ready yet.
    pub(crate) fn new(now: Instant) -> Self {
        Self { seen: (None, now), said: None }
    }

    /// Takes the number of partitions at work, or `None` if the worker is not ready. Returns the number if it is to be said now.
    pub(crate) fn take(&mut self, at_work: Option<usize>, now: Instant) -> Option<usize> {
        let (seen, since) = self.seen;
        if at_work != seen {
            if seen.is_none() && now.duration_since(since) >= LONG {
                self.said = None;
            }
            self.seen = (at_work, now);
        }
        let is_first = self.said.is_none();
        let has_settled = is_first || now.duration_since(self.seen.1) >= SETTLED;
        let news = at_work.filter(|count| has_settled && self.said != Some(*count));
        self.said = news.or(self.said);
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_and_again_when_it_has_changed_for_a_while() {
        let start = Instant::now();
        let mut readiness = Readiness::new(start);
        let mut take = |at_work, ms| readiness.take(at_work, start + Duration::from_millis(ms));
        assert_eq!((take(None, 100), take(Some(16), 200), take(Some(16), 2_000)), (None, Some(16), None));
        // A rebalance: what comes and goes within a second is not said.
        assert_eq!((take(None, 3_000), take(Some(12), 3_100), take(Some(8), 3_900), take(Some(8), 4_500)), (None, None, None, None));
        assert_eq!((take(Some(8), 4_900), take(Some(8), 6_000)), (Some(8), None));
        // Back to the same after a moment, and after a long time.
        assert_eq!((take(None, 7_000), take(Some(8), 8_000), take(Some(8), 9_500)), (None, None, None));
        assert_eq!((take(None, 10_000), take(None, 19_000), take(Some(8), 20_000)), (None, None, Some(8)));
    }
}
