//! Twice the peak, and what is left of the worker: what it still does, what it holds, how long events wait, and how it comes back.
//!
//! Kafka is the queue, so an event of an overload waits for as long as the backlog in front of it takes, and no longer if the worker's own
//! queues are bounded; and when the load falls, lag is gone as soon as the backlog can be, and not later.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::{Bed, Observed, Phase, Schedule, Session};

/// What is offered behind the overload, as a share of the peak.
const CALM: f64 = 0.25;
/// An event is answered quickly again that waits no longer than this many times the usual 99th percentile, and at least so long.
const SETTLED_FACTOR: f64 = 2.0;
const SETTLED_MIN: Duration = Duration::from_millis(100);
/// Where that share of what was offered is kept, it was no overload.
const KEPT_OF_ALL: f64 = 0.9;
/// How long lag may take to go.
const CALM_TIME: Duration = Duration::from_secs(30);
/// How long an event of the overload may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// See the module.
#[derive(Debug, Clone, Serialize)]
pub struct Overload {
    /// How many times the peak was offered.
    pub factor: f64,
    /// The peak in events per second.
    pub peak_per_second: f64,
    /// The overload.
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
}

impl Overload {
    /// Whether nearly all of it was dealt with at once, so that it was no overload: the peak is higher than was found.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.kept >= self.factor * KEPT_OF_ALL
    }

    /// How much longer than the backlog's own time an event waited, in seconds.
    #[must_use]
    pub fn excess_wait_seconds(&self) -> f64 {
        self.longest_wait_seconds - self.backlog_seconds
    }

    /// How much longer the recovery took than the backlog's own time, in seconds.
    #[must_use]
    pub fn excess_recovery_seconds(&self) -> Option<f64> {
        Some((self.recovery_seconds? - self.backlog_seconds).max(0.0))
    }
}

impl Session {
    /// Offers `factor` times the peak to a worker, then a quarter of the peak.
    ///
    /// # Errors
    /// The worker ends, or the brokers are away.
    pub fn overload(&self, bed: &mut Bed<'_>, peak_per_second: f64, factor: f64) -> Result<Overload> {
        let times = self.plan.times;
        let usual = bed.run(peak_per_second * CALM, times)?.phase;
        let before = usual.resident_bytes_max;
        let settled = Duration::from_secs_f64(usual.tally.latency_ms.p99 / 1e3).mul_f64(SETTLED_FACTOR).max(SETTLED_MIN);
        let schedule = Schedule::new(peak_per_second * factor, Duration::ZERO, times.measured).then(peak_per_second * CALM, CALM_TIME);
        // Nothing of an overload is a miss: how long it waits is what is measured.
        let Observed { phase, arrivals, awaited } = bed.load.follow(Some(&mut bed.worker), schedule, PATIENCE)?;
        let recovered = arrivals.recovered_after(&awaited, settled);
        Ok(Overload {
            factor,
            peak_per_second,
            kept: phase.achieved_per_second / peak_per_second,
            resident_bytes_before: before,
            backlog_seconds: arrivals.backlog(&awaited) as f64 / phase.tally.verdicts_per_second.max(1.0),
            longest_wait_seconds: phase.tally.latency_ms.max / 1e3,
            recovery_seconds: recovered.map(|after| after.as_secs_f64()),
            phase,
        })
    }
}
