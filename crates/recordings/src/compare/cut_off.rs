//! Work that the second policy would have prevented: tools that succeeded although it would have refused their call, or after it would have
//! stopped their turn.

use rustc_hash::{FxHashMap, FxHashSet};
use tollgate_core::decide::ruling::Action;
use tollgate_core::event::decode::EventType;

use super::flip::{Facts, Side};

/// The turns that only the second policy would have stopped, by thread, while they last.
#[derive(Debug, Default)]
pub(super) struct StoppedTurns {
    threads: FxHashMap<Box<str>, Stopped>,
    /// The threads with a call that only the second policy would have refused, until their turn ends.
    refused: FxHashSet<Box<str>>,
}

#[derive(Debug)]
struct Stopped {
    /// The turn, if the host names turns.
    turn_id: Option<String>,
    has_lost_work: bool,
    /// Whether the first policy has stopped it too since. What comes then is lost by both.
    is_stopped_by_both: bool,
}

/// What a record adds to the work that is cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Loss {
    /// A tool call that succeeded.
    pub(super) calls: u64,
    /// The first such call of its turn.
    pub(super) turns: u64,
    /// A tool call that succeeded, and that the second policy alone would have refused.
    pub(super) refused: u64,
}

impl StoppedTurns {
    /// Returns whether it matters if a tool of this thread has succeeded.
    pub(super) fn asks(&self, thread_id: &str) -> bool {
        self.is_stopped(thread_id) || !self.refused.is_empty() && self.refused.contains(thread_id)
    }

    fn is_stopped(&self, thread_id: &str) -> bool {
        !self.threads.is_empty() && self.threads.contains_key(thread_id)
    }

    /// Notes that a turn begins or ends.
    pub(super) fn boundary(&mut self, facts: &Facts) {
        self.threads.remove(facts.thread_id.as_str());
        self.refused.remove(facts.thread_id.as_str());
    }

    /// Notes what both sides say of an event, and returns the loss.
    pub(super) fn note(&mut self, facts: &Facts, from: &Side, to: &Side) -> Loss {
        let is_over = |stopped: &Stopped| facts.turn_id.is_some() && facts.turn_id != stopped.turn_id;
        if self.threads.get(facts.thread_id.as_str()).is_some_and(is_over) {
            self.threads.remove(facts.thread_id.as_str());
        }
        if let Some(stopped) = self.threads.get_mut(facts.thread_id.as_str()) {
            stopped.is_stopped_by_both |= from.stops_turn();
            // A result of a call that was not allowed to run is no work.
            if stopped.is_stopped_by_both || !facts.succeeded || from.code == NOT_EXECUTED {
                return Loss::default();
            }
            return Loss { calls: 1, turns: u64::from(!std::mem::replace(&mut stopped.has_lost_work, true)), refused: 0 };
        }
        if to.action == Action::Block && from.action != Action::Block && facts.event_type == EventType::ToolCall.as_str() {
            self.refused.insert(facts.thread_id.as_str().into());
        }
        if facts.succeeded && to.code == NOT_EXECUTED && from.code != NOT_EXECUTED {
            return Loss { refused: 1, ..Loss::default() };
        }
        if to.stops_turn() && !from.stops_turn() {
            let stopped = Stopped { turn_id: facts.turn_id.clone(), has_lost_work: false, is_stopped_by_both: false };
            self.threads.insert(facts.thread_id.as_str().into(), stopped);
        }
        Loss::default()
    }
}

