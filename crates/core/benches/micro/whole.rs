//! Measures verdicts on their way to bytes, and whole events.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use tollgate_core::decide::evaluate::{evaluate, refuse, verdict};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::Thread;
use tollgate_core::event::decode::{Event, Rejection, RejectionCode, decode};
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::events::rows::{ROWS, Row};
use tollgate_fixtures::events::{At, Feed, policy};
use tollgate_json::Parser;

const AT: At = At { thread: 1, turn: 1, call: 3 };
const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Measures the shortest ways to a verdict, since encoding alone has no interface. Their names say what else they do: an event's
/// digest always (SHA-256 of two blocks), and for a call that is sent again that of its arguments, of its id and of its tool.
pub fn verdicts(criterion: &mut Criterion) {
    let policy = policy();
    let mut group = criterion.benchmark_group("verdict encoding");
    let (response, cut_off, call) = (AT.model_response(), AT.cut_off_response(), AT.tool_call());
    let failed = AT.failed_result();
    let stopped = call.replace("/tool_call\"", "/again\"").replace(&AT.call_id(), "call_again");
    let (call_2, failed_2) = (call.replace(&AT.call_id(), "call_2"), failed.replace(&AT.call_id(), "call_2"));
    for (name, before, event, code) in [
        ("allow, with the event's digest and the detectors", vec![], &response, "allow"),
        ("allow, with the digests of a call sent again", vec![&call], &call, "allow"),
        (
            "block with a reason, with the digests of a call sent again",
            vec![&call, &failed, &call_2, &failed_2, &stopped],
            &stopped,
            "repeated_exact_failure_block",
        ),
        ("suppress, with the detector's findings", vec![], &cut_off, "safety_terminated"),
    ] {
        let mut thread = Thread::default();
        for text in before {
            with_event(text, |event| drop(evaluate(&policy, &mut thread, event, &mut Vec::new())));
        }
        with_event(event, |event| {
            let mut out = Vec::new();
            let decided = evaluate(&policy, &mut thread, event, &mut out).expect("a verdict").expect("a verdict");
            assert_eq!(decided.code, code, "{name}");
            group.throughput(Throughput::Bytes(out.len() as u64));
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    out.clear();
                    evaluate(&policy, &mut thread, black_box(event), &mut out).is_ok()
                });
            });
        });
    }
    with_event(&call, |event| {
        let mut out = Vec::new();
        refuse(&policy, event, &mut out);
        group.throughput(Throughput::Bytes(out.len() as u64));
        group.bench_function("block with a reason, with the event's digest", |bencher| {
            bencher.iter(|| {
                out.clear();
                refuse(&policy, black_box(event), &mut out).is_some()
            });
        });
    });
    invalid(&mut group, &policy);
    group.finish();
}

fn invalid(group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>, policy: &Policy) {
    let rejection = Rejection::new(RejectionCode::ValueEmpty, "value", "0 bytes", "send one JSON object per record");
    let mut out = Vec::new();
    verdict::write_invalid(&rejection, "agent.events/0/0", policy.version(), &mut out);
    group.throughput(Throughput::Bytes(out.len() as u64));
    group.bench_function("block of an event that cannot be read, with its digest", |bencher| {
        bencher.iter(|| {
            out.clear();
            verdict::write_invalid(black_box(&rejection), "agent.events/0/0", policy.version(), &mut out);
            out.len()
        });
    });
}

fn with_event(text: &str, use_event: impl FnOnce(&Event<'_>)) {
    let (partition, offset, value) = (Partition(0), Offset(0), Some(text.as_bytes()));
    let record = Record { topic: "agent.events", partition, offset, timestamp_ms: None, key: None, value, headers: &[] };
    use_event(&decode(&record, &mut Parser::new(), EVENT_BYTES_MAX).expect("an event"));
}

/// Measures record → verdict through a partition processor in which a thousand threads live: the rows of `decision`. An iteration is one
/// event of every thread.
pub fn events(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("whole event");
    group.sample_size(20);
    for make in ROWS {
        let row = make();
        row.check();
        group.throughput(Throughput::Elements(row.measured.len() as u64));
        // The processor is handed back, so that dropping it is not measured.
        group.bench_function(row.name, |bencher| {
            bencher.iter_batched(|| row.prepare(), |feed| decide_all(feed, &row), BatchSize::PerIteration)
        });
    }
    group.finish();
}

fn decide_all(mut feed: Feed, row: &Row) -> Feed {
    feed.apply_all(&row.measured);
    feed
}
