//! Tests the bytes of checkpoints: what is written today, that all older versions can be read, and what is refused.
//!
//! Every version of the encoding has five goldens: the records of the checkpoints behind five scripts. `tests/fixtures/state-v<version>.jsonl`
//! belongs to `script.rs`, and those that end in `-reasons`, `-tenants`, `-counted` and `-steps` to the scripts of these names. The goldens of the
//! version that is written now are made anew by `TOLLGATE_UPDATE_FIXTURES=1 cargo test -p tollgate-core --test integration state_format::`;
//! goldens of older versions are never made again. The scripts serve all versions: what only a new version can hold belongs into a script of
//! its own, with the first version that has it.

mod bytes;
mod counted;
mod damage;
mod reasons;
mod refusals;
mod script;
mod steps;
mod tenants;

use std::path::Path;
use std::sync::{Arc, Once};

use serde_json::{Value, json};
use tollgate_core::decide::deciding::Outcome;
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::{StoredThread, ThreadStore, read_thread};
use tollgate_core::engine::checkpoint::{Checkpoint, KeyedState, Restored, StateKey, StateRecord, VERSION, read_partition};
use tollgate_fixtures::{cases, gate};

use script::{OWNER, PARTITION, feed, policy, scripted};

const UPDATE: &str = "TOLLGATE_UPDATE_FIXTURES";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A script whose state has a golden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// The script in `script.rs`.
    Shapes,
    /// The script in `reasons.rs`.
    Reasons,
    /// The script in `tenants.rs`.
    Tenants,
    /// The script in `counted.rs`.
    Counted,
    /// The script in `steps.rs`.
    Steps,
}

impl Script {
    /// Every script with the first version that can hold its state.
    const ALL: [(Self, u8); 5] = [(Self::Shapes, 1), (Self::Reasons, 1), (Self::Tenants, 1), (Self::Counted, 1), (Self::Steps, 1)];

    fn path(self, version: u8) -> String {
        let suffix = match self {
            Self::Shapes => "",
            Self::Reasons => "-reasons",
            Self::Tenants => "-tenants",
            Self::Counted => "-counted",
            Self::Steps => "-steps",
        };
        format!("tests/fixtures/state-v{version}{suffix}.jsonl")
    }

    /// Returns the golden of a version. That of the current one is written first, if that was asked for.
    fn golden(self, version: u8) -> Vec<StateRecord> {
        static UPDATED: Once = Once::new();
        UPDATED.call_once(|| {
            if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
                write(&Self::Shapes.path(VERSION), &scripted(policy()).1);
                write(&Self::Reasons.path(VERSION), &reasons::scripted(&Arc::new(reasons::policy())).1);
                write(&Self::Tenants.path(VERSION), &tenants::scripted());
                write(&Self::Counted.path(VERSION), &counted::scripted());
                write(&Self::Steps.path(VERSION), &steps::scripted());
            }
        });
        let path = self.path(version);
        assert!(Path::new(&path).exists(), "{path} is missing: make it with {UPDATE}=1");
        let read = |line: &Value| StateRecord {
            key: line["key"].as_str().unwrap().to_owned(),
            value: Some(&line["value_hex"]).filter(|value| !value.is_null()).map(cases::unhex),
        };
        cases::jsonl(&path).iter().map(read).collect()
    }
}

fn write(path: &str, checkpoint: &Checkpoint) {
    let line = |record: &StateRecord| json!({"key": record.key, "value_hex": record.value.as_deref().map(hex)});
    let lines: String = checkpoint.records.iter().map(|record| format!("{}\n", line(record))).collect();
    std::fs::write(path, lines).expect("the golden can be written");
}

/// Returns the golden of a version that every version has.
fn golden(version: u8) -> Vec<StateRecord> {
    Script::Shapes.golden(version)
}

/// Returns the records with a value of all goldens from a version on, with their version.
fn goldens(first: u8) -> Vec<(u8, String, Vec<u8>)> {
    let of = |version: u8| {
        let scripts = Script::ALL.into_iter().filter(move |(_, since)| version >= *since);
        scripts.flat_map(move |(script, _)| script.golden(version))
    };
    let with_value = |version: u8| of(version).filter_map(move |record| Some((version, record.key, record.value?)));
    (first..=VERSION).flat_map(with_value).collect()
}

/// Returns the records that have a value.
fn values(records: &[StateRecord]) -> impl Iterator<Item = (&str, &[u8])> {
    records.iter().filter_map(|record| Some((record.key.as_str(), record.value.as_deref()?)))
}

/// Restores the records under a policy's limits.
fn restore(records: &[StateRecord], policy: &Policy) -> Restored<ThreadStore> {
    gate::restore(records).finish(OWNER, policy.store_limits()).unwrap().expect("there is a record of the partition")
}

/// Returns the threads of a store in the order of touch.
fn in_order(store: &ThreadStore) -> Vec<(String, StoredThread)> {
    let mut threads: Vec<_> = store.iter().map(|(id, stored)| (id.to_string(), stored.clone())).collect();
    threads.sort_by_key(|(_, stored)| stored.applied);
    threads
}

