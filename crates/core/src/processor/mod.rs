//! The lane of one partition: its threads, which of its records are finished, and what of it can be written down.
//!
//! ```text
//! record ─▶ decode ─▶ thread of the store ─▶ evaluate ─▶ verdict bytes
//!                          waiting ◀─ question ─┘ ▲ answer
//!                                   ledger: open ─▶ acknowledged ─▶ finished ─▶ checkpoint
//! ```
//!
//! A lane is pure: whoever owns it feeds it records and answers, asks what it wants to know and publishes what it decides. The same records
//! and answers give the same bytes, however they are cut into batches and whichever answer comes first.

mod checkpoints;
mod ledger;
mod pass_through;
mod waiting;

pub use ledger::{Ledger, LedgerError};
pub use pass_through::PASS_THROUGH;
pub use waiting::Resumed;

use std::borrow::Cow;

use crate::checkpoint::Restored;
use crate::decode::{Event, EventType, Rejection, decode, told_by_transport};
use crate::evaluate;
use crate::evaluate::{Decided, Prepared, Tools, verdict};
use crate::guardrail::{ProviderError, Question};
use crate::json::Parser;
use crate::policy::Policy;
use crate::record::{Offset, OwnedRecord, Partition, Record};
use crate::thread::{Admission, SlotKey, ThreadStore, Touch};

use checkpoints::Checkpoints;
use waiting::Waiting;

/// See the module.
#[derive(Debug)]
pub struct Lane {
    /// The partition.
    pub partition: Partition,
    /// Which records are finished.
    pub ledger: Ledger,
    /// The threads.
    pub threads: ThreadStore,
    /// The record behind the last one that was applied.
    next: Offset,
    /// Whether any was applied since the lane was made.
    has_applied: bool,
    checkpoints: Checkpoints,
    waiting: Waiting,
    tools: Tools,
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
    /// A turn boundary or a reset, which get no verdict.
    Boundary(EventType),
    /// A dead letter. The buffer holds the verdict for whoever awaits it; it goes to the decisions topic if the thread was told.
    DeadLetter(Rejection),
    /// Nothing: the state knows the record already, and what followed from it was acknowledged before the state was written.
    Redelivered,
    /// Nothing yet: this has to be asked, and [`Lane::answer`] told what came of it under the record's offset.
    Asks(Question),
    /// Nothing yet: another event of its thread has asked.
    Waits,
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
        Self {
            partition,
            ledger: Ledger::default(),
            threads: ThreadStore::new(policy.store_limits()),
            next: Offset(0),
            has_applied: false,
            checkpoints: Checkpoints::default(),
            waiting: Waiting::default(),
            tools: Tools::default(),
            parser: Parser::new(),
        }
    }

    /// The lane of a partition with the state that a checkpoint left.
    #[must_use]
    pub fn restored(partition: Partition, policy: &Policy, restored: Restored) -> Self {
        let Restored { next, threads } = restored;
        Self { threads, next, checkpoints: Checkpoints::written_up_to(next), ..Self::new(partition, policy) }
    }

    /// The first record that the lane's state does not know.
    #[must_use]
    pub fn next(&self) -> Offset {
        self.next
    }

    /// Decides on one record and writes the verdict, if there is one, into `out`. A record that the state knows already changes nothing.
    pub fn apply(&mut self, policy: &Policy, record: &Record<'_>, out: &mut VerdictBuffer) -> Applied {
        if !self.advance(record) {
            return Applied::Redelivered;
        }
        let Self { threads, tools, parser, waiting, .. } = self;
        let event = match decode(record, parser, policy.limits().event_bytes_max) {
            Ok(event) => event,
            Err(rejection) => return reject(policy, record, rejection, out),
        };
        let touch = threads.advance(record.offset, event.time_ms);
        if waiting.is_waiting(&event.thread_id) {
            waiting.push(&event.thread_id, OwnedRecord::of(record), touch);
            return Applied::Waits;
        }
        match begin(threads, tools, policy, &event, touch, None, out) {
            Ok(Step::Applied(applied)) => applied,
            Ok(Step::Asks { key, prepared, question }) => {
                waiting.push(&event.thread_id, OwnedRecord::of(record), touch);
                waiting.ask(&event.thread_id, key, prepared);
                Applied::Asks(question)
            }
            Err(rejection) => reject(policy, record, rejection, out),
        }
    }

    /// Rejects a record that its reader could not even take apart, and answers whoever awaits it.
    pub fn reject(&mut self, policy: &Policy, record: &Record<'_>, rejection: Rejection, out: &mut VerdictBuffer) -> Applied {
        if !self.advance(record) {
            return Applied::Redelivered;
        }
        reject(policy, record, rejection.told(told_by_transport(record)), out)
    }

    /// Steps over a record, unless the state knows it. Every thread's applied offset is below `next`, and so are the last ones of threads
    /// that have ended: one comparison tells for all of them.
    fn advance(&mut self, record: &Record<'_>) -> bool {
        let is_new = record.offset >= self.next;
        if is_new {
            (self.next, self.has_applied) = (record.offset.next(), true);
        }
        is_new
    }
}

