//! The gate as a value, for a program that decides in its own process. It takes events as JSON and returns verdicts as JSON.
//!
//! It decides like a worker that reads one partition, and remembers threads in the same bounded memory. It differs in two ways. Nothing is
//! written down, so threads start anew with the process. No policy server is asked, so a call that needs one is treated as if the server
//! had failed (`guardrails.fail_closed`).

use std::sync::Arc;

use crate::decide::deciding::{Deciding, VerdictBuffer};
use crate::decide::guardrail::ProviderError;
use crate::decide::policy::Policy;
use crate::engine::stage::{Progress, Resumed, Stage};
use crate::event::record::{Offset, Partition, Record};

/// The text in place of a topic, in the id of an event that brings none.
const TOPIC: &str = "gate";

/// A gate that decides on events, one after the other.
#[derive(Debug)]
pub struct Gate {
    deciding: Deciding,
    next: Offset,
    out: VerdictBuffer,
}

impl Gate {
    /// Returns a gate under a policy. It knows no threads yet.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { deciding: Deciding::new(Arc::new(policy)), next: Offset(0), out: VerdictBuffer::default() }
    }

    /// Decides on one event and returns the verdict as JSON. It is empty for what gets none: turn boundaries, resets and verdicts
    /// that come back. An event that cannot be read gets a verdict too, which blocks and says what to mend.
    ///
    /// Time is the event's own `timestamp`. Events without one never make a thread idle.
    pub fn decide(&mut self, event: &[u8]) -> &[u8] {
        self.decide_keyed(None, event)
    }

    /// Decides like [`Gate::decide`], on an event that may leave its `thread_id` to the record's key.
    pub fn decide_keyed(&mut self, key: Option<&[u8]>, event: &[u8]) -> &[u8] {
        let offset = self.next;
        self.next = offset.next();
        self.out.json.clear();
        let record = Record { topic: TOPIC, partition: Partition(0), offset, timestamp_ms: None, key, value: Some(event), headers: &[] };
        if let Progress::Asks(_) = self.deciding.apply(&record, &mut self.out) {
            let mut asked = Some(offset);
            while let Some(offset) = asked {
                self.deciding.answer(offset, Err(ProviderError::NotAsked));
                asked = match self.deciding.resume(&mut self.out) {
                    Some(Resumed::Asks(offset, _)) => Some(offset),
                    _ => None,
                };
            }
        }
        &self.out.json
    }
}
