//! Checks that the processor, the offset tracker, checkpoints and restores work for any stage. The stage here gives no verdicts and keeps
//! no threads; it runs in random schedules over a random log.
//!
//! After every restore the state is that of a fresh fold up to the committed offset. Nothing is committable beyond a record that is not
//! acknowledged. The outcome of a record is published at least once, and is the same each time.

mod truth;
mod world;

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tollgate_core::engine::checkpoint::{Malformed, Restore, StateError};
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::Progress;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_fixtures::sample_stage::{Outcome, Signals, Subjects, key_of};

use truth::{Logged, Truth};
use world::{Step, World};

/// Follows a schedule to the end of the log, and returns what came about.
fn follow(log: Vec<Logged>, schedule: &[Step]) -> Result<BTreeMap<&'static str, usize>, TestCaseError> {
    let truth = Truth::of(log);
    let mut world = World::new(&truth);
    schedule.iter().try_for_each(|step| world.step(step))?;
    world.conclude()?;
    Ok(world.seen)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 768, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn another_stage_loses_nothing_and_counts_nothing_twice(log in truth::log(), schedule in world::schedule()) {
        follow(log, &schedule)?;
    }
}

/// In the random schedules everything that can go wrong does go wrong.
#[test]
fn the_schedules_hold_every_kind_of_trouble() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::<_, usize>::new();
    for _ in 0..60 {
        let (log, schedule) = (truth::log(), world::schedule()).new_tree(&mut runner).unwrap().current();
        follow(log, &schedule).unwrap().into_iter().for_each(|(what, count)| *seen.entry(what).or_default() += count);
    }
    for what in ["value", "tombstone", "refused", "crash", "unknown outcome, written", "redelivered", "published again"] {
        assert!(seen.get(what).is_some_and(|count| *count > 3), "{what} hardly ever came about: {seen:?}");
    }
    for what in ["asked", "asked later", "asked twice", "waited", "frozen while waiting", "handed out while waiting"] {
        assert!(seen.get(what).is_some_and(|count| *count > 3), "{what} hardly ever came about: {seen:?}");
    }
}

/// The log of one user leaves these records in the stage's own topic, to the byte.
#[test]
fn its_records_have_its_own_keys_and_its_own_bytes() {
    let mut processor = PartitionProcessor::new(Partition(3), Signals::default());
    let mut out = String::new();
    for number in 0..5 {
        let logged = Logged { offset: Offset(number), time_ms: 0, user: "ada", tool: "bash", is_readable: true };
        let outcome = if number == 4 { Outcome::Alert(5) } else { Outcome::Counted };
        assert_eq!(processor.apply(&logged.record(), &mut out), Ok(Applied::Taken(Progress::Done(outcome))));
        processor.published(Offset(number), 0).unwrap();
    }
    let key = format!("subject/{}", key_of("ada"));
    assert_eq!(format!("subject/{out}"), format!("{key}: 5"));
    processor.freeze("signals/calls");
    let checkpoint = processor.take_checkpoint().unwrap();
    let [entry, partition] = &checkpoint.records[..] else { panic!("{checkpoint:?}") };
    assert_eq!((&entry.key, entry.value.as_deref()), (&key, Some(&[1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4][..])));
    assert_eq!(partition.key, "partition");
    assert_eq!(checkpoint.keys::<Subjects>().collect::<Vec<_>>(), [&*key_of("ada")]);
}

/// A topic of another stage is not read as state, nor is one that is not whole.
#[test]
fn what_another_stage_has_left_is_no_state_of_this_one() {
    let refusal = |key: &str, value: &[u8]| {
        let mut restore = Restore::<Subjects>::default();
        restore.take(Offset(7), Some(key.as_bytes()), Some(value));
        restore.finish("signals/calls", ()).unwrap_err()
    };
    assert_eq!(refusal("thread/t", &[1]), (Some(Offset(7)), StateError::Key { bytes: 8, kind: "subject" }));
    assert_eq!(refusal("subject/u", &[1, 0]), (Some(Offset(7)), Malformed::Truncated.into()));
    assert_eq!(refusal("subject/u", &[2]), (Some(Offset(7)), StateError::Newer { found: 2 }));
    assert_eq!(refusal("subject/u", &[[1].as_slice(), &[0; 16]].concat()), (None, StateError::NoPartition { entries: 1, kind: "subject" }));
}
