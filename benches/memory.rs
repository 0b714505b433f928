//! What a live thread costs in memory, and its checkpoint on the wire: bytes of the process per thread, the allocator's own included.
//!
//! `cargo bench --bench memory` (Linux: it reads `/proc/self/statm`)
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

use std::process::Command;
use std::time::Instant;

use serde_json::json;
use tollgate::checkpoint::{Checkpoint, Restore};
use tollgate::decode::{Offset, Partition, Record};
use tollgate::lane::{Lane, VerdictBuffer};
use tollgate::policy::Policy;
use tollgate::settings::Settings;

const PAGE_BYTES: usize = 4_096;
/// Says which kind a process is to measure.
const KIND: &str = "TOLLGATE_MEMORY_KIND";

/// A kind of thread: how many calls its running turn has made, each with arguments of its own and answered; every fourth has failed.
struct Kind {
    name: &'static str,
    calls: usize,
    threads: usize,
    aim: Option<usize>,
}

const KINDS: [Kind; 4] = [
    Kind { name: "quiet (a turn has begun)", calls: 0, threads: 1_000_000, aim: Some(300) },
    Kind { name: "one call", calls: 1, threads: 500_000, aim: None },
    Kind { name: "busy (4 calls)", calls: 4, threads: 250_000, aim: Some(1_600) },
    Kind { name: "long (11 calls)", calls: 11, threads: 100_000, aim: None },
];

fn main() {
    let defaults = tollgate::config::embedded_defaults().expect("the defaults parse");
    let settings = Settings::read(&json!({"limits": {"threads_per_partition_max": 2_000_000}}), &defaults).expect("valid settings");
    let policy = Policy::new(&settings.policy);
    // A process of its own for each kind: an allocator gives little back.
    if let Ok(kind) = std::env::var(KIND) {
        return measure(&KINDS[kind.parse::<usize>().expect("a number")], &policy);
    }
    println!("thread and turn ids are UUIDs (36 bytes)");
    println!(
        "{:<26} {:>9} {:>13} {:>9} {:>11} {:>14} {:>15} {:>11}",
        "threads", "number", "bytes/thread", "aim", "state bytes", "freeze ns", "restore/s", "freeze/apply"
    );
    for kind in 0..KINDS.len() {
        let status = Command::new(std::env::current_exe().expect("this program")).env(KIND, kind.to_string()).status();
        assert!(status.expect("it starts").success());
    }
}

fn measure(kind: &Kind, policy: &Policy) {
    let before = resident_bytes();
    let mut lane = Lane::new(Partition(0), policy);
    let applied = fill(&mut lane, policy, kind);
    let bytes = resident_bytes().saturating_sub(before) / kind.threads;
    assert_eq!(lane.threads.len(), kind.threads);

    let started = Instant::now();
    lane.freeze("tollgate");
    let freeze_ns = started.elapsed().as_nanos() as f64 / kind.threads as f64;
    (0..lane.next().0).for_each(|offset| lane.ledger.open(Offset(offset), 0).expect("ascending"));
    let checkpoint = lane.take_checkpoint().expect("everything is acknowledged");
    let state_bytes = checkpoint.bytes() / kind.threads;
    let restored = restore(&checkpoint, policy);
    let aim = kind.aim.map_or_else(String::new, |aim| format!("≤ {aim}"));
    println!(
        "{:<26} {:>9} {bytes:>13} {aim:>9} {state_bytes:>11} {freeze_ns:>14.0} {restored:>15.0} {:>11.2}",
        kind.name,
        kind.threads,
        freeze_ns / applied
    );
}

/// Applies the events of the threads, one thread after the other; the answer is nanoseconds per event.
fn fill(lane: &mut Lane, policy: &Policy, kind: &Kind) -> f64 {
    let (mut out, mut offset) = (VerdictBuffer::default(), 0);
    let started = Instant::now();
    for number in 0..kind.threads {
        let thread = format!("{number:08x}-aaaa-bbbb-cccc-dddddddddddd");
        let turn = format!("{number:08x}-1111-2222-3333-444444444444");
        let mut apply = |event: String| {
            let value = Some(event.as_bytes());
            let at = Offset(offset);
            offset += 1;
            let record = Record {
                topic: "agent.events",
                partition: Partition(0),
                offset: at,
                timestamp_ms: Some(1_700_000_000_000),
                key: None,
                value,
                headers: &[],
            };
            lane.apply(policy, &record, &mut out);
        };
        apply(format!(r#"{{"type":"turn_start","thread_id":"{thread}","turn_id":"{turn}","event_id":"s"}}"#));
        for call in 0..kind.calls {
            let (tool, failed) = (["bash", "read_file", "web_search"][call % 3], call % 4 == 3);
            apply(format!(
                r#"{{"type":"tool_call","thread_id":"{thread}","event_id":"c{call}","tool_call_id":"call_{call}","tool_name":"{tool}","tool_input":{{"path":"/work/{call}"}}}}"#
            ));
            apply(format!(
                r#"{{"type":"tool_result","thread_id":"{thread}","event_id":"r{call}","tool_call_id":"call_{call}","tool_name":"{tool}","result":"fine","failed":{failed}}}"#
            ));
        }
    }
    started.elapsed().as_nanos() as f64 / offset as f64
}

/// Threads restored per second.
fn restore(checkpoint: &Checkpoint, policy: &Policy) -> f64 {
    let started = Instant::now();
    let mut restore = Restore::default();
    for (offset, record) in checkpoint.records.iter().enumerate() {
        restore.take(Offset(offset as i64), Some(record.key.as_bytes()), record.value.as_deref());
    }
    let restored = restore.finish("tollgate", policy.store_limits()).expect("what was written can be read").expect("there is state");
    restored.threads.len() as f64 / started.elapsed().as_secs_f64()
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = statm.split_whitespace().nth(1).expect("resident pages").parse().expect("a number");
    pages * PAGE_BYTES
}