/// The code of results whose call was not allowed to run.
const NOT_EXECUTED: &str = "not_executed";

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::decide::ruling::DecidedBy;

    fn side(action: Action, code: &'static str) -> Side {
        Side { action, code: code.into(), decided_by: DecidedBy::None }
    }

    fn facts(turn: &str, succeeded: bool) -> Facts {
        Facts { thread_id: "t".to_owned(), turn_id: Some(turn.to_owned()), succeeded, ..Facts::default() }
    }

    #[test]
    fn what_succeeds_behind_a_new_stop_is_lost_until_the_turn_is_over() {
        let (allow, halt) = (side(Action::Allow, "allow"), side(Action::Halt, "same_tool_failing"));
        let mut turns = StoppedTurns::default();
        assert_eq!(turns.note(&facts("1", true), &allow, &allow), Loss::default());
        assert_eq!(turns.note(&facts("1", true), &allow, &halt), Loss::default());
        assert!(turns.is_stopped("t") && !turns.is_stopped("u"));
        assert_eq!(turns.note(&facts("1", true), &allow, &halt), Loss { calls: 1, turns: 1, refused: 0 });
        assert_eq!(turns.note(&facts("1", true), &allow, &halt), Loss { calls: 1, turns: 0, refused: 0 });
        assert_eq!(turns.note(&facts("1", false), &allow, &halt), Loss::default());
        assert_eq!(turns.note(&facts("1", true), &side(Action::Allow, "not_executed"), &halt), Loss::default());
        assert_eq!(turns.note(&facts("2", true), &allow, &allow), Loss::default());
        assert!(!turns.is_stopped("t"));
        turns.note(&facts("2", true), &allow, &halt);
        turns.boundary(&facts("2", false));
        assert!(!turns.is_stopped("t"));
    }

    #[test]
    fn a_call_that_succeeds_and_that_only_the_second_side_refuses_is_refused_work() {
        let (allow, block) = (side(Action::Allow, "allow"), side(Action::Block, "tool_denied"));
        let (done, none) = (side(Action::Allow, "allow"), side(Action::Allow, NOT_EXECUTED));
        let mut turns = StoppedTurns::default();
        assert!(!turns.asks("t"));
        turns.note(&Facts { event_type: EventType::ToolCall.as_str(), ..facts("1", false) }, &allow, &block);
        assert!(turns.asks("t") && !turns.asks("u"));
        let refused = Loss { refused: 1, ..Loss::default() };
        assert_eq!(turns.note(&facts("1", true), &done, &none), refused);
        assert_eq!(turns.note(&facts("1", false), &done, &none), Loss::default(), "it failed");
        assert_eq!(turns.note(&facts("1", true), &none, &none), Loss::default(), "nobody ran it");
        turns.boundary(&facts("1", false));
        assert!(!turns.asks("t"));
    }

    #[test]
    fn what_comes_after_both_have_stopped_is_lost_by_both() {
        let (allow, halt) = (side(Action::Allow, "allow"), side(Action::Halt, "same_tool_failing"));
        let mut turns = StoppedTurns::default();
        turns.note(&facts("1", false), &allow, &halt);
        assert_eq!(turns.note(&facts("1", true), &allow, &halt), Loss { calls: 1, turns: 1, refused: 0 });
        assert_eq!(turns.note(&facts("1", false), &halt, &halt), Loss::default());
        assert_eq!(turns.note(&facts("1", true), &allow, &halt), Loss::default());
    }

    #[test]
    fn a_stop_of_both_is_nobodys_loss() {
        let halt = side(Action::Halt, "same_tool_failing");
        let mut turns = StoppedTurns::default();
        turns.note(&facts("1", true), &halt, &halt);
        assert!(!turns.is_stopped("t"));
    }

    #[test]
    fn a_block_that_should_halt_stops_its_turn() {
        let (allow, block) = (side(Action::Allow, "allow"), side(Action::Block, "repeated_exact_failure_block"));
        let mut turns = StoppedTurns::default();
        turns.note(&facts("1", false), &allow, &block);
        assert_eq!(turns.note(&facts("1", true), &allow, &allow), Loss { calls: 1, turns: 1, refused: 0 });
        turns.note(&facts("2", false), &block, &block);
        assert_eq!(turns.note(&facts("2", true), &allow, &allow), Loss::default());
    }
}
