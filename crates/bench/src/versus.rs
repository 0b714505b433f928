//! Compares the gate with the same worker without deciding, in turns, so that whatever else the machine does affects both.

use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::{Drained, Phase, Session, Subject};

/// One round of the gate or of the pass-through.
#[derive(Debug, Clone, Serialize)]
pub struct Side {
    /// The highest rate that was sustained, in events per second, if it was searched in this round.
    pub peak_per_second: Option<f64>,
    /// Latency at half of the gate's first peak.
    pub at_half: Phase,
}

/// One round of both.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// The gate: `tollgate run`.
    pub gate: Side,
    /// The pass-through: `tollgate run --pass-through`.
    pub pass_through: Side,
}

/// A ratio, and how it spreads over the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
}

/// The gate over the pass-through.
#[derive(Debug, Clone, Serialize)]
pub struct Versus {
    /// Every round.
    pub rounds: Vec<Round>,
    /// CPU per event, draining a preloaded topic.
    pub cpu_draining: Option<Ratio>,
    /// CPU per event, at half of the peak.
    pub cpu_at_half: Option<Ratio>,
    /// Peak throughput.
    pub peak: Option<Ratio>,
    /// Median latency at half of the peak.
    pub p50: Option<Ratio>,
    /// 99th percentile.
    pub p99: Option<Ratio>,
    /// 99.9th percentile.
    pub p999: Option<Ratio>,
}

impl Ratio {
    /// Returns the spread of these; `None` if there are none.
    pub fn of(ratios: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut ratios: Vec<f64> = ratios.into_iter().filter(|ratio| ratio.is_finite()).collect();
        ratios.sort_by(f64::total_cmp);
        let median = match ratios.len() {
            0 => return None,
            count if count % 2 == 1 => *ratios.get(count / 2)?,
            count => (ratios.get(count / 2 - 1)? + ratios.get(count / 2)?) / 2.0,
        };
        Some(Self { median, min: *ratios.first()?, max: *ratios.last()? })
    }

    /// Returns the ratio of two measurements that were made in turns or at the same time, round by round.
    pub fn between(over: &[f64], under: &[f64]) -> Option<Self> {
        Self::of(over.iter().zip(under).map(|(over, under)| over / under))
    }
}

/// Runs `over` and `under` once in this round, and returns what both have measured. They take turns to be the first.
pub(super) fn in_turn<T>(round: usize, over: impl FnOnce() -> Result<T>, under: impl FnOnce() -> Result<T>) -> Result<(T, T)> {
    if round.is_multiple_of(2) {
        let over = over()?;
        Ok((over, under()?))
    } else {
        let under = under()?;
        Ok((over()?, under))
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2}× ({:.2} to {:.2})", self.median, self.min, self.max)
    }
}

impl Versus {
    /// Adds rounds up; `drained` are the gate and the pass-through, draining the same topic.
    pub fn new(rounds: Vec<Round>, drained: &[Drained]) -> Self {
        let ratio =
            |of: fn(&Side) -> Option<f64>| Ratio::of(rounds.iter().filter_map(|round| Some(of(&round.gate)? / of(&round.pass_through)?)));
        let cpu = |name: &str| drained.iter().find(|drained| drained.name == name).map(Drained::cpu_us);
        let cpu_draining = match (cpu(Subject::Gate.name()), cpu(Subject::PassThrough.name())) {
            (Some(gate), Some(pass_through)) => Ratio::between(&gate, &pass_through),
            _ => None,
        };
        Self {
            cpu_draining,
            cpu_at_half: ratio(|side| side.at_half.cpu_us_per_event),
            peak: ratio(|side| side.peak_per_second),
            p50: ratio(|side| Some(side.at_half.tally.latency_ms.p50)),
            p99: ratio(|side| Some(side.at_half.tally.latency_ms.p99)),
            p999: ratio(|side| Some(side.at_half.tally.latency_ms.p999)),
            rounds,
        }
    }
}

impl Session {
    /// Has the gate and the pass-through take turns, for so many rounds: latency at a rate, or, if none is given, the peak and latency at
    /// half of the gate's first one. Where time is limited there may be fewer rounds.
    pub fn rounds(&self, rounds: usize, rate: Option<f64>) -> Result<Vec<Round>> {
        let searches = rate.is_none();
        let mut rate = rate;
        let mut measured = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let start = Instant::now();
            let mut side = |subject: Subject| {
                let side = self.with_worker(&subject, |bed| {
                    let peak_per_second = searches.then(|| self.find_peak(bed)).transpose()?.map(|peak| peak.per_second);
                    let at = rate.or(peak_per_second.map(|peak| peak / 2.0)).context("there is no rate")?;
                    rate = Some(at);
                    Ok(Side { peak_per_second, at_half: bed.run(at, self.plan.times)?.phase })
                })?;
                let phase = &side.at_half;
                self.progress.say(&format!(
                    "{}, {:.0}/s: p99 {:.1} ms",
                    subject.name(),
                    phase.asked_per_second,
                    phase.tally.latency_ms.p99
                ));
                Ok::<_, anyhow::Error>(side)
            };
            measured.push(if round % 2 == 0 {
                let gate = side(Subject::Gate)?;
                Round { gate, pass_through: side(Subject::PassThrough)? }
            } else {
                let pass_through = side(Subject::PassThrough)?;
                Round { gate: side(Subject::Gate)?, pass_through }
            });
            if self.is_late_for(start.elapsed()) {
                break;
            }
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_tells_its_spread() {
        assert_eq!(Ratio::between(&[3.0, 2.0, 4.0], &[2.0, 2.0, 2.0]), Some(Ratio { median: 1.5, min: 1.0, max: 2.0 }));
        assert_eq!(Ratio::of([1.0, 2.0]).map(|ratio| ratio.median), Some(1.5));
        assert_eq!(Ratio::of([f64::NAN]), None);
        assert_eq!(Ratio::of([1.25]).unwrap().to_string(), "1.25× (1.25 to 1.25)");
    }
}
