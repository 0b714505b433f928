//! The counts of signals of one member. They are numbers of its own, handed over once a second: a counter with labels would cost as much as
//! a signal.

use tollgate_core::decide::signal::{EventSignals, PointKind, VolumeKind};
use tollgate_core::event::record::{Offset, Partition};

use crate::metrics::Metrics;

/// What was counted since it was last handed over.
#[derive(Debug)]
pub(super) struct SignalCounts {
    points: [u64; PointKind::ALL.len()],
    volumes: [u64; VolumeKind::ALL.len()],
    untimed: u64,
    unattributed: u64,
    metrics: Metrics,
}

impl SignalCounts {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self { points: Default::default(), volumes: Default::default(), untimed: 0, unattributed: 0, metrics: metrics.clone() }
    }

    /// Counts the signals of an event: a fact once for each subject.
    pub(super) fn count(&mut self, signals: &EventSignals) {
        let count_in = |counts: &mut [u64], kind: usize| counts.get_mut(kind).into_iter().for_each(|count| *count += 1);
        signals.points((Partition(0), Offset(0))).for_each(|point| count_in(&mut self.points, point.kind as usize));
        signals.volumes().iter().for_each(|(kind, ..)| count_in(&mut self.volumes, *kind as usize));
    }

    /// Counts an event of which something is left out.
    pub(super) fn left_out(&mut self, signals: &EventSignals) {
        if signals.is_untimed() {
            self.untimed += 1;
        } else if signals.is_unattributed() {
            self.unattributed += 1;
        }
    }

    pub(super) fn flush(&mut self) {
        let points = PointKind::ALL.iter().map(|kind| kind.as_str()).zip(&mut self.points);
        let volumes = VolumeKind::ALL.iter().map(|kind| kind.as_str()).zip(&mut self.volumes);
        for (kind, count) in points.chain(volumes) {
            self.metrics.signals_written.with_label_values(&[kind]).inc_by(std::mem::take(count));
        }
        for (reason, count) in [("untimed", &mut self.untimed), ("unattributed", &mut self.unattributed)] {
            self.metrics.signals_left_out.with_label_values(&[reason]).inc_by(std::mem::take(count));
        }
    }
}
