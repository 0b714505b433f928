//! Measures what a live thread costs in memory, and its checkpoint on the wire: bytes of the process per thread, the allocator's own
//! included.
//!
//! Each kind of thread has a process of its own, because an allocator gives little back. The kinds that have a target are measured at a
//! million threads; the busy ones take about 2 GB, and about as much again for the checkpoint. Thread and turn ids are UUIDs (36 bytes).

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tollgate_core::decide::deciding::{Deciding, VerdictBuffer};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::engine::checkpoint::Checkpoint;
use tollgate_core::engine::processor::PartitionProcessor;
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::gate;
use tollgate_fixtures::measure::{Table, apart, resident_bytes, rounded};

/// A kind of thread: how many calls its running turn has made, each with arguments of its own and answered; every fourth has failed.
struct Kind {
    name: &'static str,
    calls: usize,
    threads: usize,
    /// The most bytes that a thread may take.
    target: Option<f64>,
}

const KINDS: [Kind; 4] = [
    Kind { name: "quiet", calls: 0, threads: 1_000_000, target: Some(230.0) },
    Kind { name: "one call", calls: 1, threads: 500_000, target: None },
    Kind { name: "busy", calls: 4, threads: 1_000_000, target: Some(1_400.0) },
    Kind { name: "long", calls: 11, threads: 100_000, target: None },
];

pub fn measure(mut table: Table) {
    let mut is_met = true;
    for (number, kind) in KINDS.iter().enumerate() {
        let cost = apart(&["memory", "--kind", &number.to_string()]);
        let [bytes, state_bytes, freeze_ns, restored_per_second, apply_ns] = cost.try_into().expect("five figures");
        is_met &= kind.target.is_none_or(|target| bytes <= target);
        table.row([
            ("name", json!(kind.name)),
            ("calls", json!(kind.calls)),
            ("threads", json!(kind.threads)),
            ("bytes_per_thread", json!(bytes)),
            ("target", json!(kind.target)),
            ("state_bytes_per_thread", json!(state_bytes)),
            ("freeze_ns", json!(rounded(freeze_ns, 1))),
            ("restored_per_second", json!(rounded(restored_per_second, 0))),
            ("freeze_over_apply", json!(rounded(freeze_ns / apply_ns, 3))),
        ]);
    }
    table.end_with_target("bytes per thread", is_met);
}

/// Measures the kind of this number, and prints the figures of its row.
pub fn measure_kind(number: usize) {
    let kind = &KINDS[number];
    let settings = gate::settings(&json!({"limits": {"threads_per_partition_max": 2_000_000}}));
    let policy = Arc::new(Policy::new(&settings));
    let before = resident_bytes();
    let mut processor = PartitionProcessor::new(Partition(0), Deciding::new(Arc::clone(&policy)));
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
    println!("{}", json!([bytes, state_bytes, freeze_ns, restore(&checkpoint, &policy), apply_ns]));
}

/// Applies the events of the threads, one thread after the other, and returns nanoseconds per event.
fn fill(processor: &mut PartitionProcessor<Deciding>, kind: &Kind) -> f64 {
    let (mut out, mut offset) = (VerdictBuffer::default(), 0);
    let started = Instant::now();
    for number in 0..kind.threads {
        let thread = format!("{number:08x}-aaaa-bbbb-cccc-dddddddddddd");
        let turn = format!("{number:08x}-1111-2222-3333-444444444444");
        let mut apply = |event: String| {
            let record = gate::record(Partition(0), Offset(offset), event.as_bytes());
            let record = Record { timestamp_ms: Some(1_700_000_000_000), ..record };
            offset += 1;
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
    let restored = gate::restore::<ThreadStore>(&checkpoint.records)
        .finish("tollgate", policy.store_limits())
        .expect("what was written can be read")
        .expect("there is state");
    restored.state.len() as f64 / started.elapsed().as_secs_f64()
}
