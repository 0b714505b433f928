//! What operators do, and what becomes of state.

use std::sync::Arc;

use tollgate_abuse::{Abuse, AbuseRules, AbuseState, Rule};
use tollgate_core::decide::signal::Request;
use tollgate_core::engine::checkpoint::{Checkpoint, KeyedState, Malformed, StateError};
use tollgate_core::engine::processor::PartitionProcessor;
use tollgate_core::engine::stage::Stage;
use tollgate_core::event::record::Offset;
use tollgate_fixtures::gate;
use tollgate_json::digest::Digest;

use super::fixture::*;

const OWNER: &str = "tollgate-abuse/tollgate.signals";

/// Folds records by a processor, and returns the checkpoint behind them.
fn checkpoint(rules: Arc<AbuseRules>, values: &[Vec<u8>]) -> (PartitionProcessor<Abuse>, Arc<Checkpoint>) {
    let mut processor = PartitionProcessor::new(PARTITION, Abuse::new(rules, AbuseState::default()));
    for (value, offset) in values.iter().zip(0..) {
        processor.apply(&record(offset, LOG, value), &mut ()).unwrap();
        processor.published(Offset(offset), 0).unwrap();
    }
    processor.freeze(OWNER);
    let checkpoint = processor.take_checkpoint().unwrap();
    processor.checkpoint_written();
    (processor, checkpoint)
}

fn restore(checkpoint: &Checkpoint) -> Result<AbuseState, StateError> {
    gate::restore(&checkpoint.records).finish(OWNER, ()).map(|restored| restored.unwrap().state).map_err(|(_, error)| error)
}

fn stops(id: &str, offsets: std::ops::Range<i64>) -> Vec<u8> {
    value_of(&offsets.map(|offset| part(stop(id, offset, START))).collect::<Vec<_>>())
}

#[test]
fn a_pardon_forgets_what_a_subject_has_done() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    (0..8).for_each(|n| drop(bench.stop("a", n, START)));
    assert!(bench.suspended_until("a").is_some());
    let alerts = bench.request(&Request::Pardon(user("a")));
    assert_eq!(shown(&alerts, &["status", "action", "rule"]), ["ended pardoned three"]);
    assert_eq!((bench.suspended_until("a"), bench.last.counts.pardoned), (None, 1));
    assert!(bench.stop("a", 20, START).is_empty(), "the two signals before are forgotten");
    let alerts = (21..23).flat_map(|n| bench.stop("a", n, START)).collect::<Vec<_>>();
    assert_eq!(shown(&alerts, &["status", "step"]), ["firing 1"]);
    assert!(bench.request(&Request::Pardon(user("nobody"))).is_empty());
}

/// A checkpoint holds what the stage needs, under its own keys.
#[test]
fn state_is_restored_as_it_was() {
    let values = [value_of(&[clock(0, 1, START)]), stops("a", 0..7), stops("b", 7..9)];
    let (_, checkpoint) = checkpoint(rules(vec![rule("three")]), &values);
    let mut keys: Vec<&str> = checkpoint.records.iter().map(|record| &*record.key).collect();
    keys.sort_unstable();
    let mut expected = vec![format!("abuse/subject/{}", user("a")), format!("abuse/subject/{}", user("b")), "abuse/source/0".to_owned()];
    expected.extend(["abuse/rule/three", "abuse/partition", "partition"].map(str::to_owned));
    expected.sort_unstable();
    assert_eq!(keys, expected);
    let mut stage = Abuse::new(rules(vec![rule("three")]), restore(&checkpoint).unwrap());
    assert_eq!(stage.warming().count(), 0);
    let value = stops("b", 9..10);
    let folded = stage.fold(&record(3, LOG, &value), &tollgate_core::decide::signal::read(Some(&value)).unwrap());
    assert_eq!((folded.alerts.len(), stage.clock_ms(), stage.subjects()), (1, Some(START), 2));
}

#[test]
fn a_subject_of_which_nothing_is_left_leaves_a_tombstone() {
    let values = [value_of(&[clock(0, 1, START)]), stops("a", 0..1)];
    let (mut processor, _) = checkpoint(rules(vec![rule("three")]), &values);
    let value = value_of(&[clock(0, 1, START + 2 * HOUR)]);
    processor.apply(&record(2, LOG, &value), &mut ()).unwrap();
    processor.published(Offset(2), 0).unwrap();
    processor.freeze(OWNER);
    let checkpoint = processor.take_checkpoint().unwrap();
    let key = format!("abuse/subject/{}", user("a"));
    assert_eq!(checkpoint.records.iter().find(|record| record.key == key).map(|record| record.value.is_none()), Some(true));
    assert_eq!(processor.stage().state().len(), 3, "a source, a rule and the partition");
}

