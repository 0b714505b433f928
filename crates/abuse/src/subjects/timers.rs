//! What waits for the clock: when each subject has to be looked at.
//!
//! The clock may jump, for a source that lagged or because nothing came. Then all that was due on the way is done one after the other, as
//! of the second at which it was due and in the order of the subjects, as if the clock had stopped at each. So it does not matter how often
//! sources tell their time.

use std::collections::BTreeMap;

use super::SlotKey;

/// Places of subjects by the second since the epoch at which they are looked at. A subject is in it at the second that its slot says; other
/// entries are out of date and passed over. Slots and agenda are of one mind only as long as they stay together, wherever the state goes.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeMap<u32, Vec<SlotKey>>);

impl Timers {
    /// Adds a look at a place.
    pub(super) fn push(&mut self, second: u32, at: SlotKey) {
        self.0.entry(second).or_default().push(at);
    }

    /// Returns the next second at which there is something to look at.
    pub(super) fn next(&self) -> Option<u32> {
        self.0.first_key_value().map(|(second, _)| *second)
    }

    /// Takes out the places of a second.
    pub(super) fn take(&mut self, second: u32) -> Vec<SlotKey> {
        self.0.remove(&second).unwrap_or_default()
    }
}
