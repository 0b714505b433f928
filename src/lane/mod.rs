//! The lane of one partition: its threads, and which of its records are finished.
//!
//! ```text
//! record ─▶ decode ─▶ thread of the store ─▶ evaluate ─▶ verdict bytes
//!                                   ledger: open ─▶ acknowledged ─▶ committable
//! ```
//!
//! A lane is pure: whoever owns it feeds it records and publishes what it answers. The same records give the same bytes, however
//! they are cut into batches.

mod ledger;

pub use ledger::{Ledger, LedgerError};

use std::borrow::Cow;

use crate::decode::{Event, EventType, Partition, Record, Rejection, decode, told_by_transport};
use crate::evaluate::{self, Decided, verdict};
use crate::json::Parser;
use crate::policy::Policy;
use crate::thread::{Admission, ThreadStore};

/// See the module.
#[derive(Debug)]
pub struct Lane {
    /// The partition.
    pub partition: Partition,
    /// Which records are finished.
    pub ledger: Ledger,
    /// The threads.
    pub threads: ThreadStore,
    parser: Parser,
}

/// What a record has become. The verdict's bytes, if it has one, are in the caller's [`VerdictBuffer`].
#[derive(Debug, PartialEq, Eq)]
pub enum Applied {
    /// A verdict.
    Verdict {
        /// The event's type.
        event_type: EventType,
        /// What was decided.
        decided: Decided,
        /// The event's time in milliseconds since the epoch.
        time_ms: Option<i64>,
    },
    /// A turn boundary, which gets no verdict.
    Boundary(EventType),
    /// A dead letter. The buffer holds the verdict for whoever awaits it; it goes to the decisions topic if the thread was told.
    DeadLetter(Rejection),
}

/// A verdict on its way out: reused from record to record.
#[derive(Debug, Default)]
pub struct VerdictBuffer {
    /// The verdict as JSON.
    pub json: Vec<u8>,
    /// The thread, which is the verdict's key; empty where it could not be told.
    pub thread_id: String,
    /// The event, which is the verdict's `event_id` header.
    pub event_id: String,
}

impl VerdictBuffer {
    fn address(&mut self, thread_id: &str, event_id: &str) {
        self.json.clear();
        self.thread_id.clear();
        self.thread_id.push_str(thread_id);
        self.event_id.clear();
        self.event_id.push_str(event_id);
    }
}

impl Lane {
    /// The lane of a partition, with nothing in it.
    #[must_use]
    pub fn new(partition: Partition, policy: &Policy) -> Self {
        Self { partition, ledger: Ledger::default(), threads: ThreadStore::new(policy.store_limits()), parser: Parser::new() }
    }

    /// Decides on one record and writes the verdict, if there is one, into `out`.
    pub fn apply(&mut self, policy: &Policy, record: &Record<'_>, out: &mut VerdictBuffer) -> Applied {
        let Self { threads, parser, .. } = self;
        let outcome = decode(record, parser, policy.limits().event_bytes_max).and_then(|event| apply_event(threads, policy, &event, out));
        outcome.unwrap_or_else(|rejection| reject(policy, record, rejection, out))
    }

    /// Rejects a record that its reader could not even take apart, and answers whoever awaits it.
    pub fn reject(&self, policy: &Policy, record: &Record<'_>, rejection: Rejection, out: &mut VerdictBuffer) -> Applied {
        reject(policy, record, rejection.told(told_by_transport(record)), out)
    }
}

fn apply_event(threads: &mut ThreadStore, policy: &Policy, event: &Event<'_>, out: &mut VerdictBuffer) -> Result<Applied, Rejection> {
    out.address(&event.thread_id, &event.event_id);
    let event_type = event.event_type();
    let decided = match threads.admit(&event.thread_id, event.time_ms) {
        Admission::Admitted(thread) => {
            let decided = evaluate::evaluate(policy, thread, event, &mut out.json);
            threads.settle(&event.thread_id);
            decided?
        }
        Admission::Full => evaluate::refuse(policy, event, &mut out.json),
    };
    Ok(match decided {
        Some(decided) => Applied::Verdict { event_type, decided, time_ms: event.time_ms },
        None => Applied::Boundary(event_type),
    })
}

fn reject(policy: &Policy, record: &Record<'_>, rejection: Rejection, out: &mut VerdictBuffer) -> Applied {
    let told = &rejection.told;
    let event_id = told.event_id.as_deref().map_or_else(|| Cow::Owned(record.coordinates()), Cow::Borrowed);
    out.address(told.thread_id.as_deref().unwrap_or_default(), &event_id);
    verdict::write_invalid(&rejection, &event_id, policy.version(), &mut out.json);
    Applied::DeadLetter(rejection)
}
