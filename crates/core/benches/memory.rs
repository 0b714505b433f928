//! Measures what a live thread costs in memory, and its checkpoint on the wire: bytes of the process per thread, the allocator's own
//! included.
//!
//! `cargo bench -p tollgate-core --bench memory`, with `-- --json` for one JSON object (Linux: it reads `/proc/self/statm`). The
//! kinds that have a target are measured at a million threads; the busy ones take about 2 GB, and about as much again for the checkpoint.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(missing_docs, reason = "a benchmark has no interface")]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tollgate_core::decide::deciding::{Deciding, VerdictBuffer};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::engine::checkpoint::{Checkpoint, Restore};
use tollgate_core::engine::processor::PartitionProcessor;
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::measure::{is_json, print_json, rounded};

const PAGE_BYTES: usize = 4_096;
/// The variable that says which kind a process measures.
const KIND: &str = "TOLLGATE_MEMORY_KIND";

/// A kind of thread: how many calls its running turn has made, each with arguments of its own and answered; every fourth has failed.
struct Kind {
    name: &'static str,
    calls: usize,
    threads: usize,
    /// The most bytes that a thread may take.
    target: Option<usize>,
}

const KINDS: [Kind; 4] = [
    Kind { name: "quiet", calls: 0, threads: 1_000_000, target: Some(300) },
    Kind { name: "one call", calls: 1, threads: 500_000, target: None },
    Kind { name: "busy", calls: 4, threads: 1_000_000, target: Some(1_600) },
    Kind { name: "long", calls: 11, threads: 100_000, target: None },
];

/// The measured cost of a kind.
struct Cost {
    bytes: usize,
    /// The bytes of a thread in its checkpoint.
    state_bytes: usize,
    freeze_ns: f64,
    restored_per_second: f64,
    apply_ns: f64,
}

fn main() {
    // Each kind has a process of its own, because an allocator gives little back.
    if let Ok(kind) = std::env::var(KIND) {
        let kind = &KINDS[kind.parse::<usize>().expect("a number")];
        let settings = tollgate_fixtures::events::settings(&json!({"limits": {"threads_per_partition_max": 2_000_000}}));
        let cost = measure(kind, &Arc::new(Policy::new(&settings)));
        return if is_json() { println!("{}", cost.json(kind)) } else { cost.print(kind) };
    }
    if !is_json() {
        println!("thread and turn ids are UUIDs (36 bytes); a quiet thread's turn has begun, a busy one's has made four calls");
        println!(
            "{:<9} {:>5} {:>9} {:>13} {:>8} {:>12} {:>10} {:>10} {:>13}",
            "threads", "calls", "number", "bytes/thread", "target", "state bytes", "freeze ns", "restore/s", "freeze/apply"
        );
    }
    let rows: Vec<Value> = (0..KINDS.len()).filter_map(run).collect();
    if is_json() {
        print_json("memory", rows);
    }
}

/// Measures a kind in a process of its own, which prints its row itself unless it is asked for JSON.
fn run(kind: usize) -> Option<Value> {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(KIND, kind.to_string());
    if !is_json() {
        assert!(command.status().expect("it starts").success());
        return None;
    }
    let output = command.arg("--json").stderr(Stdio::inherit()).output().expect("it starts");
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).expect("a row"))
}

impl Cost {
    fn print(&self, kind: &Kind) {
        let target = kind.target.map_or_else(String::new, |target| format!("≤ {target}"));
        let Self { bytes, state_bytes, freeze_ns, restored_per_second, apply_ns } = self;
        println!(
            "{:<9} {:>5} {:>9} {bytes:>13} {target:>8} {state_bytes:>12} {freeze_ns:>10.0} {restored_per_second:>10.0} {:>13.2}",
            kind.name,
            kind.calls,
            kind.threads,
            freeze_ns / apply_ns
        );
    }

    fn json(&self, kind: &Kind) -> Value {
        json!({
            "name": kind.name, "calls": kind.calls, "threads": kind.threads, "bytes_per_thread": self.bytes, "target": kind.target,
            "state_bytes_per_thread": self.state_bytes, "freeze_ns": rounded(self.freeze_ns, 1),
            "restored_per_second": rounded(self.restored_per_second, 0), "freeze_over_apply": rounded(self.freeze_ns / self.apply_ns, 3),
        })
    }
}

fn measure(kind: &Kind, policy: &Arc<Policy>) -> Cost {
    let before = resident_bytes();
    let mut processor = PartitionProcessor::new(Partition(0), Deciding::new(Arc::clone(policy)));
    let apply_ns = fill(&mut processor, kind);
    let bytes = resident_bytes().saturating_sub(before) / kind.threads;
    assert_eq!(processor.stage().threads().len(), kind.threads);

    let started = Instant::now();
    processor.freeze("tollgate");
    let freeze_ns = started.elapsed().as_nanos() as f64 / kind.threads as f64;
    (0..processor.next().0).for_each(|offset| processor.published(Offset(offset), 0).expect("it was taken"));
    let checkpoint = processor.take_checkpoint().expect("everything is acknowledged");
    // The restored threads may have the memory of those that they were made of.
    drop(processor);
    let state_bytes = checkpoint.bytes() / kind.threads;
    Cost { bytes, state_bytes, freeze_ns, restored_per_second: restore(&checkpoint, policy), apply_ns }
}

/// Applies the events of the threads, one thread after the other, and returns nanoseconds per event.
fn fill(processor: &mut PartitionProcessor<Deciding>, kind: &Kind) -> f64 {
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
            processor.apply(&record, &mut out).expect("offsets go up");
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

/// Returns how many threads are restored per second.
fn restore(checkpoint: &Checkpoint, policy: &Arc<Policy>) -> f64 {
    let started = Instant::now();
    let mut restore = Restore::<ThreadStore>::default();
    for (offset, record) in checkpoint.records.iter().enumerate() {
        restore.take(Offset(offset as i64), Some(record.key.as_bytes()), record.value.as_deref());
    }
    let restored = restore.finish("tollgate", policy.store_limits()).expect("what was written can be read").expect("there is state");
    restored.state.len() as f64 / started.elapsed().as_secs_f64()
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = statm.split_whitespace().nth(1).expect("resident pages").parse().expect("a number");
    pages * PAGE_BYTES
}