/// Fails unless a script still leaves what the golden of the current version holds.
fn check_golden(script: Script, checkpoint: &Checkpoint) {
    let golden = script.golden(VERSION);
    let keys = |records: &[StateRecord]| records.iter().map(|record| record.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&checkpoint.records), keys(&golden), "the script leaves other records than the golden holds");
    let changed: Vec<_> =
        checkpoint.records.iter().zip(&golden).filter(|(written, golden)| written != golden).map(|(written, _)| &written.key).collect();
    assert!(
        changed.is_empty(),
        "version {VERSION} is written differently: {changed:?}.\n\
         If the layout has changed, checkpoints that are out there would be misread: it needs a new VERSION, a reader for what version \
         {VERSION} wrote, and a golden of its own ({UPDATE}=1 makes it).\n\
         If only what the script leads to has changed, and the layout has not, the golden may be made anew with {UPDATE}=1."
    );
    assert!(values(&golden).all(|(_, value)| value.first() == Some(&VERSION)));
}

#[test]
fn what_is_written_is_the_golden_byte_for_byte() {
    check_golden(Script::Shapes, &scripted(policy()).1);
}

/// Every older version is read, whatever is written now. Where a newer version holds more, an older value is read as what it meant.
#[test]
fn every_version_is_read_for_ever() {
    let (processor, checkpoint) = scripted(policy());
    for version in 1..=VERSION {
        let golden = golden(version);
        let mut threads = 0;
        for (key, value) in values(&golden) {
            match StateKey::read(Some(key.as_bytes()), ThreadStore::KIND).unwrap() {
                StateKey::Entry(id) => {
                    let expected = processor.stage().threads().get(id).expect("the script leaves the thread");
                    assert_eq!(&read_thread(value).unwrap(), expected, "version {version}, {key}");
                    threads += 1;
                }
                StateKey::Rekey => panic!("the script moves nothing"),
                StateKey::Partition => {
                    let partition = read_partition(value).unwrap();
                    assert_eq!((partition.owner.as_str(), partition.next), (OWNER, checkpoint.next), "version {version}");
                    assert_eq!(partition.clock, processor.stage().threads().clock(), "version {version}");
                }
            }
        }
        assert_eq!(threads, processor.stage().threads().len(), "version {version}");
        let restored = restore(&golden, &policy());
        assert_eq!(restored.next, checkpoint.next, "version {version}");
        assert_eq!(in_order(&restored.state), in_order(processor.stage().threads()), "version {version}");
    }
}

/// A processor that restores a golden decides as the one that was never interrupted.
#[test]
fn a_processor_goes_on_from_every_version() {
    let [_, _, after] = script::script();
    let (mut processor, _) = scripted(policy());
    let expected = feed(&mut processor, &after);
    let decisive = |(outcome, bytes): &&(Outcome, Vec<u8>)| match outcome {
        Outcome::Verdict { .. } => serde_json::from_slice::<Value>(bytes).unwrap()["code"] != "allow",
        Outcome::DeadLetter(_) => true,
        _ => false,
    };
    assert!(expected.iter().filter(decisive).count() >= 9, "the events do not depend on the state: {expected:?}");
    for version in 1..=VERSION {
        let policy = policy();
        let restored = restore(&golden(version), &policy);
        let mut processor = gate::restored(PARTITION, &Arc::new(policy), restored);
        assert_eq!(feed(&mut processor, &after), expected, "version {version}");
    }
}

/// The golden holds every shape that a thread's state can have.
#[test]
fn the_script_leaves_every_shape() {
    let (processor, checkpoint) = scripted(policy());
    // An empty list is not a list of something.
    let shown = format!("{:?} {:?}", processor.stage().threads().clock(), in_order(processor.stage().threads())).replace("[]", "empty");
    let shapes = [
        "id: Some(\"turn 6\")",
        "started_by: Some",
        "has_ended: true",
        "earlier: [",
        "ids: [",
        "memory: None",
        "holds_a_stop: true",
        "failures: 3",
        "progress: Some",
        "is_stopped: true",
        "is_open: true",
        "spelling: Some",
        "spelling: None",
        "call: None",
        "result: Some",
        "basis: NotExecuted",
        "Denied(",
        "policy_id: Some",
        "FailedOpen(",
        "Suppressed",
        "RepeatedExactFailureWarning",
        "RepeatedExactFailureBlock",
        "SameToolFailureWarning",
        "SameToolFailureHalt",
        "IdempotentNoProgressWarning",
        "IdempotentNoProgressBlock",
        "unnamed_tools: [",
        "has_unknown: true",
        "has_overflowed: true",
        "touched_ms: None",
        "last_event_ms: None",
        "last_event_ms: Some(-1)",
        "outvoted: 1",
    ];
    let missing: Vec<_> = shapes.iter().filter(|shape| !shown.contains(**shape)).collect();
    assert!(missing.is_empty(), "{missing:?} is nowhere in {shown}");
    assert_eq!(checkpoint.records.iter().filter(|record| record.value.is_none()).count(), 1, "one thread is gone");
    assert_eq!(checkpoint.records.len(), processor.stage().threads().len() + 2, "every thread, the one that is gone, and the partition");
}