#[test]
fn damaged_state_is_refused() {
    let (_, checkpoint) = checkpoint(rules(vec![rule("three")]), &[stops("a", 0..2)]);
    let damaged = |damage: &dyn Fn(&mut Vec<u8>)| {
        let mut checkpoint = (*checkpoint).clone();
        let is_subject = |key: &str| key.starts_with("abuse/subject/");
        let record = checkpoint.records.iter_mut().find(|record| is_subject(&record.key)).unwrap();
        damage(record.value.as_mut().unwrap());
        restore(&checkpoint).map(drop)
    };
    assert_eq!(damaged(&|_| {}), Ok(()));
    assert_eq!(damaged(&|value| value[0] = 2), Err(StateError::Newer { found: 2 }));
    assert_eq!(damaged(&|value| value[1] = 9), Err(Malformed::Invalid("what the entry is about").into()));
    assert_eq!(damaged(&|value| value.truncate(value.len() - 1)), Err(Malformed::Truncated.into()));
    assert_eq!(damaged(&|value| value.truncate(1)), Err(Malformed::Truncated.into()));
    assert!(damaged(&|value| value.push(0)).is_err());
    let length = |value: &mut Vec<u8>| value.len();
    let mut value = checkpoint.records[0].value.clone().unwrap();
    for at in 0..length(&mut value) {
        // Whatever a byte says, reading it does not panic.
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let _result = damaged(&|value| {
                if let Some(place) = value.get_mut(at) {
                    *place = byte
                }
            });
        }
    }
}

/// Its suspensions end with it.
#[test]
fn a_rule_that_is_gone_takes_its_state_and_its_suspensions_with_it() {
    let values = [value_of(&[clock(0, 1, START)]), stops("a", 0..7)];
    let (_, checkpoint) = checkpoint(rules(vec![rule("three")]), &values);
    let mut stage = Abuse::new(rules(vec![]), restore(&checkpoint).unwrap());
    let value = value_of(&[clock(0, 1, START + MINUTE)]);
    let folded = stage.fold(&record(2, LOG, &value), &tollgate_core::decide::signal::read(Some(&value)).unwrap());
    assert_eq!(folded.controls.iter().map(|control| control.value.is_none()).collect::<Vec<_>>(), [true]);
    let mut gone = Vec::new();
    let mut state = std::mem::take(stage.state_mut());
    state.take_changes(|key, entry| {
        if entry.is_none() {
            gone.push(key.to_owned())
        }
    });
    gone.sort_unstable();
    assert_eq!(gone, ["rule/three".to_owned(), format!("subject/{}", user("a"))]);
}

#[test]
fn a_changed_rule_counts_anew_and_leaves_subjects_where_they_are_on_its_ladder() {
    let values = [value_of(&[clock(0, 1, START)]), stops("a", 0..5)];
    let (_, checkpoint) = checkpoint(rules(vec![rule("three")]), &values);
    let changed = Rule { version: Digest::of(b"another"), ..rule("three") };
    let mut stage = Abuse::new(rules(vec![changed]), restore(&checkpoint).unwrap());
    assert_eq!(stage.warming().count(), 1);
    let mut warm_up = stage.warm_up().unwrap();
    warm_up.begin_at(Offset(2));
    stage.offer(warm_up, std::num::NonZeroUsize::MAX);
    let fold = |stage: &mut Abuse, offset: i64, value: Vec<u8>| {
        let folded = stage.fold(&record(offset, LOG, &value), &tollgate_core::decide::signal::read(Some(&value)).unwrap());
        folded.alerts.iter().map(|alert| serde_json::from_slice(&alert.value).unwrap()).collect::<Vec<serde_json::Value>>()
    };
    assert!(fold(&mut stage, 2, stops("a", 5..7)).is_empty(), "two of before do not count");
    stage.checkpoint_written(Offset(3));
    assert_eq!(shown(&fold(&mut stage, 3, stops("a", 7..8)), &["status", "step"]), ["escalated 2"]);
}

/// What suspends somebody may be of a state that was lost.
#[test]
fn a_pardon_of_a_subject_that_is_not_known_takes_its_control_back() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    bench.request(&Request::Pardon(user("lost")));
    let tombstones: Vec<_> = bench.last.controls.iter().map(|control| (control.key.as_str(), control.value.is_none())).collect();
    assert_eq!(tombstones, [(&*format!("subject/{}/abuse", user("lost")), true)]);
}
