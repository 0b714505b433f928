//! Reads verdicts from the records of a topic.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster::Record;

/// Returns a header of a record as text; empty where there is none.
#[must_use]
pub fn header(record: &Record, name: &str) -> String {
    let value = record.headers.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.clone());
    String::from_utf8_lossy(&value.unwrap_or_default()).into_owned()
}

/// Returns a record's value as text.
///
/// # Panics
/// It is not UTF-8, which every verdict is.
#[must_use]
pub fn text(record: &Record) -> String {
    String::from_utf8(record.value.clone().unwrap_or_default()).expect("a verdict is UTF-8")
}

/// Returns a record's value as JSON.
///
/// # Panics
/// It is not JSON, which every verdict is.
#[must_use]
pub fn parsed(record: &Record) -> Value {
    serde_json::from_str(&text(record)).expect("a verdict is JSON")
}

/// Returns verdicts by thread, each thread's in order; consecutive copies of the same verdict count once.
///
/// # Panics
/// One is not JSON, or names no thread.
pub fn by_thread(verdicts: impl IntoIterator<Item = String>) -> BTreeMap<String, Vec<String>> {
    let mut threads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for verdict in verdicts {
        let value: Value = serde_json::from_str(&verdict).expect("a verdict is JSON");
        let thread = threads.entry(value["thread_id"].as_str().expect("a thread").to_owned()).or_default();
        if thread.last() != Some(&verdict) {
            thread.push(verdict);
        }
    }
    threads
}

/// Returns how many different events there are verdicts on.
pub(super) fn distinct_events(records: &[Record]) -> usize {
    let mut ids: Vec<_> = records.iter().map(|record| (record.key.clone(), header(record, "event_id"))).collect();
    ids.sort();
    ids.dedup();
    ids.len()
}
