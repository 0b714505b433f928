//! Tests of traces: a worker on the embedded broker sends spans to a collector that the test plays.

mod collector;

use std::time::{Duration, Instant};

use rdkafka::message::{Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer};
use serde_json::{Value, json};
use tollgate_testkit::{PolicyServer, TIME_MAX, wait_until};

use crate::brokers::dev::Dev;
use crate::brokers::embedded::{next, reader};
use crate::support::{run, temporary, tollgate};
use collector::{Collector, Manner, attribute};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
/// What must not be in any span: arguments, users, secrets, the thread.
const MARKER: &str = "MARKER-7f3a";

/// Starts a gate with these settings of traces and guardrails.
fn start(traces: &str, guardrails: &str) -> Dev {
    let config = temporary(&format!("guardrails: {guardrails}\ntraces: {traces}\n"));
    let mut command = tollgate();
    command.env("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=gate%2D0,service.name=other").env("OTEL_SERVICE_NAME", "gate");
    Dev::run(command.args(["dev", "--port", "0", "--config"]).arg(config.path()))
}

fn send(gate: &Dev, value: &str, traceparent: Option<&str>) {
    let mut headers = OwnedHeaders::new().insert(Header { key: "tracestate", value: Some("vendor=1") });
    if let Some(traceparent) = traceparent {
        headers = headers.insert(Header { key: "traceparent", value: Some(traceparent) });
    }
    let record = BaseRecord::to("agent.events").key(MARKER).payload(value).headers(headers);
    gate.producer.send(record).map_err(|(error, _)| error).unwrap();
    gate.producer.flush(TIME_MAX).unwrap();
}

/// Returns the verdicts, as soon as there are this many.
fn verdicts(gate: &Dev, count: usize) -> Vec<Value> {
    let reader = reader(&gate.brokers, "agent.decisions");
    let next = || next(&reader, TIME_MAX).unwrap_or_else(|| panic!("no verdict came:\n{}", gate.process.said()));
    (0..count).map(|_| serde_json::from_slice(next().payload().unwrap()).unwrap()).collect()
}

