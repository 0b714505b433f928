//! Checks what holds however workers come and go: no record is lost, none is decided in two ways, and the restored state is the one that a
//! processor which was never interrupted has at the committed offset.
//!
//! Random logs and random schedules run over a model of the topics; `model.rs` and `worker.rs` check after every step.

mod deciding;
mod model;
mod schedule;
mod truth;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tollgate_core::event::record::Offset;
use tollgate_fixtures::gate;

use deciding::Shape;
use model::World;
use schedule::{Act, Step};
use truth::{Logged, Truth};

/// A log without servers, in which threads come and go.
const ALONE: Shape = Shape { threads: 12, calls: 8, has_pauses: true };
/// A log with servers, in which many threads wait with more events behind.
const ASKING: Shape = Shape { threads: 8, calls: 12, has_pauses: false };

/// How often each kind of trouble came about.
type Seen = BTreeMap<&'static str, usize>;

/// Follows a schedule to the end of the log; returns what came about.
fn follow(config: &Value, log: Vec<Logged>, schedule: &[Step]) -> Result<Seen, TestCaseError> {
    let policy = Arc::new(gate::policy(config));
    let truth = Truth::of(&policy, log);
    let mut world = World::new(&policy, &truth);
    schedule.iter().try_for_each(|step| world.step(step))?;
    world.conclude()?;
    let departures = truth.departures;
    for (what, count) in [("evicted", departures.evicted), ("expired", departures.expired), ("refused thread", departures.refused)] {
        *world.outside.seen.entry(what).or_default() += usize::try_from(count).unwrap();
    }
    Ok(world.outside.seen)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 768, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_decided_in_two_ways(config in deciding::config(), log in deciding::log(ALONE), schedule in schedule::schedule(false)) {
        follow(&config, log, &schedule)?;
    }

    #[test]
    fn nor_is_it_where_servers_are_asked(
        config in deciding::config_with_servers(), log in deciding::log(ASKING), schedule in schedule::schedule(true),
    ) {
        follow(&config, log, &schedule)?;
    }
}

/// Counts what comes about in some schedules.
fn troubles<T>(schedules: usize, strategy: impl Strategy<Value = T>, follow: impl Fn(T) -> Result<Seen, TestCaseError>) -> Seen {
    let mut runner = TestRunner::deterministic();
    let mut seen = Seen::new();
    for _ in 0..schedules {
        let case = strategy.new_tree(&mut runner).unwrap().current();
        follow(case).unwrap().into_iter().for_each(|(what, count)| *seen.entry(what).or_default() += count);
    }
    seen
}

fn assert_seen(seen: &Seen, often: usize, troubles: &[&str]) {
    for what in troubles {
        assert!(seen.get(what).is_some_and(|count| *count > often), "{what} hardly ever came about: {seen:?}");
    }
}

/// What happens to a worker whether it has servers to ask or not.
#[rustfmt::skip]
const ALWAYS: [&str; 11] = [
    "value", "tombstone", "refused checkpoint", "unknown outcome, written", "crash", "revoke", "redelivery", "fenced", "compaction",
    "commit lost", "written again",
];

/// What happens to a worker whose records wait for answers.
const WAITING: [&str; 4] = ["crash while waiting", "usurped while waiting", "revoke while waiting", "handed out while waiting"];

/// In the random schedules everything that can go wrong does go wrong.
#[test]
fn the_schedules_hold_every_kind_of_trouble() {
    let decide = |(config, log, schedule): (Value, Vec<Logged>, Vec<Step>)| follow(&config, log, &schedule);
    let seen = troubles(40, (deciding::config(), deciding::log(ALONE), schedule::schedule(false)), decide);
    assert_seen(&seen, 3, &ALWAYS);
    assert_seen(&seen, 3, &["evicted", "expired", "refused thread"]);
    let seen = troubles(80, (deciding::config_with_servers(), deciding::log(ASKING), schedule::schedule(true)), decide);
    assert_seen(&seen, 3, &ALWAYS);
    assert_seen(&seen, 5, &WAITING);
    assert_seen(&seen, 30, &["frozen while waiting"]);
    assert_seen(&seen, 100, &["asked", "second question", "asked by another worker before", "waited behind", "answered out of order"]);
    for what in ["evicted", "expired", "refused thread"] {
        assert_eq!(seen[what], 0, "{what} depends on when answers come");
    }
}

/// A tombstone that was refused is still due while nothing else was written of the thread, though the thread comes back and ends again.
#[test]
fn a_refused_tombstone_is_not_forgotten_when_its_thread_comes_back_and_ends_again() {
    let call = json!({"type": "tool_call", "thread_id": "t", "tool_call_id": "c", "tool_name": "ls", "tool_input": {}});
    let end = json!({"type": "turn_end", "thread_id": "t"});
    let log = [&call, &end, &call, &end].into_iter().zip(0..);
    let log = log.map(|(event, offset)| Logged { offset: Offset(offset), value: Some(event.to_string()), ..Logged::default() }).collect();
    let read = [Act::Poll(1), Act::Acknowledge { from: 0, count: 1 }];
    let begin = [Act::Freeze, Act::Begin];
    let (written, refused) = ([Act::Settle { is_written: true }], [Act::Settle { is_written: false }]);
    let acts: [&[Act]; 8] = [&read, &begin, &written, &read, &begin, &read, &refused, &read];
    let schedule: Vec<_> = acts.concat().into_iter().map(Step::Owner).collect();
    follow(&json!({}), log, &schedule).unwrap();
}
