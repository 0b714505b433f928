//! The state of a thread: what its running turn remembers, in digests and counters.

mod calls;
mod store;
mod turn;

pub use calls::{Answer, CallRecord, Calls};
pub use store::{Admission, Departures, StoreLimits, ThreadStore};
pub use turn::{Suppression, Turn};

use crate::decode::{Body, Event};
use crate::digest::Fingerprint;

/// How much a thread may remember, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLimits {
    /// A thread whose next event is more than this later than its last one starts from nothing, in milliseconds of event time.
    pub idle_ms_max: i64,
    /// Heap bytes of one thread; the oldest calls and counters make room.
    pub bytes_max: usize,
}

/// One thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// The running turn.
    pub turn: Turn,
    /// The time of its latest event, in milliseconds since the epoch.
    pub last_event_ms: Option<i64>,
}

impl Thread {
    /// Brings the thread to the turn that an event belongs to: a long pause forgets everything, `turn_start` and a new `turn_id`
    /// start a new turn, `turn_end` ends it. `fingerprint` names the event.
    pub fn enter(&mut self, event: &Event<'_>, fingerprint: Fingerprint, limits: &ThreadLimits) {
        if let (Some(now), Some(last)) = (event.time_ms, self.last_event_ms)
            && now.saturating_sub(last) > limits.idle_ms_max
        {
            self.turn = Turn::default();
        }
        self.last_event_ms = self.last_event_ms.max(event.time_ms);
        let turn_id = event.turn_id.as_deref();
        let is_other = turn_id.is_some() && turn_id != self.turn.id.as_deref();
        match event.body {
            Body::TurnStart if self.turn.started_by == Some(fingerprint) => {}
            Body::TurnStart if turn_id.is_some() && !is_other => {}
            Body::TurnStart => self.turn = Turn::started(turn_id, Some(fingerprint)),
            // A late end of an earlier turn must not take the running turn's memory with it.
            Body::TurnEnd if is_other && self.turn.id.is_some() => {}
            Body::TurnEnd => self.turn = Turn::default(),
            _ if is_other => self.turn = Turn::started(turn_id, None),
            _ => {}
        }
    }

    /// Whether nothing is remembered any more, so that the thread need not be kept.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.turn == Turn::default()
    }

    /// Whether a stop depends on what is remembered here: such a thread is forgotten by event time alone, never to make room.
    #[must_use]
    pub fn holds_a_stop(&self) -> bool {
        self.turn.loops.halted || !self.turn.suppression.is_empty()
    }

    /// Drops the oldest memories beyond the thread's share.
    pub fn trim(&mut self, limits: &ThreadLimits) {
        self.turn.trim(limits.bytes_max);
    }

    /// Bytes of this thread in memory, its own struct included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.turn.heap_bytes()
    }
}