fn call(id: &str, tool: &str) -> String {
    json!({"type": "tool_call", "thread_id": MARKER, "event_id": id, "user_id": MARKER, "tool_call_id": id, "tool_name": tool,
           "tool_input": {"path": MARKER}})
    .to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_span_follows_its_event_and_says_what_was_decided() {
    let (collector, policy) = (Collector::start(Manner::Takes), PolicyServer::start(|_| (Duration::from_millis(20), json!(true))));
    let secret = temporary(&format!("Bearer {MARKER}\n"));
    let traces = format!(
        "{{endpoint: '{}', sample_one_in: 4294967295, header_files: {{authorization: {}}}}}",
        collector.url(),
        secret.path().display()
    );
    let guardrails = format!(
        "{{enabled: true, providers: [{{use: allowlist, config: {{denied_tools: [bash]}}}}, {{use: http, tools: [ask], config: {{url: '{}', dialect: opa, timeout_ms: 20000}}}}]}}",
        policy.url()
    );
    let gate = start(&traces, &guardrails);
    let sampled = format!("00-{TRACE}-{SPAN}-01");
    send(&gate, &call("first", "bash"), Some(&sampled));
    send(&gate, &call("not sampled", "ls"), Some(&format!("00-{TRACE}-{SPAN}-00")));
    send(&gate, &call("no context", "ls"), Some("00-nonsense"));
    send(&gate, &call("asks", "ask"), Some(&sampled));
    send(&gate, &call("behind it", "ls"), Some(&sampled));
    send(&gate, &format!("{{\"type\":\"tool_call\",\"thread_id\":\"{MARKER}\",\"event_id\":\"bad\"}}"), Some(&sampled));
    let verdicts = verdicts(&gate, 6);
    let spans = collector.wait_for(4);
    assert_eq!(spans.len(), 4, "one verdict's sender was not sampled, and one has no context");
    let expected = [
        ("first", "block", vec!["consume", "decide", "publish"]),
        ("asks", "allow", vec!["consume", "ask", "answer", "decide", "publish"]),
        ("behind it", "allow", vec!["consume", "decide", "publish"]),
        ("bad", "block", vec!["consume", "decide", "publish"]),
    ];
    for (span, (event_id, action, steps)) in spans.iter().zip(expected) {
        assert_eq!((hex(&span.trace_id).as_str(), hex(&span.parent_span_id).as_str()), (TRACE, SPAN), "{event_id}");
        let [link] = span.links.as_slice() else { panic!("{span:?}") };
        assert_eq!((hex(&link.trace_id).as_str(), hex(&link.span_id).as_str(), link.trace_state.as_str()), (TRACE, SPAN, "vendor=1"));
        assert!(span.events.is_sorted_by_key(|event| event.time_unix_nano) && span.end_time_unix_nano >= span.start_time_unix_nano);
        assert_eq!(span.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), steps, "{event_id}");
        let text = |key: &str| attribute(&span.attributes, key);
        let verdict = verdicts.iter().find(|verdict| verdict["event_id"] == event_id).expect("a verdict");
        for field in ["verdict_id", "event_id", "action", "decided_by", "code"] {
            assert_eq!(text(&format!("tollgate.{field}")).as_deref(), verdict[field].as_str(), "{event_id}: {field}");
        }
        assert_eq!(text("tollgate.action").as_deref(), Some(action), "{event_id}");
        assert_eq!(text("messaging.system").as_deref(), Some("kafka"));
        assert_eq!(text("messaging.destination.name").as_deref(), Some("agent.events"));
        assert_eq!((span.status.is_some(), text("error.type").is_some()), (event_id == "bad", event_id == "bad"), "{span:?}");
    }
    assert_eq!(spans.iter().map(|span| &span.span_id).collect::<std::collections::BTreeSet<_>>().len(), 4);
    for received in collector.received() {
        assert!(!received.body.windows(MARKER.len()).any(|bytes| bytes == MARKER.as_bytes()), "a span holds what it must not");
        assert!(received.head.starts_with("POST /v1/traces HTTP/1.1"), "{}", received.head);
        assert!(received.head.contains("content-type: application/x-protobuf") && received.head.contains(MARKER), "{}", received.head);
        let process = received.request().resource_spans[0].resource.clone().unwrap().attributes;
        assert_eq!(attribute(&process, "service.name").as_deref(), Some("gate"));
        assert_eq!(attribute(&process, "k8s.pod.name").as_deref(), Some("gate-0"));
    }
    assert!(!gate.process.said().contains(MARKER), "{}", gate.process.said());
    wait_until("all spans are counted", || Ok(gate.metric("tollgate_traces_exported_total") == 4.0)).unwrap();
}

#[test]
fn spans_that_wait_are_sent_before_the_process_ends() {
    let collector = Collector::start(Manner::Takes);
    let mut gate = start(&format!("{{endpoint: '{}', sample_one_in: 1}}", collector.url()), "{enabled: false}");
    send(&gate, &call("last", "ls"), None);
    verdicts(&gate, 1);
    gate.process.interrupt();
    assert!(gate.process.wait().success(), "{}", gate.process.said());
    let spans = collector.spans();
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert!(span.parent_span_id.is_empty() && span.links.is_empty() && span.trace_state.is_empty(), "{span:?}");
}

