//! Fuzzes the decoding of records with any key, headers and value.

use tollgate_core::event::decode::decode;
use tollgate_core::event::record::{Header, Offset, Partition, Record};
use tollgate_json::Parser;

use crate::SECRET;
use crate::head::Head;

/// The largest value that is accepted, in bytes. It is small, so that inputs reach the bound.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Checks a record. The lines `key: …` and `timestamp_ms: …` are the record's own, and every other line is a header; its value is null if
/// it has no colon. A line `null` says that the record's value is null. The rest of the input is the value.
pub fn check(input: &[u8]) {
    let head = Head::read(input);
    let key = head.values("key").last();
    let timestamp_ms = head.values("timestamp_ms").last().and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    let is_null = head.lines.contains(&(b"null", None));
    // Kafka's clients refuse names that are not UTF-8 before a record gets here.
    let named = head.lines.iter().filter_map(|(name, value)| Some((std::str::from_utf8(name).ok()?, *value)));
    let headers: Vec<_> = named
        .filter(|(name, value)| !matches!((*name, value), ("key" | "timestamp_ms", Some(_)) | ("null", None)))
        .map(|(name, value)| Header { name, value })
        .collect();
    let record = Record {
        topic: "agent.events",
        partition: Partition(0),
        offset: Offset(7),
        timestamp_ms,
        key,
        value: (!is_null).then_some(head.rest),
        headers: &headers,
    };
    let mut parser = Parser::new();
    let first = read(&record, &mut parser);
    assert_eq!(read(&record, &mut parser), first, "a record is read as something else the second time");
}

/// Returns what a record is read as, as text.
fn read(record: &Record<'_>, parser: &mut Parser) -> String {
    match decode(record, parser, VALUE_BYTES_MAX) {
        Ok(event) => {
            assert!((1..=256).contains(&event.thread_id.len()), "a thread id of {} bytes", event.thread_id.len());
            assert!((1..=128).contains(&event.event_id.len()), "an event id of {} bytes", event.event_id.len());
            format!("{event:?}")
        }
        Err(rejection) => {
            let text = rejection.to_string();
            assert!(!text.contains(SECRET), "a rejection repeats the record");
            assert!(text.len() < 400, "a rejection of {} bytes", text.len());
            format!("{rejection:?}")
        }
    }
}
