//! The calls of a turn: what was asked, what was answered, and which results are still due.

use crate::digest::{Digest, Fingerprint};
use crate::evaluate::verdict::Ruling;

/// An event and what was ruled on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The event.
    pub event: Fingerprint,
    /// What its verdict said.
    pub ruling: Ruling,
}

/// One tool call, known by its `tool_call_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// The call.
    pub id: Fingerprint,
    /// The digest of its arguments.
    pub args: Digest,
    /// The last `tool_call` event of it; a result may come without one.
    pub call: Option<Answer>,
    /// The last `tool_result` event that counted.
    pub result: Option<Answer>,
    /// Whether an allowed call waits for its result.
    pub is_open: bool,
}

impl CallRecord {
    /// A call of which nothing is known yet.
    #[must_use]
    pub fn new(id: Fingerprint, args: Digest) -> Self {
        Self { id, args, call: None, result: None, is_open: false }
    }

    /// Whether the last `tool_call` event was not allowed to run.
    #[must_use]
    pub fn was_denied(&self) -> bool {
        self.call.as_ref().is_some_and(|call| !call.ruling.allows_execution())
    }
}

/// The calls of a turn in order of first appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls(Vec<CallRecord>);

impl Calls {
    /// The call of that id.
    #[must_use]
    pub fn find(&self, id: Fingerprint) -> Option<&CallRecord> {
        // The call in question is nearly always a recent one.
        self.0.iter().rev().find(|call| call.id == id)
    }

    /// The call of that id, made if need be.
    pub fn entry(&mut self, id: Fingerprint, args: Digest) -> Option<&mut CallRecord> {
        let at = self.0.iter().rposition(|call| call.id == id).unwrap_or_else(|| {
            self.0.push(CallRecord::new(id, args));
            self.0.len() - 1
        });
        self.0.get_mut(at)
    }

    /// How many calls are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops the oldest calls beyond this number.
    pub fn trim(&mut self, calls_max: usize) {
        self.0.drain(..self.0.len().saturating_sub(calls_max));
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let rulings = self.0.iter().flat_map(|call| [&call.call, &call.result]).flatten().map(|answer| answer.ruling.heap_bytes());
        self.0.capacity() * size_of::<CallRecord>() + rulings.sum::<usize>()
    }
}
