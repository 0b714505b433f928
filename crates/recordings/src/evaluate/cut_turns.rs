//! Threads whose first event in a file is within a turn. What was before it is not in the file, so that their verdicts can differ from those
//! that the workers gave.

use std::hash::BuildHasher as _;

use rustc_hash::{FxBuildHasher, FxHashSet};
use tollgate_core::event::decode::EventType;

/// How many threads are looked at. Each takes 16 bytes or so, and a file may name any number.
const THREADS_MAX: usize = 1_000_000;
/// How many threads are named.
const NAMED_MAX: usize = 3;

/// The threads that begin within a turn.
#[derive(Debug, Default)]
pub struct CutTurns {
    /// Hashes of the threads that were seen.
    seen: FxHashSet<u64>,
    /// Whether a `turn_start` was seen: then hosts mark the beginning of turns, and a thread that begins with something else was cut.
    has_starts: bool,
    /// Threads that begin with the end of something.
    ends: Threads,
    /// Threads that begin with a response or a call, as those of hosts do that mark no beginning.
    middles: Threads,
}

/// Some threads: how many, and the first ones.
#[derive(Debug, Default)]
struct Threads {
    count: u64,
    named: Vec<String>,
}

impl Threads {
    fn add(&mut self, thread_id: &str) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(thread_id.to_owned());
        }
    }
}

impl CutTurns {
    /// Notes an event of a thread, in the order of the file.
    pub(super) fn note(&mut self, thread_id: &str, event_type: EventType) {
        self.has_starts |= event_type == EventType::TurnStart;
        if self.seen.len() >= THREADS_MAX || !self.seen.insert(FxBuildHasher.hash_one(thread_id)) {
            return;
        }
        match event_type {
            EventType::TurnStart | EventType::ThreadReset => {}
            EventType::ToolResult | EventType::TurnEnd => self.ends.add(thread_id),
            EventType::ModelResponse | EventType::ToolCall => self.middles.add(thread_id),
        }
    }

    /// Returns how many threads begin within a turn in several parts of a file, of which each has all events of its threads.
    pub(super) fn count_of<'c>(parts: impl Iterator<Item = &'c Self> + Clone) -> u64 {
        let has_starts = parts.clone().any(|part| part.has_starts);
        parts.map(|part| part.ends.count + if has_starts { part.middles.count } else { 0 }).sum()
    }

    /// Returns how many threads begin within a turn, and the first ones.
    #[must_use]
    pub fn found(&self) -> (u64, Vec<&str>) {
        let kinds = [Some(&self.ends), self.has_starts.then_some(&self.middles)];
        let named = kinds.into_iter().flatten().flat_map(|threads| &threads.named).map(String::as_str).take(NAMED_MAX).collect();
        (Self::count_of(std::iter::once(self)), named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventType::{ModelResponse, ThreadReset, ToolCall, ToolResult, TurnEnd, TurnStart};

    fn found(events: &[(&str, EventType)]) -> (u64, Vec<String>) {
        let mut cut = CutTurns::default();
        events.iter().for_each(|(thread, event_type)| cut.note(thread, *event_type));
        let (count, named) = cut.found();
        (count, named.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn a_thread_that_begins_with_an_end_was_cut() {
        assert_eq!(found(&[("a", ToolResult), ("b", TurnEnd), ("c", ToolCall), ("c", ToolResult)]), (2, vec!["a".into(), "b".into()]));
        assert_eq!(found(&[("a", ThreadReset), ("a", ToolCall), ("b", ModelResponse)]), (0, Vec::new()));
    }

    #[test]
    fn where_hosts_mark_the_beginning_of_turns_every_other_beginning_was_cut() {
        let events = [("a", ToolCall), ("b", TurnStart), ("b", ToolCall), ("c", ModelResponse), ("d", ToolResult), ("e", ToolCall)];
        assert_eq!(found(&events), (4, vec!["d".into(), "a".into(), "c".into()]));
        assert_eq!(found(&[("a", TurnStart), ("a", TurnEnd), ("a", ToolCall)]), (0, Vec::new()));
        // So it is if the mark is in another part of the file.
        let [mut marked, mut cut] = [CutTurns::default(), CutTurns::default()];
        marked.note("a", TurnStart);
        cut.note("b", ToolCall);
        assert_eq!((cut.found().0, CutTurns::count_of([&marked, &cut].into_iter())), (0, 1));
    }
}
