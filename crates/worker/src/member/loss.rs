//! A member that has lost its partitions. The group takes it back within seconds, unless its consumer hangs: librdkafka may wait for ever for
//! a coordinator or a leader that was away for a moment.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::MemberError;

/// How long the group may take. Two rounds of a slow rebalance fit into it.
const LOST_MAX: Duration = Duration::from_secs(30);

/// Since when a member has been without the partitions that it lost.
#[derive(Debug, Default)]
pub(super) struct Loss(Mutex<Option<Instant>>);

impl Loss {
    /// Notes that the member has lost its partitions, or that the group has taken it back.
    pub fn note(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Checks that the group takes the member back in time. Time in which the brokers do not answer does not count.
    ///
    /// # Errors
    /// Returns [`MemberError::Lost`] if the group has not.
    pub fn check(&self, now: Instant, is_cut_off: bool) -> Result<(), MemberError> {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_cut_off {
            *since = since.map(|_| now);
        }
        match *since {
            Some(since) if now.saturating_duration_since(since) >= LOST_MAX => Err(MemberError::Lost),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_starts_over_once_brokers_answer_and_the_group_does_not_take_it_back() {
        let (loss, begin) = (Loss::default(), Instant::now());
        let is_over = |seconds, is_cut_off| loss.check(begin + Duration::from_secs(seconds), is_cut_off).is_err();
        assert!(!is_over(3600, false), "nothing was lost");
        loss.note(Some(begin));
        assert!(!is_over(29, false) && is_over(30, false));
        assert!(!is_over(100, true) && !is_over(129, false), "the brokers were away until then");
        assert!(is_over(130, false));
        loss.note(None);
        assert!(!is_over(3600, false), "the group has taken it back");
    }
}
