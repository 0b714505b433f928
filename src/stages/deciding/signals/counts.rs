//! The counts of signals of one member. They are local and handed over once a second, like those of verdicts.

use prometheus::core::{AtomicU64, GenericLocalCounterVec};
use tollgate_core::record::{Offset, Partition};
use tollgate_core::signal::EventSignals;

use crate::metrics::Metrics;

/// The local counts.
pub(super) struct SignalCounts {
    written: GenericLocalCounterVec<AtomicU64>,
    left_out: GenericLocalCounterVec<AtomicU64>,
}

impl std::fmt::Debug for SignalCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignalCounts").finish_non_exhaustive()
    }
}

impl SignalCounts {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self { written: metrics.signals_written.local(), left_out: metrics.signals_left_out.local() }
    }

    /// Counts the signals of an event: a fact once for each subject.
    pub(super) fn written(&mut self, signals: &EventSignals) {
        for point in signals.points((Partition(0), Offset(0))) {
            self.written.with_label_values(&[point.kind.as_str()]).inc();
        }
        for (kind, ..) in signals.volumes() {
            self.written.with_label_values(&[kind.as_str()]).inc();
        }
    }

    /// Counts an event of which something is left out.
    pub(super) fn left_out(&mut self, signals: &EventSignals) {
        if signals.is_untimed() {
            self.left_out.with_label_values(&["untimed"]).inc();
        } else if signals.is_unattributed() {
            self.left_out.with_label_values(&["unattributed"]).inc();
        }
    }

    pub(super) fn flush(&mut self) {
        self.written.flush();
        self.left_out.flush();
    }
}
