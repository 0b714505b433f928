//! The pass-through stage: it answers every record with a constant verdict and does everything else like the deciding stage. The worker is
//! measured against it.

use std::convert::Infallible;
use std::sync::Arc;

use tollgate_core::decide::pass_through::{Nothing, PASS_THROUGH, PassThrough};
use tollgate_core::event::record::Partition;

use crate::metrics::Metrics;
use crate::outbox::{Delivery, Publications};
use tollgate_config::settings::KafkaSettings;

use super::deciding::{Counts, VerdictPublisher, reduce, verdict_output, verdict_topics};
use super::{Done, RequestId, StageRuntime, StageSetup};

/// Returns the stage that decides nothing.
#[must_use]
pub fn pass_through(kafka: &Arc<KafkaSettings>, metrics: &Metrics) -> StageSetup<PassingThrough> {
    let (publisher, metrics) = (VerdictPublisher::new(Arc::clone(kafka), metrics.clone()), metrics.clone());
    StageSetup {
        topics: verdict_topics(kafka),
        output: verdict_output(kafka),
        reduce: Arc::new(|delivery, returned| reduce(delivery, returned, PASS_THROUGH)),
        version: PASS_THROUGH.to_owned(),
        runtime: Box::new(move || PassingThrough::new(publisher.clone(), &metrics)),
    }
}

/// The stage runtime of a worker that decides nothing.
#[derive(Debug)]
pub struct PassingThrough {
    publisher: VerdictPublisher,
    counts: Counts,
}

impl PassingThrough {
    /// Returns a runtime that uses this publisher and these metrics.
    #[must_use]
    pub fn new(publisher: VerdictPublisher, metrics: &Metrics) -> Self {
        Self { publisher, counts: Counts::new(metrics, &Arc::default()) }
    }
}

impl StageRuntime for PassingThrough {
    type Stage = PassThrough;

    fn stage(&self, _: Partition, state: Option<Nothing>) -> PassThrough {
        state.map_or_else(PassThrough::default, PassThrough::with_state)
    }

    fn limits(&self) {}

    fn publish(&mut self, done: Done<'_, PassThrough>, publications: &mut Publications<'_>) {
        self.counts.passed_through();
        self.publisher.publish(done.record, done.output, None, done.record.timestamp_ms, publications);
    }

    fn ask(&mut self, _: RequestId, request: Infallible) {
        match request {}
    }

    fn response(&mut self) -> Option<(RequestId, Infallible)> {
        None
    }

    fn acknowledged(&mut self, delivery: &Delivery, now_ms: i64) {
        self.counts.acknowledged(delivery, now_ms);
    }

    fn flush(&mut self) {
        self.counts.flush();
    }
}
