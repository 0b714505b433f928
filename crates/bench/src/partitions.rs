//! Measures an event's cost with more partitions: the same traffic, drained from topics of one, of eight, of many.

use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use super::{Ratio, Session, Subject};

/// The numbers of partitions that are compared.
pub const PARTITIONS: [u32; 3] = [1, 8, 64];

/// The cost of an event with so many partitions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionCost {
    /// Partitions of the topics.
    pub partitions: u32,
    /// Microseconds of the worker's CPU per event, round by round.
    pub cpu_us: Vec<f64>,
}

impl PartitionCost {
    /// Returns the median of the rounds.
    pub fn median_us(&self) -> Option<f64> {
        Ratio::of(self.cpu_us.iter().copied()).map(|cost| cost.median)
    }

    /// Returns the cost of an event as a multiple of its cost with other partitions, round by round.
    pub fn over(&self, other: &Self) -> Option<Ratio> {
        Ratio::between(&self.cpu_us, &other.cpu_us)
    }
}

impl Session {
    /// Has the gate drain topics with so many events and the [`PARTITIONS`], in alternating order. Where time is limited there may be fewer
    /// rounds.
    pub fn partition_costs(&self, events: usize, rounds: usize) -> Result<Vec<PartitionCost>> {
        let mut preloaded = Vec::new();
        for partitions in PARTITIONS {
            preloaded.push((self.preload(partitions, events, self.mix())?, PartitionCost { partitions, cpu_us: Vec::new() }));
        }
        for round in 0..rounds {
            let start = Instant::now();
            let mut order: Vec<_> = preloaded.iter_mut().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for (topic, cost) in order {
                let (found, _) = self.drain_once(&Subject::Gate, topic, false, self.cut_after(round))?;
                let cpu_us = 1e6 / found.events_per_cpu_second;
                self.progress.say(&format!("{} partitions: {cpu_us:.2} µs of CPU per event", cost.partitions));
                cost.cpu_us.push(cpu_us);
            }
            if self.is_late_for(start.elapsed()) {
                break;
            }
        }
        let mut costs = Vec::new();
        for (topic, cost) in preloaded {
            self.discard(&topic)?;
            costs.push(cost);
        }
        Ok(costs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_compared_round_by_round() {
        let cost = |partitions, cpu_us: &[f64]| PartitionCost { partitions, cpu_us: cpu_us.to_vec() };
        let (one, many) = (cost(1, &[10.0, 20.0, 10.0]), cost(64, &[12.0, 22.0, 13.0]));
        assert_eq!((one.median_us(), cost(1, &[]).median_us()), (Some(10.0), None));
        let ratio = many.over(&one).unwrap();
        assert!((ratio.median - 1.2).abs() < 1e-9 && (ratio.max - 1.3).abs() < 1e-9, "{ratio}");
    }
}