/// How far an event has come.
enum Step {
    Applied(Applied),
    /// Its thread is admitted, and not settled.
    Asks {
        key: SlotKey,
        prepared: Prepared,
        question: Question,
    },
}

/// Takes an event to its thread. Where `unasked` says why, nobody is asked.
fn begin(
    threads: &mut ThreadStore,
    tools: &mut Tools,
    policy: &Policy,
    event: &Event<'_>,
    touch: Touch,
    unasked: Option<ProviderError>,
    out: &mut VerdictBuffer,
) -> Result<Step, Rejection> {
    match threads.admit(&event.thread_id) {
        Admission::Admitted(key, thread) => {
            let mut prepared = evaluate::prepare(policy, tools, thread, event);
            if let Some(why) = unasked {
                prepared = prepared.unanswered(policy, event, why);
            }
            finish(threads, policy, event, touch, key, prepared, out)
        }
        Admission::Full => {
            out.address(&event.thread_id, &event.event_id);
            Ok(Step::applied(event, evaluate::refuse(policy, event, &mut out.json)))
        }
    }
}

/// Decides on an event whose thread is admitted, unless there is something to ask.
fn finish(
    threads: &mut ThreadStore,
    policy: &Policy,
    event: &Event<'_>,
    touch: Touch,
    key: SlotKey,
    prepared: Prepared,
    out: &mut VerdictBuffer,
) -> Result<Step, Rejection> {
    if let Some(question) = prepared.question().cloned() {
        return Ok(Step::Asks { key, prepared, question });
    }
    out.address(&event.thread_id, &event.event_id);
    let decided = match threads.admitted(key) {
        Some(thread) => evaluate::fold(policy, thread, event, prepared, &mut out.json),
        None => Ok(evaluate::refuse(policy, event, &mut out.json)),
    };
    threads.settle(key, touch);
    Ok(Step::applied(event, decided?))
}

impl Step {
    fn applied(event: &Event<'_>, decided: Option<Decided>) -> Self {
        let event_type = event.event_type();
        Self::Applied(match decided {
            Some(decided) => Applied::Verdict { event_type, decided, time_ms: event.time_ms },
            None => Applied::Boundary(event_type),
        })
    }
}

fn reject(policy: &Policy, record: &Record<'_>, rejection: Rejection, out: &mut VerdictBuffer) -> Applied {
    let told = &rejection.told;
    let event_id = told.event_id.as_deref().map_or_else(|| Cow::Owned(record.coordinates()), Cow::Borrowed);
    out.address(told.thread_id.as_deref().unwrap_or_default(), &event_id);
    verdict::write_invalid(&rejection, &event_id, policy.version(), &mut out.json);
    Applied::DeadLetter(rejection)
}
