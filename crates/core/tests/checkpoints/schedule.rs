//! Makes random schedules of what happens to the workers of a partition.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// An act of a worker.
#[derive(Debug, Clone)]
pub enum Act {
    /// Reads so many records.
    Poll(usize),
    /// Receives so many acknowledgements, in any order.
    Acknowledge { from: usize, count: usize },
    /// Receives so many answers, in any order, and then answers to the questions that follow from them.
    Answer { from: usize, count: usize, rounds: usize },
    /// Freezes its state.
    Freeze,
    /// Begins to write the frozen state.
    Begin,
    /// Learns whether it was written.
    Settle { is_written: bool },
}

/// A step of a schedule.
#[derive(Debug, Clone)]
pub enum Step {
    /// The owner does something.
    Owner(Act),
    /// A worker that was fenced without knowing it does something.
    Zombie(Index, Act),
    /// The owner dies. Some publications that were not acknowledged are in the decisions log, and the checkpoint that was being written may
    /// be there. The owner's successor reads some records again.
    Crash { landed: Vec<bool>, is_written: bool, reread: usize },
    /// Another worker becomes the owner while this one goes on.
    Usurp { is_written: bool, reread: usize },
    /// The owner gives the partition back in order.
    Revoke,
    /// The brokers lose the mark of the next commit.
    LoseMark,
    /// The state topic is compacted up to a record.
    Compact { upto: Index, drops_tombstones: bool },
}

/// Returns acts of a worker; `few` and `many` are how many records are read at once.
fn act(few: Range<usize>, many: Range<usize>) -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => few.prop_map(Act::Poll),
        1 => many.prop_map(Act::Poll),
        8 => (any::<u16>(), 1..8_usize).prop_map(|(from, count)| Act::Acknowledge { from: usize::from(from), count }),
        3 => Just(Act::Acknowledge { from: 0, count: usize::MAX }),
        7 => Just(Act::Freeze),
        7 => Just(Act::Begin),
        7 => proptest::bool::weighted(0.65).prop_map(|is_written| Act::Settle { is_written }),
    ]
}

fn answer() -> impl Strategy<Value = Act> {
    let count = prop_oneof![5 => 1..6_usize, 1 => Just(usize::MAX)];
    let rounds = prop_oneof![6 => Just(1_usize), 2 => 2..6_usize, 1 => Just(usize::MAX)];
    (any::<u16>(), count, rounds).prop_map(|(from, count, rounds)| Act::Answer { from: usize::from(from), count, rounds })
}

fn step(has_servers: bool) -> impl Strategy<Value = Step> {
    let act = move || if has_servers { prop_oneof![3 => act(1..6, 6..40), 2 => answer()].boxed() } else { act(1..12, 100..400).boxed() };
    // With servers, records wait, and more acts are needed for anything to happen.
    let acts = if has_servers { 100 } else { 40 };
    let reread = prop_oneof![1 => Just(0_usize), 2 => 1..20_usize];
    prop_oneof![
        acts => act().prop_map(Step::Owner),
        acts / 5 => (any::<Index>(), act()).prop_map(|(which, act)| Step::Zombie(which, act)),
        1 => (vec(any::<bool>(), 1..16), any::<bool>(), reread.clone())
            .prop_map(|(landed, is_written, reread)| Step::Crash { landed, is_written, reread }),
        1 => (any::<bool>(), reread).prop_map(|(is_written, reread)| Step::Usurp { is_written, reread }),
        1 => Just(Step::Revoke),
        4 => Just(Step::LoseMark),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(upto, drops_tombstones)| Step::Compact { upto, drops_tombstones }),
    ]
}

/// Returns schedules; where there are servers, they answer.
pub fn schedule(has_servers: bool) -> impl Strategy<Value = Vec<Step>> {
    vec(step(has_servers), 1..200)
}
