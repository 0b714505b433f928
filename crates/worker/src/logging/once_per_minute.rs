//! Log lines that others can cause in any number: each kind is logged once a minute, with a count.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two lines of the same kind.
const INTERVAL: Duration = Duration::from_secs(60);

/// Decides which events of a kind are logged. The kinds are held for ever, so their number has to be bounded.
#[derive(Debug)]
pub struct OncePerMinute<K> {
    kinds: Mutex<HashMap<K, Kind>>,
}

#[derive(Debug)]
struct Kind {
    logged_at: Instant,
    /// The events since then.
    unlogged: u64,
}

impl<K> Default for OncePerMinute<K> {
    fn default() -> Self {
        Self { kinds: Mutex::default() }
    }
}

impl<K: Eq + Hash> OncePerMinute<K> {
    /// Counts an event of this kind. Returns the number of events since the last line, with this event, if a line is due.
    pub fn count(&self, kind: K, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = kinds.get_mut(&kind) else {
            kinds.insert(kind, Kind { logged_at: now, unlogged: 0 });
            return Some(1);
        };
        known.unlogged += 1;
        if now.saturating_duration_since(known.logged_at) < INTERVAL {
            return None;
        }
        known.logged_at = now;
        Some(std::mem::take(&mut known.unlogged))
    }

    /// Forgets a kind, because what it stood for is over: its next event is logged at once. Returns whether there was an event.
    pub fn forget(&self, kind: &K) -> bool {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).remove(kind).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_logged_once_a_minute_with_the_number_of_its_events() {
        let (lines, start) = (OncePerMinute::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let counted =
            [("a", 0), ("a", 1), ("b", 2), ("a", 59), ("a", 60), ("a", 61), ("b", 62)].map(|(kind, second)| lines.count(kind, at(second)));
        assert_eq!(counted, [Some(1), None, Some(1), None, Some(3), None, Some(1)]);
        assert_eq!((lines.forget(&"a"), lines.forget(&"a")), (true, false));
        assert_eq!((lines.count("a", at(63)), lines.count("a", at(64))), (Some(1), None));
    }
}
