//! What became of each event: when the producer heard that it is written, and when its verdict was there.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// An event, by its number in the traffic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Event {
    pub(crate) thread: String,
    /// Whether it gets a verdict.
    pub(crate) is_awaited: bool,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    /// When it was given to the producer, in microseconds since 1970.
    pub(crate) sent_us: u64,
    /// When the producer heard that it is written, in microseconds since 1970; 0 if it has not.
    pub(crate) acknowledged_us: u64,
    /// When the reader of decisions saw its first verdict; 0 if it has not.
    pub(crate) seen_us: u64,
    /// When the broker appended that, in milliseconds.
    pub(crate) appended_ms: i64,
    pub(crate) verdict: Vec<u8>,
    /// Further copies of the verdict.
    pub(crate) copies: u32,
    /// A copy that differs from the first.
    pub(crate) unlike: Option<Vec<u8>>,
}

impl Event {
    /// Returns how long its own acknowledgement was waited for, in microseconds.
    pub(crate) fn unacknowledged_us(&self) -> Option<u64> {
        (self.acknowledged_us > 0).then(|| self.acknowledged_us.saturating_sub(self.sent_us))
    }

    /// Returns how long its verdict was waited for, in microseconds.
    pub(crate) fn waited_us(&self) -> Option<u64> {
        (self.is_awaited && self.acknowledged_us > 0 && self.seen_us > 0).then(|| self.seen_us.saturating_sub(self.acknowledged_us))
    }
}

/// All events of a run.
#[derive(Default)]
pub(crate) struct Events(Mutex<Vec<Event>>);

impl Events {
    pub(crate) fn events(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the event of this number, if there is one.
    pub(crate) fn change(&self, number: usize, change: impl FnOnce(&mut Event)) -> bool {
        self.events().get_mut(number).map(change).is_some()
    }

    /// Returns how many events are not acknowledged, and how many of those that are have no verdict.
    pub(crate) fn left(&self) -> (usize, usize) {
        let events = self.events();
        let unacknowledged = events.iter().filter(|event| event.acknowledged_us == 0).count();
        let unanswered = events.iter().filter(|event| event.is_awaited && event.acknowledged_us > 0 && event.seen_us == 0).count();
        (unacknowledged, unanswered)
    }
}
