//! Records for the log in place of responses that the server refuses to publish.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use tollgate_core::decide::evaluate::verdict::verdict_id;
use tollgate_core::event::decode::{EventType, THREAD_ID_BYTES_MAX};
use tollgate_json::digest::Digest;

use crate::events::{EVENTS_MAX, Prepared, new_event_id, texts};
use crate::refusal::Refusal;

/// The members of an event, or of a CloudEvent, that say its type and its thread.
#[derive(Debug, Deserialize)]
struct Place<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    thread_id: Option<&'a RawValue>,
    #[serde(borrow)]
    subject: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// Returns a record for each thread of which a refused body may hold a response. A worker cannot read the record, and notes that a response of
/// the thread was not read. The model writes how deep and how large a response is: a refusal must not free the calls of the response.
pub fn not_read(body: &[u8], refusal: &Refusal) -> Vec<Prepared> {
    // A caller that may not speak for a thread stops no call of the thread.
    let texts = texts(body).ok().filter(|_| refusal.status == StatusCode::BAD_REQUEST).map_or_else(Vec::new, |(texts, _)| texts);
    let threads: BTreeSet<String> = texts.into_iter().filter_map(thread_of_response).collect();
    let record = |thread_id: String| {
        let event_id = new_event_id();
        let record =
            json!({"event_id": event_id, "type": EventType::ModelResponse.as_str(), "thread_id": thread_id, "response": refusal.code});
        let value = record.to_string().into_bytes();
        let (verdict, digest) = (verdict_id(&thread_id, &event_id), Digest::of(&value).fingerprint());
        Prepared { thread_id, event_id, verdict, digest, has_verdict: false, is_response: true, value }
    };
    threads.into_iter().take(EVENTS_MAX).map(record).collect()
}

/// Returns the thread of an event that may be a response, if the thread can be read.
fn thread_of_response(text: &str) -> Option<String> {
    let place: Place<'_> = serde_json::from_str(text).ok()?;
    let text = |value: Option<&RawValue>| serde_json::from_str::<String>(value?.get()).ok();
    let kind = text(place.kind).and_then(|kind| kind.rsplit('.').find_map(EventType::from_name));
    let of_data = || text(serde_json::from_str::<Place<'_>>(place.data?.get()).ok()?.thread_id);
    let thread = text(place.thread_id).or_else(|| text(place.subject)).or_else(of_data);
    thread.filter(|id| id.len() <= THREAD_ID_BYTES_MAX && kind.is_none_or(|kind| kind == EventType::ModelResponse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Reading;
    use crate::tokens::Caller;

    fn read(body: &str) -> Result<(Vec<Prepared>, bool), Refusal> {
        let caller = Caller::anyone().of_tenant("acme");
        Reading { caller: &caller, idempotency_key: None, event_bytes_max: 1 << 20 }.body(body.as_bytes())
    }

    #[test]
    fn threads_learn_of_responses_that_are_refused() {
        let call = r#"{"type":"tool_call","thread_id":"v","tool_call_id":"c","tool_name":"ls"}"#;
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(1_100), "]".repeat(1_100));
        let response = format!(r#"{{"type":"model_response","thread_id":"t","response":{deep}}}"#);
        let cases = [
            (response.clone(), &["t"][..]),
            (response.replace("model_response", "model_respons"), &["t"]),
            (response.replace(r#""type":"model_response","#, ""), &["t"]),
            (response.replace(&deep, r#""x""#), &["t"]),
            (response.replace(&deep, r#"{"id":"\ud800"}"#).replace(r#""thread_id":"t""#, r#""thread_id":"t","event_id":"\ud800""#), &["t"]),
            (format!(r#"{{"specversion":"1.0","source":"s","id":"e","type":"a.model_response.v1","subject":"t","data":{deep}}}"#), &["t"]),
            (format!(r#"{{"specversion":"1.0","source":"s","id":"e","type":"a.model_response.v1","data":{response}}}"#), &["t"]),
            (format!("[{call},{response},{}]", response.replace("\"t\"", "\"u\"")), &["t", "u"]),
            (format!("[{},{{}}]", response.replace(&deep, "{}")), &["t"]),
            (response.replace("model_response", "tool_call"), &[]),
            (response.replace("model_response", "a.tool_call.v1"), &[]),
            (response.replace("\"t\"", &format!("\"{}\"", "t".repeat(257))), &[]),
            (response.replace("\"thread_id\"", "\"thread\""), &[]),
            ("nonsense".to_owned(), &[]),
        ];
        for (body, threads) in cases {
            let refusal = read(&body).unwrap_err();
            let records = not_read(body.as_bytes(), &refusal);
            assert_eq!(records.iter().map(|record| record.thread_id.as_str()).collect::<Vec<_>>(), threads, "{refusal:?}");
            for record in records {
                let again = read(std::str::from_utf8(&record.value).unwrap()).unwrap_err();
                assert_eq!((again.code, record.has_verdict), ("response_invalid", false), "a worker cannot read the record");
            }
        }
        let foreign = response.replace(&deep, "{}").replacen('{', r#"{"tenant_id":"globex","#, 1);
        let refusal = read(&foreign).unwrap_err();
        assert_eq!(not_read(foreign.as_bytes(), &refusal), [], "{refusal:?}");
    }
}
