//! Finished spans on their way to the exporter.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::metrics::Metrics;

use super::span::Span;

/// The most spans that wait for the exporter. One more is dropped.
const QUEUE_MAX: usize = 16_384;

/// Why a span is not exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
    /// The exporter does not keep up.
    QueueFull,
    /// The collector could not be reached or did not take it.
    Failed,
    /// The collector took the request, and refused spans of it.
    Refused,
    /// The verdict was never acknowledged, or there are too many that wait for it.
    Unfinished,
}

impl Dropped {
    fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Unfinished => "unfinished",
        }
    }
}

/// The queue of finished spans. Nobody waits at it: the exporter looks at it from time to time, so that a member never has to wake it.
#[derive(Debug)]
pub(super) struct Queue {
    spans: Mutex<VecDeque<Span>>,
    metrics: Metrics,
}

impl Queue {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self { spans: Mutex::default(), metrics: metrics.clone() }
    }

    /// Adds a span, or drops it if the queue is full.
    pub(super) fn push(&self, span: Span) {
        let mut spans = self.spans();
        if spans.len() < QUEUE_MAX {
            spans.push_back(span);
            return;
        }
        drop(spans);
        self.count(Dropped::QueueFull, 1);
    }

    /// Counts spans that are not exported.
    pub(super) fn count(&self, why: Dropped, spans: usize) {
        if spans > 0 {
            self.metrics.traces_dropped.with_label_values(&[why.as_str()]).inc_by(spans as u64);
        }
    }

    /// Takes up to `most` spans off the queue, the oldest first.
    pub(super) fn take(&self, most: usize) -> Vec<Span> {
        let mut spans = self.spans();
        let taken = most.min(spans.len());
        spans.drain(..taken).collect()
    }

    /// Returns how many spans wait.
    pub(super) fn len(&self) -> usize {
        self.spans().len()
    }

    fn spans(&self) -> MutexGuard<'_, VecDeque<Span>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::span::test_span;

    #[test]
    fn a_full_queue_drops_and_counts_and_keeps_the_order() {
        let metrics = Metrics::new().unwrap();
        let queue = Queue::new(&metrics);
        for offset in 0..QUEUE_MAX + 3 {
            queue.push(test_span(i64::try_from(offset).unwrap()));
        }
        assert_eq!(queue.len(), QUEUE_MAX);
        assert_eq!(metrics.traces_dropped.with_label_values(&["queue_full"]).get(), 3);
        let offsets: Vec<_> = queue.take(2).iter().map(|span| span.offset.0).collect();
        assert_eq!((offsets, queue.len()), (vec![0, 1], QUEUE_MAX - 2));
        assert_eq!(queue.take(usize::MAX).len(), QUEUE_MAX - 2);
        assert!(queue.take(1).is_empty());
    }
}
