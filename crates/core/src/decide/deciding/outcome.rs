//! The outcomes of the deciding stage, and the buffer for a record's verdict.

use std::borrow::Cow;

use crate::decide::evaluate::{Decided, verdict};
use crate::decide::policy::Policy;
use crate::decide::signal::EventSignals;
use crate::event::decode::{Event, EventType, Rejection};
use crate::event::record::Record;

/// The outcome of a record. The verdict's bytes, if it has one, are in the caller's [`VerdictBuffer`].
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The record is an event with a verdict.
    Verdict {
        /// The event's type.
        event_type: EventType,
        /// What was decided.
        decided: Decided,
        /// The event's time in milliseconds since the epoch.
        time_ms: Option<i64>,
    },
    /// The record is a turn boundary or a reset, which get no verdict.
    Boundary(EventType),
    /// The record cannot be read and becomes a dead letter. The buffer holds a verdict for the host that waits for one. It goes to the
    /// decisions topic if the thread is known. The buffer is empty if the record is a verdict itself: nobody waits for an answer to it.
    DeadLetter(Rejection),
}

impl Outcome {
    /// Returns whether the buffer holds a verdict for the decisions topic. A boundary has none, and a dead letter has one only if its thread
    /// is known and somebody waits for an answer.
    #[must_use]
    pub fn is_published(&self) -> bool {
        match self {
            Self::Verdict { .. } => true,
            Self::Boundary(_) => false,
            Self::DeadLetter(rejection) => rejection.event.thread_id.is_some() && rejection.is_answered(),
        }
    }

    pub(super) fn of(event: &Event<'_>, decided: Option<Decided>) -> Self {
        let event_type = event.event_type();
        match decided {
            Some(decided) => Self::Verdict { event_type, decided, time_ms: event.time_ms },
            None => Self::Boundary(event_type),
        }
    }
}

/// The buffer that a record's verdict is written to. It is reused from record to record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerdictBuffer {
    /// The verdict as JSON.
    pub json: Vec<u8>,
    /// The thread, which is the verdict's key; empty where it is not known.
    pub thread_id: String,
    /// The event, which is the verdict's `event_id` header.
    pub event_id: String,
    /// What there is to count of the event; empty for a record that is none, and while the policy has no signals.
    pub signals: EventSignals,
}

impl VerdictBuffer {
    pub(crate) fn address(&mut self, thread_id: &str, event_id: &str) {
        self.json.clear();
        self.signals.clear();
        self.thread_id.clear();
        self.thread_id.push_str(thread_id);
        self.event_id.clear();
        self.event_id.push_str(event_id);
    }
}

/// Writes the verdict on a record that cannot be read, for the host that waits for one, and returns the record's outcome.
pub(super) fn reject(policy: &Policy, record: &Record<'_>, rejection: Rejection, out: &mut VerdictBuffer) -> Outcome {
    let event = &rejection.event;
    let event_id = event.event_id.as_deref().map_or_else(|| Cow::Owned(record.coordinates()), Cow::Borrowed);
    out.address(event.thread_id.as_deref().unwrap_or_default(), &event_id);
    if rejection.is_answered() {
        verdict::write_invalid(&rejection, &event_id, policy.version(), &mut out.json);
    }
    Outcome::DeadLetter(rejection)
}
