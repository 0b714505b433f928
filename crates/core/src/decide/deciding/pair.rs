//! Two policies on one partition, side by side: what the one decides and what the other would have decided.

use crate::decide::guardrail::Question;
use crate::engine::stage::{Progress, Stage};
use crate::event::decode::{Event, decode};
use crate::event::record::Record;
use tollgate_json::Parser;

use super::{Deciding, Outcome, VerdictBuffer};

/// How far both policies are with a record.
pub type Progresses = [Progress<Outcome, Question>; 2];

/// Two deciding stages of one partition. Each has a state of its own, and each record is decoded once for both.
#[derive(Debug)]
pub struct DecidingPair {
    sides: [Deciding; 2],
    parser: Parser,
}

impl DecidingPair {
    /// Returns a pair of stages.
    #[must_use]
    pub fn new(sides: [Deciding; 2]) -> Self {
        Self { sides, parser: Parser::new() }
    }

    /// Returns both stages.
    #[must_use]
    pub fn sides(&self) -> &[Deciding; 2] {
        &self.sides
    }

    /// Returns both stages, to go on with a record that asked a policy server.
    pub fn sides_mut(&mut self) -> &mut [Deciding; 2] {
        &mut self.sides
    }

    /// Applies a record to both stages, as [`Stage::apply`] does to one. Before that, `look` is given the event if it can be read.
    pub fn apply(&mut self, record: &Record<'_>, outs: &mut [VerdictBuffer; 2], look: impl FnOnce(&Event<'_>)) -> Progresses {
        let Self { sides: [first, second], parser } = self;
        let [first_out, second_out] = outs;
        let bytes_max = [&*first, &*second].map(|side| side.policy().limits().event_bytes_max);
        // Where only one of them takes an event of this size, they do not read the same.
        if bytes_max[0] != bytes_max[1] && record.value.is_some_and(|value| value.len() > bytes_max[0].min(bytes_max[1])) {
            return [first.apply(record, first_out), second.apply(record, second_out)];
        }
        match decode(record, parser, bytes_max[0].max(bytes_max[1])) {
            Ok(event) => {
                look(&event);
                [first.apply_event(record, &event, first_out), second.apply_event(record, &event, second_out)]
            }
            Err(rejection) => {
                [first.apply_unread(record, rejection.clone(), first_out), second.apply_unread(record, rejection, second_out)]
            }
        }
    }
}
