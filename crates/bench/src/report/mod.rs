//! The findings of a run: the figures as JSON, the table of targets, and both as text for people.

mod abuse;
mod markdown;
mod plot;
#[cfg(test)]
pub(crate) mod samples;
mod targets;

pub use markdown::{markdown, megabytes, page, write_rows};
use plot::{Series, plot};
pub use targets::Row;

use serde::Serialize;

use crate::{Absence, AbuseFindings, Drained, Machine, Offline, Overload, PartitionCost, Peak, Phase, Plan, Ratio, Versus};

/// Returns the table of targets of one run.
pub fn rows(findings: &Findings) -> Vec<Row> {
    findings.abuse.as_ref().map_or_else(|| targets::rows(findings), |abuse| abuse::rows(findings, abuse))
}

/// The results of one run; what was not asked for is left out.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Findings {
    /// The machine that it ran on.
    pub machine: Machine,
    /// How measurements were made.
    pub plan: Plan,
    /// The highest rate that the gate sustains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<Peak>,
    /// The highest rate that the pass-through sustains, where it was searched once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_through_peak: Option<Peak>,
    /// Latency at the rate that was asked for, or at half of the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Phase>,
    /// Latency against offered load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepPoint>,
    /// The results of offering more than the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
    /// The gate compared with the pass-through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus: Option<Versus>,
    /// Events per CPU second of every worker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drained: Vec<Drained>,
    /// The same of the gate and the pass-through on events of about 1,300 bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drained_smaller: Vec<Drained>,
    /// CPU per event of deciding with abuse on, over that with abuse off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abuse_cpu: Option<Ratio>,
    /// Milliseconds from a suspension to the first blocked call on the last of 16 partitions, at the 99th percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_ms: Option<f64>,
    /// Events that `eval --digest` decides in a second of one core's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest_per_cpu_second: Option<f64>,
    /// The cost of an event with more partitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionCost>,
    /// The figures of the core alone.
    pub offline: Offline,
    /// The figures of abuse over the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abuse: Option<AbuseFindings>,
    /// The parts that are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absences: Vec<Absence>,
    /// How long all of it took, builds included, if it is a whole report; zero otherwise.
    pub seconds: f64,
}

/// One point of latency against offered load.
#[derive(Debug, Clone, Serialize)]
pub struct SweepPoint {
    /// The name of the worker.
    pub name: String,
    /// The share of the gate's peak that was offered.
    pub share: f64,
    /// The results of the phase.
    pub phase: Phase,
}

impl Findings {
    /// Returns findings with nothing measured yet.
    pub fn new(machine: Machine, plan: Plan) -> Self {
        Self { machine, plan, ..Self::default() }
    }

    /// Names what failed, in a sentence; `None` if nothing did. What could not run on this machine has not failed.
    pub fn failures(&self) -> Option<String> {
        let failed: Vec<&str> = self.absences.iter().filter(|absence| absence.failed).map(|absence| absence.part.as_str()).collect();
        (!failed.is_empty()).then(|| format!("the report lacks what failed: {}", failed.join(", ")))
    }

    /// Returns the sweep as a drawing.
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
            series("tollgate", "tollgate p50", "a", |phase| phase.tally.latency_ms.p50),
            series("tollgate", "tollgate p99", "b", |phase| phase.tally.latency_ms.p99),
            series("tollgate", "tollgate p99.9", "c", |phase| phase.tally.latency_ms.p999),
            series("pass-through", "pass-through p99", "d", |phase| phase.tally.latency_ms.p99),
        ])
    }
}
