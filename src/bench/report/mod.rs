//! What was found: the figures as JSON, the table of targets, and both as text for people.

mod markdown;
mod plot;
mod targets;

pub use markdown::markdown;
pub use plot::{Series, plot};
pub use targets::{Row, rows};

use serde::Serialize;

use super::machine::Machine;
use super::{Drained, Overload, Peak, Phase, Plan, Versus};

/// Everything that was measured in one run; what was not asked for is left out.
#[derive(Debug, Clone, Serialize)]
pub struct Findings {
    /// Where.
    pub machine: Machine,
    /// How.
    pub plan: Plan,
    /// The highest rate that the gate sustains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<Peak>,
    /// Latency at the rate that was asked for, or at half of the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Phase>,
    /// Latency against offered load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepPoint>,
    /// More than the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
    /// The gate over the pass-through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus: Option<Versus>,
    /// Events per CPU second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drained: Vec<Drained>,
}

/// One point of latency against offered load.
#[derive(Debug, Clone, Serialize)]
pub struct SweepPoint {
    /// Who was loaded.
    pub name: String,
    /// The share of the gate's peak that was offered.
    pub share: f64,
    /// What it came to.
    pub phase: Phase,
}

impl Findings {
    /// Nothing yet.
    #[must_use]
    pub fn new(machine: Machine, plan: Plan) -> Self {
        Self { machine, plan, peak: None, latency: None, sweep: Vec::new(), overload: None, versus: None, drained: Vec::new() }
    }

    /// The sweep as a drawing.
    #[must_use]
    pub fn plot(&self) -> String {
        let series = |name: &str, label: &str, style: &'static str, of: fn(&Phase) -> f64| {
            let points = self.sweep.iter().filter(|point| point.name == name);
            Series {
                label: label.to_owned(),
                style,
                points: points.map(|point| (point.phase.asked_per_second, of(&point.phase))).collect(),
            }
        };
        plot(&[
            series("tollgate", "tollgate p50", "#1b9e77", |phase| phase.tally.latency_ms.p50),
            series("tollgate", "tollgate p99", "#d95f02", |phase| phase.tally.latency_ms.p99),
            series("tollgate", "tollgate p99.9", "#7570b3", |phase| phase.tally.latency_ms.p999),
            series("pass-through", "pass-through p99", "#999999", |phase| phase.tally.latency_ms.p99),
        ])
    }
}

/// A peak that tests make findings of.
#[cfg(test)]
pub(crate) mod samples {
    use std::time::Duration;

    use super::*;
    use crate::bench::{DrainRound, Percentiles, Ratio, Search, Tally, Times};

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
        };
        let times = Times { warm_up: Duration::from_secs(1), measured: Duration::from_secs(10), deadline: Duration::from_secs(5) };
        let search = Search { start: 4_000.0, precision: 1.1, attempts: 1, probes_max: 12 };
        let plan = Plan { seed: 1, threads: 10_000, partitions: 8, times, probe_times: times, search };
        let drained = |name: &str, per_cpu_second: f64| Drained {
            name: name.to_owned(),
            rounds: vec![DrainRound { events_per_second: 30_000.0, events_per_cpu_second: per_cpu_second, verdicts: 900 }; 3],
            agreement: None,
        };
        let ratio = |median| Some(Ratio { median, min: median - 0.1, max: median + 0.1 });
        let point =
            |name: &str, share: f64| SweepPoint { name: name.to_owned(), share, phase: phase(20_000.0 * share, 3.0 + share * 40.0) };
        Findings {
            peak: Some(Peak { per_second: 20_000.0, probes: vec![phase(20_000.0, 40.0)] }),
            latency: Some(phase(10_000.0, 5.0)),
            sweep: [0.1, 0.5, 0.9].into_iter().flat_map(|share| [point("tollgate", share), point("pass-through", share)]).collect(),
            overload: Some(Overload {
                factor: 2.0,
                peak_per_second: 20_000.0,
                phase: phase(40_000.0, 4_000.0),
                kept: 0.97,
                resident_bytes_before: 110 << 20,
                backlog_seconds: 9.0,
                longest_wait_seconds: 9.2,
                recovery_seconds: Some(11.0),
            }),
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
            ..Findings::new(machine, plan)
        }
    }
}
