//! What waits for the clock: when each subject has to be looked at.
//!
//! The clock may jump, for a source that lagged or because nothing came. Then all that was due on the way is done one after the other, as
//! of the second at which it was due and in the order of the subjects, as if the clock had stopped at each. So it does not matter how often
//! sources tell their time.

use std::collections::BTreeMap;

use super::subjects::SlotKey;

/// Places of subjects by the second since the epoch at which they are looked at. A subject is in it at the second that its place says; other
/// entries are out of date and passed over.
#[derive(Debug, Default)]
pub(super) struct Agenda(BTreeMap<u32, Vec<SlotKey>>);

impl Agenda {
    /// Adds a look at a place.
    pub(super) fn push(&mut self, second: u32, at: SlotKey) {
        self.0.entry(second).or_default().push(at);
    }

    /// Returns the next second at which there is something to look at.
    pub(super) fn next(&self) -> Option<u32> {
        self.0.first_key_value().map(|(second, _)| *second)
    }

    /// Takes out the places of the next second.
    pub(super) fn take(&mut self) -> Vec<SlotKey> {
        self.0.pop_first().map(|(_, places)| places).unwrap_or_default()
    }
}

/// The second that nothing is looked at any more: a time as far ahead is forged, and what would wait for it waits for nothing.
pub(super) const NEVER_S: u32 = u32::MAX;

/// Returns the first whole second since the epoch that is not before a time, or [`NEVER_S`].
pub(super) fn second_of(time_ms: i64) -> u32 {
    let second = time_ms.div_euclid(1_000).saturating_add(i64::from(time_ms.rem_euclid(1_000) > 0));
    u32::try_from(second.max(1)).unwrap_or(NEVER_S)
}

/// Returns a second as milliseconds since the epoch.
pub(super) fn time_of(second: u32) -> i64 {
    i64::from(second) * 1_000
}

/// Returns the first whole minute that is not before a time. What is merely dropped is dropped by the minute, so that there are fewer
/// entries.
pub(super) fn whole_minute(time_ms: i64) -> i64 {
    let minute = time_ms.div_euclid(60_000).saturating_add(i64::from(time_ms.rem_euclid(60_000) > 0));
    minute.saturating_mul(60_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_never_looked_at_too_early() {
        assert_eq!([1_000, 1_001, 2_000, -5, i64::MAX].map(second_of), [1, 2, 2, 1, u32::MAX]);
        assert_eq!([60_000, 60_001, -1].map(whole_minute), [60_000, 120_000, 0]);
        assert_eq!(time_of(second_of(1_500)), 2_000);
    }
}
