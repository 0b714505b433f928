//! Which difference is the first of its turn: that one is certain, and the later ones may follow from it.

use rustc_hash::FxHashMap;

use super::flip::Facts;

/// The running turns in which something differed, by thread.
#[derive(Debug, Default)]
pub(super) struct DifferingTurns {
    /// The turn, if the host names turns.
    threads: FxHashMap<Box<str>, Option<String>>,
}

impl DifferingTurns {
    /// Notes that a turn begins or ends.
    pub(super) fn boundary(&mut self, facts: &Facts) {
        self.threads.remove(facts.thread_id.as_str());
    }

    /// Notes a difference, and returns whether it is the first of its turn.
    pub(super) fn is_first(&mut self, facts: &Facts) -> bool {
        match self.threads.get_mut(facts.thread_id.as_str()) {
            Some(turn_id) if facts.turn_id.is_none() || *turn_id == facts.turn_id => false,
            Some(turn_id) => {
                turn_id.clone_from(&facts.turn_id);
                true
            }
            None => {
                self.threads.insert(facts.thread_id.as_str().into(), facts.turn_id.clone());
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_has_one_first_difference() {
        let facts =
            |thread: &str, turn: Option<&str>| Facts { thread_id: thread.to_owned(), turn_id: turn.map(str::to_owned), ..Facts::default() };
        let mut turns = DifferingTurns::default();
        let mut note = |thread, turn| turns.is_first(&facts(thread, turn));
        assert_eq!([note("a", Some("1")), note("a", Some("1")), note("b", None), note("b", None)], [true, false, true, false]);
        assert_eq!([note("a", Some("2")), note("a", None), note("a", Some("2"))], [true, false, false]);
        turns.boundary(&facts("b", None));
        assert!(turns.is_first(&facts("b", None)));
    }
}
