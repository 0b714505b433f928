//! What was found: the figures as JSON, the table of targets, and both as text for people.

mod markdown;
mod plot;
#[cfg(test)]
pub(crate) mod samples;
mod targets;

pub use markdown::{markdown, page};
use plot::{Series, plot};
pub use targets::rows;

use serde::Serialize;

use crate::{Absence, Drained, Machine, Offline, Overload, PartitionCost, Peak, Phase, Plan, Versus};

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
    /// That of the pass-through, where it was searched once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_through_peak: Option<Peak>,
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
    /// What an event costs with more partitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionCost>,
    /// What was measured of the core alone.
    pub offline: Offline,
    /// What should be here and is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absences: Vec<Absence>,
    /// How long all of it took, builds included, if it is a whole report; zero otherwise.
    pub seconds: f64,
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
    /// Returns findings with nothing measured yet.
    #[must_use]
    pub fn new(machine: Machine, plan: Plan) -> Self {
        Self {
            machine,
            plan,
            peak: None,
            pass_through_peak: None,
            latency: None,
            sweep: Vec::new(),
            overload: None,
            versus: None,
            drained: Vec::new(),
            partitions: Vec::new(),
            offline: Offline::default(),
            absences: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Names what failed, in a sentence; `None` if nothing did. What could not run on this machine has not failed.
    #[must_use]
    pub fn failures(&self) -> Option<String> {
        let failed: Vec<&str> = self.absences.iter().filter(|absence| absence.failed).map(|absence| absence.part.as_str()).collect();
        (!failed.is_empty()).then(|| format!("the report lacks what failed: {}", failed.join(", ")))
    }

    /// Returns the sweep as a drawing.
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
            series("tollgate", "tollgate p50", "a", |phase| phase.tally.latency_ms.p50),
            series("tollgate", "tollgate p99", "b", |phase| phase.tally.latency_ms.p99),
            series("tollgate", "tollgate p99.9", "c", |phase| phase.tally.latency_ms.p999),
            series("pass-through", "pass-through p99", "d", |phase| phase.tally.latency_ms.p99),
        ])
    }
}
