//! What holds however workers come and go: no record is lost, none is decided in two ways, and the state that is restored is the one
//! that a lane which was never interrupted has at the committed offset.
//!
//! Random logs and random schedules over a model of the topics; `model.rs` checks after every step.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod log;
mod model;
mod schedule;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate::decode::Offset;

use log::{Logged, Truth};
use model::World;
use schedule::{Act, Step};

/// Follows a schedule to the end of the log; the answer is what came about.
fn follow(config: &Value, log: Vec<Logged>, schedule: &[Step]) -> Result<BTreeMap<&'static str, usize>, TestCaseError> {
    let policy = support::policy(config);
    let truth = Truth::of(&policy, log);
    let mut world = World::new(&policy, &truth);
    schedule.iter().try_for_each(|step| world.step(step))?;
    world.conclude()?;
    let departures = truth.departures;
    for (what, count) in [("evicted", departures.evicted), ("expired", departures.expired), ("refused thread", departures.refused)] {
        *world.seen.entry(what).or_default() += usize::try_from(count).unwrap();
    }
    Ok(world.seen)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 768, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_decided_in_two_ways(config in log::config(), log in log::log(), schedule in schedule::schedule()) {
        follow(&config, log, &schedule)?;
    }
}

/// The random schedules are worth following: everything that can go wrong does.
#[test]
fn the_schedules_hold_every_kind_of_trouble() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::<&str, usize>::new();
    for _ in 0..40 {
        let tree = (log::config(), log::log(), schedule::schedule()).new_tree(&mut runner).unwrap();
        let (config, log, schedule) = tree.current();
        follow(&config, log, &schedule).unwrap().into_iter().for_each(|(what, count)| *seen.entry(what).or_default() += count);
    }
    for what in [
        "value",
        "tombstone",
        "refused checkpoint",
        "unknown outcome, written",
        "crash",
        "revoke",
        "redelivery",
        "fenced",
        "compaction",
        "evicted",
        "expired",
        "refused thread",
    ] {
        assert!(seen.get(what).is_some_and(|count| *count > 3), "{what} hardly ever came about: {seen:?}");
    }
}

/// A tombstone that was refused is owed as long as nothing else was written of the thread, though the thread comes back and ends again.
#[test]
fn a_refused_tombstone_is_not_forgotten_when_its_thread_comes_back_and_ends_again() {
    let call = json!({"type": "tool_call", "thread_id": "t", "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
    let end = json!({"type": "turn_end", "thread_id": "t"});
    let log = [&call, &end, &call, &end].into_iter().zip(0..);
    let log = log.map(|(event, offset)| Logged { offset: Offset(offset), value: Some(event.to_string()) }).collect();
    let read = [Act::Poll(1), Act::Acknowledge { from: 0, count: 1 }];
    let begin = [Act::Freeze, Act::Begin];
    let (written, refused) = ([Act::Settle { is_written: true }], [Act::Settle { is_written: false }]);
    let acts: [&[Act]; 8] = [&read, &begin, &written, &read, &begin, &read, &refused, &read];
    let schedule: Vec<_> = acts.concat().into_iter().map(Step::Owner).collect();
    follow(&json!({}), log, &schedule).unwrap();
}
