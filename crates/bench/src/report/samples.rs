//! Sample findings, of which tests write reports.

use std::time::Duration;

use super::*;
use crate::meter::Percentiles;
use crate::offline::{DecisionCost, Growth, InstructionCost, ThreadMemory};
use crate::overload::Burst;
use crate::watched::DrainRound;
use crate::{Ratio, Search, Tally, Times};

pub(crate) fn phase(rate: f64, latency_ms: f64) -> Phase {
    let percentiles = |p50: f64| Percentiles { p50, p90: p50 * 1.5, p99: p50 * 2.0, p999: p50 * 4.0, p9999: p50 * 5.0, max: p50 * 6.0 };
    Phase {
        asked_per_second: rate,
        sent_per_second: rate,
        achieved_per_second: rate,
        bytes_per_event: 3_000.0,
        refused: 0,
        tally: Tally {
            awaited: 1_000,
            misses: 0,
            duplicates: 0,
            verdicts_per_second: rate * 0.95,
            latency_ms: percentiles(latency_ms),
            medians_ms: [latency_ms; 2],
        },
        cpu_us_per_event: Some(20.0),
        usage: None,
        resident_bytes_max: 120 << 20,
    }
}

pub(crate) fn findings() -> Findings {
    let machine = Machine {
        cpu: "A CPU".to_owned(),
        cores: 2,
        memory_bytes: 8 << 30,
        kernel: "Linux 6.1".to_owned(),
        version: "0.1.0".to_owned(),
        is_release: true,
        broker: "its own, on the same machine".to_owned(),
        load: 0.3,
    };
    let times = Times { warm_up: Duration::from_secs(1), measured: Duration::from_secs(10), deadline: Duration::from_secs(5) };
    let search = Search { start: 4_000.0, precision: 1.1, attempts: 1, probes_max: 12 };
    let plan = Plan { seed: 1, threads: 10_000, partitions: 8, times, probe_times: times, search };
    let drained = |name: &str, per_cpu_second: f64| Drained {
        name: name.to_owned(),
        rounds: vec![DrainRound { events_per_second: 30_000.0, events_per_cpu_second: per_cpu_second, verdicts: 900 }; 3],
        agreement: None,
        failure: None,
    };
    let ratio = |median| Some(Ratio { median, min: median - 0.1, max: median + 0.1 });
    let point = |name: &str, share: f64| SweepPoint { name: name.to_owned(), share, phase: phase(20_000.0 * share, 3.0 + share * 40.0) };
    Findings {
        peak: Some(Peak { per_second: 20_000.0, probes: vec![phase(20_000.0, 40.0)] }),
        pass_through_peak: Some(Peak { per_second: 22_000.0, probes: Vec::new() }),
        latency: Some(phase(10_000.0, 5.0)),
        sweep: [0.1, 0.5, 0.9].into_iter().flat_map(|share| [point("tollgate", share), point("pass-through", share)]).collect(),
        overload: Some(overload()),
        versus: Some(Versus {
            rounds: Vec::new(),
            cpu_draining: ratio(1.4),
            cpu_at_half: ratio(1.3),
            peak: ratio(0.9),
            p50: ratio(1.0),
            p99: ratio(1.25),
            p999: ratio(1.3),
        }),
        drained: vec![
            drained("tollgate", 60_000.0),
            drained("pass-through", 84_000.0),
            drained("bare", 90_000.0),
            drained("python", 1_500.0),
        ],
        drained_smaller: vec![drained("tollgate", 130_000.0), drained("pass-through", 200_000.0)],
        abuse_cpu: ratio(1.02),
        switch_ms: Some(89.0),
        digest_per_cpu_second: Some(450_000.0),
        partitions: [(1, 20.0), (8, 21.0), (64, 24.0)]
            .map(|(partitions, cost)| PartitionCost { partitions, cpu_us: vec![cost, cost + 1.0, cost - 1.0] })
            .to_vec(),
        offline: offline(),
        absences: vec![
            Absence::missing("kafka-streams", "java is not installed (17 or newer)"),
            Absence::failed("growth", "cargo bench -p tollgate-core -- growth --json takes longer than 60 s"),
        ],
        seconds: 840.0,
        ..Findings::new(machine, plan)
    }
}

fn overload() -> Overload {
    Overload {
        factor: 2.0,
        peak_per_second: 20_000.0,
        phase: phase(40_000.0, 4_000.0),
        kept: 0.97,
        resident_bytes_before: 110 << 20,
        backlog_seconds: 9.0,
        longest_wait_seconds: 9.2,
        seconds: 10.0,
        recovery_seconds: Some(11.0),
        burst: Burst { seconds: 2.0, recovery_seconds: Some(2.6) },
    }
}

fn offline() -> Offline {
    let decision = |name: &str, bytes, ns| DecisionCost {
        name: name.to_owned(),
        bytes,
        ns,
        allocations: 4.0,
        allocated_bytes: 812.0,
        over_serde_json: Some(1.9),
    };
    let memory = |name: &str, bytes_per_thread| ThreadMemory { name: name.to_owned(), threads: 1_000_000, bytes_per_thread };
    Offline {
        decision: vec![decision("model_response", 5_000, 4_800.0), decision("tool_call", 600, 1_234.5)],
        instructions: vec![InstructionCost { name: "tool_call".to_owned(), per_event: 12_345.0 }],
        memory: vec![memory("quiet", 246.0), memory("busy", 1_710.0)],
        growth: Vec::new(),
    }
}

/// Returns what the benchmark of growth prints, as read.
pub(crate) fn growth() -> Vec<Growth> {
    let growth = |what: &str, from, to, ratio| Growth { what: what.to_owned(), from, to, ns_from: 1_500.0, ns_to: 1_500.0 * ratio, ratio };
    vec![
        growth("threads, uniform", 1_000, 1_000_000, 1.27),
        growth("threads, Zipf", 1_000, 1_000_000, 1.51),
        growth("rules", 10, 10_000, 1.0),
    ]
}
