//! A stage that gives no verdicts and keeps no threads, in the model: what holds for the gate holds for any stage.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::engine::checkpoint::{Malformed, Restore, StateError};
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::Progress;
use tollgate_core::event::record::Offset;
use tollgate_fixtures::sample_stage::{Outcome, Request, Signals, Subject, Subjects, key_of};

use super::truth::{Logged, Modelled, PARTITION};

impl Modelled for Signals {
    type Settings = ();

    fn under((): &(), state: Option<Subjects>) -> Self {
        state.map_or_else(Self::default, Self::with_state)
    }

    fn limits((): &()) {}

    fn key((): &(), logged: &Logged) -> Option<String> {
        logged.key.filter(|_| !logged.is_unreadable).map(|user| key_of(user).into())
    }

    fn answer_to(request: &Request) -> u64 {
        match (request.tool.as_str(), request.round) {
            ("ask_twice", 1) => 0,
            ("ask_twice", _) => 2,
            _ => 3,
        }
    }

    fn due(outcome: &Outcome) -> u32 {
        match outcome {
            Outcome::Counted | Outcome::Forgotten => 0,
            Outcome::Rejected => 1,
            Outcome::Alert(_) => 2,
        }
    }

    fn entries(state: &Subjects) -> Vec<(String, Subject)> {
        state.entries.iter().map(|(key, subject)| (key.to_string(), *subject)).collect()
    }
}

fn logged(offset: i64, time_ms: i64, user: &'static str, tool: &str) -> Logged {
    Logged { offset: Offset(offset), timestamp_ms: Some(time_ms), key: Some(user), value: Some(tool.to_owned()), is_unreadable: false }
}

/// Returns logs of few users, whose offsets have gaps.
pub fn log() -> impl Strategy<Value = Vec<Logged>> {
    let tool = prop_oneof![8 => Just("bash"), 3 => Just("ask"), 2 => Just("ask_twice"), 1 => Just("forget")];
    let gap = prop_oneof![6 => Just(1_i64), 1 => 2..5_i64];
    let entry = (select(vec!["ada", "bob", "cy", "dee"]), tool, proptest::bool::weighted(0.05), gap, -300..3_000_i64);
    (0..30_i64, vec(entry, 1..80)).prop_map(|(start, entries)| {
        let (mut offset, mut time_ms) = (start, 1_000_000);
        let next = |(user, tool, is_unreadable, gap, pause_ms)| {
            let logged = Logged { is_unreadable, ..logged(offset, time_ms, user, tool) };
            (offset, time_ms) = (offset + gap, time_ms + pause_ms);
            logged
        };
        entries.into_iter().map(next).collect()
    })
}

/// The log of one user leaves these records in the stage's own topic, to the byte.
#[test]
fn its_records_have_its_own_keys_and_its_own_bytes() {
    let mut processor = PartitionProcessor::new(PARTITION, Signals::default());
    let mut out = String::new();
    for number in 0..5 {
        let outcome = if number == 4 { Outcome::Alert(5) } else { Outcome::Counted };
        let applied = logged(number, 0, "ada", "bash").apply(&mut processor, &mut out).0;
        assert_eq!(applied, Applied::Taken(Progress::Done(outcome)));
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
