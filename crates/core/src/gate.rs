//! The gate as a value, for a program that decides in its own process: events as JSON in, verdicts as JSON out.
//!
//! It decides as a worker does that reads one partition, and remembers threads in the same bounded memory. What it lacks is the worker's
//! surroundings: nothing is written down, so threads start anew with the process, and no policy server is asked, so a call that needs one
//! is treated as if the server had failed (`guardrails.fail_closed`).

use crate::guardrail::ProviderError;
use crate::policy::Policy;
use crate::processor::{Applied, Lane, Resumed, VerdictBuffer};
use crate::record::{Offset, Partition, Record};

/// What stands for the topic in the id of an event that brings none.
const TOPIC: &str = "gate";

/// See the module.
#[derive(Debug)]
pub struct Gate {
    policy: Policy,
    lane: Lane,
    next: Offset,
    out: VerdictBuffer,
}

impl Gate {
    /// Returns a gate under a policy, with no thread known.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let lane = Lane::new(Partition(0), &policy);
        Self { policy, lane, next: Offset(0), out: VerdictBuffer::default() }
    }

    /// Decides on one event and returns the verdict as JSON; it is empty for events that get none (turn boundaries and resets). An event
    /// that cannot be read gets a verdict too, which blocks and says what to mend.
    ///
    /// Time is the event's own `timestamp`; threads are never idle for events that bring none.
    pub fn decide(&mut self, event: &[u8]) -> &[u8] {
        self.decide_keyed(None, event)
    }

    /// The same for an event that may leave its `thread_id` to the record's key.
    pub fn decide_keyed(&mut self, key: Option<&[u8]>, event: &[u8]) -> &[u8] {
        let offset = self.next;
        self.next = offset.next();
        self.out.json.clear();
        let record = Record { topic: TOPIC, partition: Partition(0), offset, timestamp_ms: None, key, value: Some(event), headers: &[] };
        let mut applied = self.lane.apply(&self.policy, &record, &mut self.out);
        while let Applied::Asks(_) = applied {
            self.lane.answer(offset, Err(ProviderError::NotAsked));
            match self.lane.resume(&self.policy, &mut self.out) {
                Some(Resumed::Decided(_, decided)) => applied = decided,
                Some(Resumed::Asks(_, question)) => applied = Applied::Asks(question),
                None => break,
            }
        }
        &self.out.json
    }
}
