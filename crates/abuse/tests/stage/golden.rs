//! The state that this version writes, byte for byte. State outlives the program that wrote it, so the golden of a version is never changed;
//! a new version has one of its own, and this one must still be read.
//!
//! `TOLLGATE_UPDATE_FIXTURES=1 cargo test -p tollgate-core --test integration abuse::golden` makes the golden of the version that is
//! written.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tollgate_abuse::{Abuse, AbuseState};
use tollgate_core::decide::signal::{KeyKind, Point, PointKind, VolumeKind, read};
use tollgate_core::engine::checkpoint::Restore;
use tollgate_core::engine::processor::PartitionProcessor;
use tollgate_core::event::record::Offset;

use super::crashes::all_rules;
use super::fixture::*;
use super::population::Random;

const OWNER: &str = "tollgate-abuse/tollgate.signals";
const RECORDS: i64 = 60;

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/abuse-state-v1.jsonl")
}

/// Returns a record of a log that leaves something of everything in the state.
fn logged(offset: i64, random: &mut Random) -> Vec<u8> {
    let time_ms = START + offset * MINUTE / 2;
    let mut parts = vec![clock(0, offset, time_ms), clock(1, offset, time_ms)];
    for _ in 0..3 {
        let id = random.below(9) * random.below(2);
        let who = user(&id.to_string());
        let tenant = (id > 0).then(|| subject(KeyKind::Tenant, &(id % 2).to_string()).hash);
        let source = random.below(2) as i32;
        match random.below(3) {
            0 => parts.push(part(Point { tenant, ..point(PointKind::SafetyStop, who, source, offset, time_ms) })),
            1 => {
                let mut denial = Point { tenant, ..point(PointKind::Denial, who, source, offset, time_ms) };
                denial.thread_id = "0123abcd-4a5b-4c6d-8e7f-0123456789ab".into();
                denial.tool = Some(["bash", "curl", "ls", "a-tool-with-a-long-name"][random.below(4) as usize].into());
                parts.push(part(denial));
            }
            _ => parts.push(Part::Volume(VolumeKind::Call, who, source, offset, time_ms, 7)),
        }
    }
    value_of(&parts)
}

/// Returns the entries of the state behind the log, in order of their keys, with their values in hex.
fn alerts_and_controls() -> BTreeMap<String, String> {
    let mut processor = PartitionProcessor::new(PARTITION, Abuse::new(all_rules(), AbuseState::default()));
    let mut random = Random(3);
    for offset in 0..RECORDS {
        let value = logged(offset, &mut random);
        processor.apply(&record(offset, START + offset * MINUTE / 2, &value), &mut ()).unwrap();
        processor.published(Offset(offset), 0).unwrap();
    }
    processor.freeze(OWNER);
    let checkpoint = processor.take_checkpoint().unwrap();
    let hex = |value: &[u8]| value.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    checkpoint.records.iter().map(|record| (record.key.clone(), hex(record.value.as_deref().unwrap()))).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn what_is_written_is_the_golden_and_is_read() {
    let written = alerts_and_controls();
    if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
        let lines: Vec<String> = written.iter().map(|(key, value)| json!({"key": key, "value": value}).to_string() + "\n").collect();
        std::fs::write(path(), lines.concat()).unwrap();
    }
    let golden = std::fs::read_to_string(path()).unwrap();
    let golden: Vec<Value> = golden.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let pairs = golden.iter().map(|entry| (entry["key"].as_str().unwrap().to_owned(), entry["value"].as_str().unwrap().to_owned()));
    let golden: BTreeMap<String, String> = pairs.collect();
    assert_eq!(written, golden);
    let mut restore = Restore::<AbuseState>::default();
    for ((key, value), offset) in golden.iter().zip(0..) {
        restore.take(Offset(offset), Some(key.as_bytes()), Some(&unhex(value)));
    }
    let restored = restore.finish(OWNER, ()).unwrap().unwrap();
    let mut stage = Abuse::new(all_rules(), restored.state);
    assert_eq!((restored.next, stage.warming().count()), (Offset(RECORDS), 0));
    // Of whom much is known, little more is enough.
    let value = value_of(&(RECORDS..RECORDS + 3).map(|offset| part(stop("0", offset, START + RECORDS * MINUTE / 2))).collect::<Vec<_>>());
    assert!(!stage.fold(&record(RECORDS, START, &value), &read(Some(&value)).unwrap()).alerts.is_empty());
}
