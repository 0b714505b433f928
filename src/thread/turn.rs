//! One turn: from what the user said to the agent's last word.

use crate::digest::Fingerprint;
use crate::evaluate::loops::{LoopMemory, SignatureCount};

use super::calls::{CallRecord, Calls};

/// How many suppressed ids a turn tells apart. Beyond it every call counts as suppressed until the model answers again.
const SUPPRESSED_IDS_MAX: usize = 1_024;

/// What a turn remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// The turn's id, if the orchestrator names turns.
    pub id: Option<Box<str>>,
    /// The `turn_start` that began it, so that the same event sent twice begins it once.
    pub started_by: Option<Fingerprint>,
    /// What the loop controllers remember.
    pub loops: LoopMemory,
    /// The calls of the turn.
    pub calls: Calls,
    /// The calls that a safety stop has suppressed.
    pub suppression: Suppression,
}

/// Calls of responses that were cut off: they may not run in this turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suppression {
    ids: Vec<Fingerprint>,
    /// Tools that were called without an id (as Gemini does): until the model answers again, a call of such a tool is taken for
    /// the truncated one, whatever id the host made up for it.
    unnamed_tools: Vec<Fingerprint>,
    /// Set where there were more ids than are told apart.
    everything: bool,
}

impl Turn {
    /// A fresh turn.
    #[must_use]
    pub fn started(id: Option<&str>, started_by: Option<Fingerprint>) -> Self {
        Self { id: id.map(Into::into), started_by, ..Self::default() }
    }

    /// Drops the oldest calls and counters until the turn fits into `bytes_max`: half for the calls, half for the counters.
    pub fn trim(&mut self, bytes_max: usize) {
        let share = bytes_max / 2;
        self.calls.trim(share / size_of::<CallRecord>());
        self.loops.trim(share / size_of::<SignatureCount>());
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.id.as_ref().map_or(0, |id| id.len()) + self.loops.heap_bytes() + self.calls.heap_bytes() + self.suppression.heap_bytes()
    }
}

impl Suppression {
    /// Remembers a call of a response that was cut off.
    pub fn add(&mut self, id: Option<&str>, tool_name: Option<&str>) {
        let (list, text) = match (id, tool_name) {
            (Some(id), _) => (&mut self.ids, id),
            (None, Some(tool_name)) => (&mut self.unnamed_tools, tool_name),
            (None, None) => return,
        };
        let fingerprint = Fingerprint::of(text);
        if list.contains(&fingerprint) {
            return;
        }
        if list.len() < SUPPRESSED_IDS_MAX {
            list.push(fingerprint);
        } else {
            self.everything = true;
        }
    }

    /// The model has answered without being cut off: calls without an id are its new ones again.
    pub fn model_answered(&mut self) {
        self.unnamed_tools.clear();
        self.everything = false;
    }

    /// Whether a call was suppressed.
    #[must_use]
    pub fn covers(&self, id: Fingerprint, tool_name: &str) -> bool {
        self.everything
            || self.ids.contains(&id)
            || (!self.unnamed_tools.is_empty() && self.unnamed_tools.contains(&Fingerprint::of(tool_name)))
    }

    /// Whether nothing is suppressed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.everything && self.ids.is_empty() && self.unnamed_tools.is_empty()
    }

    fn heap_bytes(&self) -> usize {
        (self.ids.capacity() + self.unnamed_tools.capacity()) * size_of::<Fingerprint>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_an_id_is_known_by_its_tool_until_the_model_answers() {
        let mut suppression = Suppression::default();
        suppression.add(None, Some("write_file"));
        assert!(suppression.covers(Fingerprint::of("made-up"), "write_file"));
        assert!(!suppression.covers(Fingerprint::of("made-up"), "read_file"));
        suppression.model_answered();
        assert!(!suppression.covers(Fingerprint::of("made-up"), "write_file"));
    }

    #[test]
    fn an_id_stays_suppressed_for_the_turn() {
        let mut suppression = Suppression::default();
        suppression.add(Some("c1"), Some("bash"));
        suppression.model_answered();
        assert!(suppression.covers(Fingerprint::of("c1"), "bash"));
        assert!(!suppression.covers(Fingerprint::of("c2"), "bash"));
    }

    #[test]
    fn more_ids_than_can_be_told_apart_suppress_everything() {
        let mut suppression = Suppression::default();
        (0..=SUPPRESSED_IDS_MAX).for_each(|n| suppression.add(Some(&format!("c{n}")), None));
        assert!(suppression.covers(Fingerprint::of("another"), "bash"));
        suppression.model_answered();
        assert!(!suppression.covers(Fingerprint::of("another"), "bash"));
        assert!(suppression.covers(Fingerprint::of("c0"), "bash"));
    }
}