/// A collector that does not do its part costs its spans and nothing else.
#[test]
fn no_verdict_waits_for_a_collector() {
    const CALLS: u64 = 50;
    let [gone] = tollgate_testkit::free_ports().unwrap();
    let collectors = [Manner::TakesOne, Manner::Fails, Manner::Hangs].map(|manner| (manner, Collector::start(manner)));
    let known = collectors.iter().map(|(manner, collector)| (format!("{manner:?}"), collector.url()));
    for (manner, url) in known.chain([("Gone".to_owned(), format!("http://127.0.0.1:{gone}/v1/traces"))]) {
        // Only what hangs is to run out of time.
        let timeout_ms = if manner == "Hangs" { 300 } else { 60_000 };
        let traces = format!("{{endpoint: '{url}', sample_one_in: 1, timeout_ms: {timeout_ms}}}");
        let (started, mut gate) = (Instant::now(), start(&traces, "{enabled: false}"));
        for number in 0..CALLS {
            send(&gate, &call(&format!("e{number}"), "ls"), None);
        }
        verdicts(&gate, usize::try_from(CALLS).unwrap());
        gate.process.line(&["traces are lost"]);
        let lost = || ["failed", "refused"].map(|why| gate.metric(&format!("tollgate_traces_dropped_total{{reason=\"{why}\"}}")) as u64);
        let counted = || lost().iter().sum::<u64>() + gate.metric("tollgate_traces_exported_total") as u64;
        wait_until("every span is sent or lost", || Ok(counted() >= CALLS)).unwrap();
        let [failed, refused] = lost();
        assert_eq!((failed == CALLS, refused > 0), (manner != "TakesOne", manner == "TakesOne"), "{manner}");
        // It is said once a minute.
        let said = gate.process.said();
        assert!((said.matches("traces are lost").count() as u64) <= 1 + started.elapsed().as_secs() / 60, "{said}");
        assert!(!gate.process.said().contains('\u{1b}'), "a collector's words are shown without control characters");
        gate.process.interrupt();
        assert!(gate.process.wait().success(), "{manner}: {}", gate.process.said());
    }
}

/// A process ends though the collector never answers, and though the settings would have it wait for ten minutes.
#[test]
fn no_end_waits_for_a_collector() {
    let collector = Collector::start(Manner::Hangs);
    let mut gate = start(&format!("{{endpoint: '{}', sample_one_in: 1, timeout_ms: 600000}}", collector.url()), "{enabled: false}");
    send(&gate, &call("last", "ls"), None);
    verdicts(&gate, 1);
    collector.wait_for(1);
    gate.process.interrupt();
    assert!(gate.process.wait().success(), "{}", gate.process.said());
    gate.process.line(&["the last traces could not be sent in time"]);
}

#[test]
fn an_exporter_that_panics_ends_the_process() {
    let config = temporary("admin: null\ntraces: {endpoint: 'http://127.0.0.1:9/v1/traces'}");
    let mut command = tollgate();
    let ran = run(command.args(["dev", "--port", "0", "--config"]).arg(config.path()).env("FAILPOINTS", "traces=panic"), b"");
    assert_eq!(ran.exit, Some(70), "{ran:?}");
    assert!(ran.stderr.contains("a thread ended that has to run") && ran.stderr.contains("traces"), "{ran:?}");
}

#[test]
fn wrong_settings_are_refused_before_anything_starts() {
    for (traces, expected) in [
        ("{endpoint: 'http://c/', headers: {content-type: x}}", "traces.headers.content-type: found a header that OTLP sets; leave it out"),
        ("{endpoint: 'http://c:0/'}", "traces.endpoint: found no host and port to connect to; write them such as http"),
        ("{endpoint: 'https://c/', ca_file: /nowhere}", "traces.ca_file: found no certificates in /nowhere"),
        ("{endpoint: 'http://c/', header_files: {x: /nowhere}}", "traces.header_files.x: found the name of a file that cannot be read"),
        ("{endpoint: 'http://c/', headers: {x: \"MARKER-7f3a\\n\"}}", "traces.headers.x: found a value that no header can have"),
        ("{endpoint: 'http://u:MARKER-7f3a@c/'}", "traces.endpoint: found a string that is no http or https URL without credentials"),
    ] {
        let config = temporary(&format!("traces: {traces}"));
        for command in [&["config", "check"][..], &["dev", "--port", "0"]] {
            let ran = run(tollgate().args(command).arg("--config").arg(config.path()), b"");
            assert_eq!(ran.exit, Some(1), "{ran:?}");
            assert!(ran.stderr.contains(expected) && !format!("{ran:?}").contains(MARKER), "{ran:?}");
        }
    }
}
