//! Offers a multiple of the peak, and measures what the worker still does, what it holds, how long events wait, and how it recovers.
//!
//! Kafka is the queue. An event of an overload waits for as long as the backlog in front of it takes, and no longer if the worker's own
//! queues are bounded. Nothing is shed: after N seconds of twice the peak there are N seconds of work left, and no worker can recover
//! earlier. So there are two overloads. A sustained one shows throughput, memory and waits. A burst of two seconds shows the recovery,
//! measured from the moment the load falls, with nothing subtracted.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::{Bed, Observed, Phase, Schedule, Session};

/// The load that is offered behind an overload, as a share of the peak.
const CALM: f64 = 0.1;
/// An event is answered quickly again if it waits no longer than this many times the usual 99th percentile, within these bounds.
const SETTLED_FACTOR: f64 = 2.0;
const SETTLED_MIN: Duration = Duration::from_millis(100);
const SETTLED_MAX: Duration = Duration::from_millis(300);
/// Where a worker keeps this share of what was offered, it was no overload.
const KEPT_OF_ALL: f64 = 0.9;
/// How often a higher peak is tried where it was no overload.
const RAISES_MAX: usize = 2;
const BURST: Duration = Duration::from_secs(2);
/// How long lag may take to go, beyond twice the time of the overload.
const CALM_MIN: Duration = Duration::from_secs(5);
/// How long an event of the overload may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The results of offering more than the peak, and of the recovery.
#[derive(Debug, Clone, Serialize)]
pub struct Overload {
    /// How many times the peak was offered.
    pub factor: f64,
    /// For how long, in seconds.
    pub seconds: f64,
    /// The peak in events per second: the one that was searched, or what was kept of it if that was more than it.
    pub peak_per_second: f64,
    /// The results of the overload.
    pub phase: Phase,
    /// The share of the peak that was kept.
    pub kept: f64,
    /// The worker's memory before, in bytes.
    pub resident_bytes_before: u64,
    /// How long the backlog at the end of the overload takes at the rate that was kept, in seconds.
    pub backlog_seconds: f64,
    /// The longest that an event waited, in seconds.
    pub longest_wait_seconds: f64,
    /// From when the load fell to when events were answered as quickly as usual, in seconds; `None` if they were not in time.
    pub recovery_seconds: Option<f64>,
    /// The results of the burst.
    pub burst: Burst,
}

/// A short overload, and how soon latency is as before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Burst {
    /// How long it was, in seconds.
    pub seconds: f64,
    /// From when the load fell to when events were answered as quickly as usual, in seconds; `None` if they were not in time.
    pub recovery_seconds: Option<f64>,
}

impl Overload {
    /// Returns whether nearly all of it was dealt with at once, so that it was no overload: the peak is higher than was found.
    pub fn is_none(&self) -> bool {
        self.kept >= self.factor * KEPT_OF_ALL
    }

    /// Returns how much longer than the backlog's own time an event waited, in seconds.
    pub fn excess_wait_seconds(&self) -> f64 {
        (self.longest_wait_seconds - self.backlog_seconds).max(0.0)
    }

    /// Returns the memory at the end as a multiple of the memory before.
    pub fn memory_growth(&self) -> f64 {
        self.phase.resident_bytes_max as f64 / self.resident_bytes_before.max(1) as f64
    }
}

impl Session {
    /// Offers `factor` times the peak to a worker, then a tenth of the peak, and both again for a moment. Where nearly all of it was dealt
    /// with, that is done again with what was kept as the peak.
    pub fn overload(&self, bed: &mut Bed<'_>, peak_per_second: f64, factor: f64) -> Result<Overload> {
        let times = self.plan.times;
        let usual = bed.run(peak_per_second * CALM, self.plan.sweep_times())?.phase;
        let settled = Duration::from_secs_f64(usual.tally.latency_ms.p99 / 1e3).mul_f64(SETTLED_FACTOR).clamp(SETTLED_MIN, SETTLED_MAX);
        let mut peak = peak_per_second;
        let mut raises = 0;
        loop {
            let (Observed { phase, arrivals, awaited }, recovered) = bed.flood(peak, factor, times.measured, settled)?;
            let overload = Overload {
                factor,
                seconds: times.measured.as_secs_f64(),
                peak_per_second: peak,
                kept: phase.achieved_per_second / peak,
                resident_bytes_before: usual.resident_bytes_max,
                backlog_seconds: arrivals.backlog(&awaited) as f64 / phase.tally.verdicts_per_second.max(1.0),
                longest_wait_seconds: phase.tally.latency_ms.max / 1e3,
                recovery_seconds: recovered,
                burst: Burst { seconds: BURST.as_secs_f64(), recovery_seconds: None },
                phase,
            };
            if overload.is_none() && raises < RAISES_MAX && !self.is_late_for(times.measured * 3 + CALM_MIN) {
                self.progress.say(&format!("overload: {:.0}/s were dealt with, which was no overload", overload.phase.achieved_per_second));
                peak = overload.phase.achieved_per_second;
                raises += 1;
                continue;
            }
            let (_, recovery_seconds) = bed.flood(peak, factor, BURST, settled)?;
            return Ok(Overload { burst: Burst { recovery_seconds, ..overload.burst }, ..overload });
        }
    }
}

impl Bed<'_> {
    /// Offers a multiple of the peak for some time, then little, and returns how many seconds after the load fell events were answered
    /// quickly.
    fn flood(&mut self, peak: f64, factor: f64, time: Duration, settled: Duration) -> Result<(Observed, Option<f64>)> {
        let schedule = Schedule::new(peak * factor, Duration::ZERO, time).with_tail(peak * CALM, time * 2 + CALM_MIN);
        // In an overload no event is a miss: how long it waits is what is measured.
        let observed = self.load.follow(Some(&mut self.worker), schedule, PATIENCE)?;
        let recovered = observed.arrivals.recovered_after(&observed.awaited, settled);
        Ok((observed, recovered.map(|after| after.as_secs_f64())))
    }
}
