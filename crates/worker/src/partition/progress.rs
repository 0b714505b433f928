//! How far a restore has come, for the log and the gauges.

use std::time::{Duration, Instant};

use tollgate_core::event::record::Offset;

use crate::metrics::PartitionMetrics;

use super::restore_clients::RestoreParts;

/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The progress of a restore, for the log and the gauges.
pub(super) struct Progress<'p> {
    parts: &'p RestoreParts<'p>,
    gauges: PartitionMetrics,
    started: Instant,
    reported: Instant,
    records: u64,
    bytes: u64,
}

impl<'p> Progress<'p> {
    pub(super) fn new(parts: &'p RestoreParts<'p>) -> Self {
        Self {
            parts,
            gauges: parts.metrics.partition(parts.partition),
            started: Instant::now(),
            reported: Instant::now(),
            records: 0,
            bytes: 0,
        }
    }

    pub(super) fn step(&mut self, offset: Offset, end: Offset, bytes: usize, entries: usize) {
        self.records += 1;
        self.bytes += bytes as u64;
        if self.reported.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        self.reported = Instant::now();
        let (done, left) = ((offset.0 + 1).max(1) as f64, (end.0 - offset.0 - 1).max(0));
        let seconds = self.started.elapsed().as_secs_f64();
        let eta_seconds = seconds * left as f64 / done;
        let Self { records, bytes, .. } = self;
        let partition = self.parts.partition;
        tracing::info!(%partition, records, bytes, entries, seconds, left, eta_seconds, "restoring");
        self.gauge(left, eta_seconds);
    }

    fn gauge(&self, left: i64, eta_seconds: f64) {
        self.gauges.restore_remaining_records.set(left);
        self.gauges.restore_eta_seconds.set(eta_seconds.ceil() as i64);
    }

    pub(super) fn finish(self) -> (u64, u64) {
        self.gauge(0, 0.0);
        self.parts.metrics.restore_records.inc_by(self.records);
        self.parts.metrics.restore_bytes.inc_by(self.bytes);
        (self.records, self.bytes)
    }
}
