//! Tests of what is sent of a record.

use super::*;
use tollgate_core::event::record::{Header, Offset, Partition};

type Sent = (Option<String>, Option<String>, Vec<(String, String)>, Option<i64>);

const CALL: &str = r#""type":"tool_call","tool_call_id":"c","tool_name":"ls","tool_input":{"a": 1.0}"#;

fn rewriter() -> Rewriter {
    Rewriter { event_bytes_max: 10_000, mark: "~".to_owned(), has_copies: true }
}

fn sent(key: Option<&str>, value: Option<&str>, headers: &[(&str, &str)], number: u64, shift_ms: Option<i64>) -> Result<Sent, LineFault> {
    let headers: Vec<_> = headers.iter().map(|(name, value)| Header { name, value: Some(value.as_bytes()) }).collect();
    let (key, value, headers) = (key.map(str::as_bytes), value.map(str::as_bytes), headers.as_slice());
    let (partition, offset) = (Partition(3), Offset(17));
    let record = Record { topic: "was", partition, offset, timestamp_ms: Some(1_000), key, value, headers };
    let ready = rewriter().ready(&record, number, shift_ms)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let shown = |(name, value): &(&str, Option<Cow<'_, [u8]>>)| ((*name).to_owned(), text(value.as_deref().unwrap_or_default()));
    Ok((ready.key.as_deref().map(text), ready.value.as_deref().map(text), ready.headers.iter().map(shown).collect(), ready.timestamp_ms))
}

fn value(value: &str, number: u64) -> String {
    sent(None, Some(value), &[], number, None).unwrap().1.unwrap()
}

#[test]
fn a_record_with_an_id_goes_as_it_stands() {
    let text = format!("{{\"event_id\" : \"e\",\"thread_id\":\"t\", {CALL}}} ");
    let headers = [("traceparent", "00"), ("event_id", "other")];
    let (key, value, found, time) = sent(Some("t"), Some(&text), &headers, 0, None).unwrap();
    assert_eq!((key.as_deref(), value.as_deref(), time), (Some("t"), Some(text.as_str()), Some(1_000)));
    assert_eq!(found, headers.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn a_record_without_an_id_keeps_the_one_that_its_place_gave_it() {
    let with = |id: &str| format!("{{\"event_id\":\"{id}\",\"thread_id\":\"t\",{CALL}}}");
    let without = format!("{{\"thread_id\":\"t\",{CALL}}}");
    assert_eq!(value(&without, 0), with("was/3/17"));
    let null = with("").replace("\"\"", "null");
    assert_eq!(value(&null, 0), with("was/3/17"));
    assert_eq!(value(&without, 1), with("was/3/17~2").replace("\"t\"", "\"t~2\""));
    // What cannot be read has its id in a header.
    let (_, value, headers, _) = sent(Some("t"), Some("{"), &[], 0, None).unwrap();
    assert_eq!((value.as_deref(), headers), (Some("{"), vec![("event_id".to_owned(), "was/3/17".to_owned())]));
    assert_eq!(sent(Some("t"), None, &[], 2, None).unwrap().2, [("event_id".to_owned(), "was/3/17~3".to_owned())]);
}

#[test]
fn the_verdict_of_what_is_sent_is_that_of_the_record() {
    let decide = |record: &Record<'_>| rewriter().facts(record).verdict_id(&record.coordinates());
    let text = format!("{{\"thread_id\":\"t\",{CALL}}}");
    for value in [text.as_str(), "{", "{\"thread_id\":\"t\"}"] {
        let (partition, offset) = (Partition(3), Offset(17));
        let record =
            Record { topic: "was", partition, offset, timestamp_ms: None, key: Some(b"t"), value: Some(value.as_bytes()), headers: &[] };
        let ready = rewriter().ready(&record, 0, None).unwrap();
        let headers: Vec<_> = ready.headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
        let elsewhere =
            Record { topic: "now", partition: Partition(0), offset: Offset(0), value: ready.value.as_deref(), headers: &headers, ..record };
        let expected = decide(&record);
        assert!(expected.is_some() && expected == ready.verdict_id && expected == decide(&elsewhere), "{value}");
    }
}

#[test]
fn copies_have_ids_of_their_own_and_nothing_else_changes() {
    let text = format!(r#"{{"event_id":"e\n\u0041","thread_id":"t","user_id" :"u","agent_id":"t",{CALL}, "x":{{"thread_id":"t"}}}}"#);
    let (key, found, headers, _) = sent(Some("t"), Some(&text), &[("event_id", "h"), ("correlation_id", "k")], 4, None).unwrap();
    let expected = text.replacen("u0041\"", "u0041~5\"", 1).replacen("\"thread_id\":\"t\"", "\"thread_id\":\"t~5\"", 1);
    assert_eq!((key.as_deref(), found), (Some("t~5"), Some(expected.replacen(":\"u\"", ":\"u~5\"", 1))));
    assert_eq!(headers, [("event_id", "h~5"), ("correlation_id", "k")].map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn cloud_events_are_rewritten_in_their_envelope() {
    let structured = format!(
        r#"{{"specversion":"1.0","id":"e","source":"/a","type":"tool_call","subject":"t","time":"1970-01-01T00:00:01Z","data":{{"user_id":"u","thread_id":"t",{CALL}}}}}"#
    );
    let (_, found, ..) = sent(Some("t"), Some(&structured), &[], 1, Some(60_000)).unwrap();
    let expected = [("\"e\"", "\"e~2\""), ("\"t\"", "\"t~2\""), ("\"u\"", "\"u~2\""), ("00:00:01Z", "00:01:01.000Z")]
        .iter()
        .fold(structured.clone(), |text, (from, to)| text.replace(from, to));
    assert_eq!(found, Some(expected));
    let binary =
        [("ce_specversion", "1.0"), ("ce_id", "e"), ("ce_type", "tool_call"), ("ce_subject", "t"), ("ce_time", "1970-01-01T00:00:01Z")];
    let data = "\0\0\0\0\x07{\"tool_call_id\":\"c\",\"tool_name\":\"ls\",\"tool_input\":{},\"user_id\":\"u\"}";
    let (_, found, headers, _) = sent(None, Some(data), &binary, 1, Some(60_000)).unwrap();
    assert_eq!(found, Some(data.replace("\"u\"", "\"u~2\"")));
    let values: Vec<_> = headers.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["1.0", "e~2", "tool_call", "t~2", "1970-01-01T00:01:01.000Z"]);
}

#[test]
fn times_move_together() {
    let text = format!("{{\"event_id\":\"e\",\"timestamp\":\"1970-01-01T00:00:00.5Z\",\"thread_id\":\"t\",{CALL}}}");
    let (key, found, _, time) = sent(Some("t"), Some(&text), &[], 0, Some(86_400_000)).unwrap();
    assert_eq!((key.as_deref(), time), (Some("t"), Some(86_401_000)));
    assert_eq!(found, Some(text.replace("1970-01-01T00:00:00.5Z", "1970-01-02T00:00:00.500Z")));
}

#[test]
fn ids_that_copies_could_not_be_told_from_are_refused() {
    let event = |thread: &str, event: &str| format!("{{\"event_id\":\"{event}\",\"thread_id\":\"{thread}\",{CALL}}}");
    let fault = |text: String| sent(None, Some(&text), &[], 0, None).unwrap_err();
    assert_eq!((fault(event("t~2", "e")).field, fault(event("t", "e~17")).field), ("thread_id", "event_id"));
    assert_eq!(fault(event("t", &"e".repeat(128))).code, "id_without_room");
    for text in [event("t~", "e"), event("t2", "e~x"), event(&"t".repeat(200), &"e".repeat(100))] {
        assert!(sent(None, Some(&text), &[], 0, None).is_ok(), "{text}");
    }
}

#[test]
fn different_copies_never_share_an_id() {
    let mut seen = std::collections::BTreeSet::new();
    for thread in ["t", "t2", "t~", "t~x", "~", "t-2"] {
        for number in 0..25 {
            let text = value(&format!("{{\"event_id\":\"e\",\"thread_id\":\"{thread}\",{CALL}}}"), number);
            assert!(seen.insert(text), "{thread} {number}");
        }
    }
}
