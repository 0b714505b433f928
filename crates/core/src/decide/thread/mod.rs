//! The state of a thread: what its running turn remembers, in digests and counters.

mod calls;
mod id;
mod index;
mod layout;
mod order;
mod shares;
mod store;
mod suppression;
mod turn;
mod view;

pub use calls::{Answer, CallRecord, Calls};
pub use id::{Id, IdText};
pub use layout::read_thread;
pub use order::SlotKey;
pub use shares::TenantMark;
pub use store::{Admission, StoreLimits, StoredThread, ThreadStore, Touch};
pub use suppression::{NewCalls, Suppression};
pub use turn::{SeenResponses, Turn, TurnMemory};
pub use view::ThreadView;

use crate::event::decode::{Body, Event};
use tollgate_json::digest::Fingerprint;

/// The bounds on what a thread may remember, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadLimits {
    /// The longest pause, in milliseconds of event time, after which a thread keeps its state. After a longer one it starts from nothing.
    pub idle_ms_max: i64,
    /// The longest pause, in milliseconds of event time, that a turn without an id goes on after.
    pub turn_idle_ms_max: i64,
    /// The most heap bytes of one thread. The oldest calls and counters are dropped to stay below it.
    pub bytes_max: usize,
}

/// The state of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// The running turn.
    pub turn: Turn,
    /// The time of its latest event, in milliseconds since the epoch.
    pub last_event_ms: Option<i64>,
}

impl Thread {
    /// Brings the thread to the turn that an event belongs to. A long pause forgets everything, `turn_start` and a new `turn_id` start a
    /// new turn, and so does a shorter pause where turns have no ids; `turn_end` ends the turn, and `thread_reset` forgets. An event of an
    /// earlier turn is late: it must not wipe what the running turn has stopped. `fingerprint` names the event.
    pub fn enter(&mut self, event: &Event<'_>, fingerprint: Fingerprint, limits: &ThreadLimits) {
        let pause_ms = event.time_ms.zip(self.last_event_ms).map_or(0, |(now, last)| now.saturating_sub(last));
        if pause_ms > limits.idle_ms_max {
            self.turn = Turn::default();
        } else if pause_ms > limits.turn_idle_ms_max && self.is_of_unnamed_turn(event) {
            self.begin_turn(event, None, None);
        }
        self.last_event_ms = self.last_event_ms.max(event.time_ms);
        match event.body {
            Body::TurnStart => self.start_turn(event, fingerprint),
            Body::TurnEnd => self.end_turn(event.turn_id.as_deref()),
            Body::ThreadReset => self.reset(event.turn_id.as_deref()),
            // A model that answers after the end of a turn is in another turn, whether the host says so or not.
            Body::ModelResponse(_) if self.turn.has_ended && event.turn_id.is_none() => {
                self.begin_turn(event, None, None);
            }
            _ => self.join_turn(event),
        }
    }

    /// Returns whether neither the running turn nor an event names a turn. A result belongs to the turn of its call, however long the call
    /// took.
    fn is_of_unnamed_turn(&self, event: &Event<'_>) -> bool {
        let begins_with = matches!(event.body, Body::ModelResponse(_) | Body::ToolCall(_));
        begins_with && event.turn_id.is_none() && self.turn.id.is_none()
    }

    /// Begins another turn. A call that names a new turn may be of a response before it, and a response frees calls where it is an answer.
    fn begin_turn(&mut self, event: &Event<'_>, id: Option<&str>, started_by: Option<Fingerprint>) {
        self.turn = std::mem::take(&mut self.turn).next(id, started_by);
        if matches!(event.body, Body::TurnStart) {
            self.turn.free_new_calls();
        }
    }

    fn start_turn(&mut self, event: &Event<'_>, fingerprint: Fingerprint) {
        let turn_id = event.turn_id.as_deref();
        let is_repeat = self.turn.started_by == Some(fingerprint) || turn_id.is_some_and(|id| self.turn.is_named(id));
        if !is_repeat && !turn_id.is_some_and(|id| self.turn.is_earlier(id)) {
            self.begin_turn(event, turn_id, Some(fingerprint));
        }
    }

    fn end_turn(&mut self, turn_id: Option<&str>) {
        let is_other = turn_id.is_some_and(|id| self.turn.id.as_ref().is_some_and(|own| !own.is(id)));
        if !is_other {
            self.turn = std::mem::take(&mut self.turn).end();
        }
    }

    /// Forgets everything, or, if `turn_id` names the running turn, what that turn remembers. The running turn goes on: an event that names
    /// it does not start it anew.
    fn reset(&mut self, turn_id: Option<&str>) {
        let turn = std::mem::take(&mut self.turn);
        self.turn = match turn_id {
            None => Turn::default(),
            Some(id) if turn.is_named(id) => turn.forget(),
            Some(_) => turn,
        };
    }

    fn join_turn(&mut self, event: &Event<'_>) {
        let Some(id) = event.turn_id.as_deref().filter(|id| !self.turn.is_named(id)) else { return };
        if !self.turn.is_earlier(id) {
            self.begin_turn(event, Some(id), None);
        }
    }

    /// Returns whether nothing is remembered any more, so that the thread need not be kept.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.turn.is_blank()
    }

    /// Returns whether a running turn depends on what is remembered here. Such a thread is forgotten by event time alone, never to make
    /// room for another.
    #[must_use]
    pub fn holds_a_stop(&self) -> bool {
        !self.turn.has_ended && self.turn.holds_a_stop()
    }

    /// Drops the oldest memories until the thread is within its limits.
    pub fn trim(&mut self, limits: &ThreadLimits) {
        self.turn.trim(limits.bytes_max);
    }

    /// Returns how many bytes it takes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.turn.heap_bytes()
    }
}
