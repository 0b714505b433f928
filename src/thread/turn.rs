//! One turn: from what the user said to the agent's last word.

use crate::digest::Fingerprint;
use crate::evaluate::loops::LoopMemory;

use super::calls::Calls;
use super::suppression::Suppression;

/// How many earlier turns of a thread are told apart from new ones.
const EARLIER_TURNS_MAX: usize = 4;

/// What a turn remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// The turn's id, if the orchestrator names turns.
    pub id: Option<Box<str>>,
    /// The `turn_start` that began it, so that the same event sent twice begins it once.
    pub started_by: Option<Fingerprint>,
    /// Whether it has ended. What was suppressed in it stays so until another turn begins, for calls that come late.
    pub has_ended: bool,
    /// What the loop controllers remember.
    pub loops: LoopMemory,
    /// The calls of the turn.
    pub calls: Calls,
    /// The calls that a safety stop has suppressed.
    pub suppression: Suppression,
    /// The ids of the turns before it, latest last.
    earlier: Vec<Fingerprint>,
}

impl Turn {
    /// The turn that follows this one.
    #[must_use]
    pub fn next(self, id: Option<&str>, started_by: Option<Fingerprint>) -> Self {
        let Self { id: last, mut earlier, suppression, has_ended, .. } = self;
        // A host that begins to name its turns in the middle of one may be naming the one in which calls were suppressed.
        let may_be_the_same = last.is_none() && id.is_some() && started_by.is_none() && !has_ended;
        if let Some(last) = last {
            earlier.push(Fingerprint::of(&last));
            earlier.drain(..earlier.len().saturating_sub(EARLIER_TURNS_MAX));
        }
        let suppression = if may_be_the_same { suppression } else { Suppression::default() };
        Self { id: id.map(Into::into), started_by, earlier, suppression, ..Self::default() }
    }

    /// What is left of this turn once it has ended.
    #[must_use]
    pub fn end(self) -> Self {
        if self.suppression.is_empty() {
            return Self::default();
        }
        let Self { id, started_by, suppression, earlier, .. } = self;
        Self { id, started_by, has_ended: true, suppression, earlier, ..Self::default() }
    }

    /// Whether an id names a turn before this one: its events come late, and begin nothing.
    #[must_use]
    pub fn is_earlier(&self, id: &str) -> bool {
        !self.earlier.is_empty() && self.earlier.contains(&Fingerprint::of(id))
    }

    /// Whether a stop depends on what is remembered here.
    #[must_use]
    pub fn holds_a_stop(&self) -> bool {
        self.loops.holds_a_stop || !self.suppression.is_empty()
    }

    /// Drops the oldest memories until the turn fits into `bytes_max`: half for the calls, a quarter each for the counters and for
    /// suppressed calls. What a stop depends on goes last.
    pub fn trim(&mut self, bytes_max: usize) {
        self.calls.trim(bytes_max / 2);
        self.loops.trim(bytes_max / 4);
        self.suppression.trim(bytes_max / 4);
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let names = self.id.as_ref().map_or(0, |id| id.len()) + self.earlier.capacity() * size_of::<Fingerprint>();
        names + self.loops.heap_bytes() + self.calls.heap_bytes() + self.suppression.heap_bytes()
    }
}
