//! The abuse stage in a worker: it folds the signals of a partition, publishes controls and alerts, and counts both.
//!
//! No alert says that somebody is suspended before the control that does it is acknowledged. Alerts of a partition leave in the order of the
//! fold.
//!
//! | module | what |
//! |---|---|
//! | `alerts` | alerts that wait for the controls of their record |
//! | `counts` | what is counted of the fold |
//! | `warm_up` | rules that are new to a state are shown what came before, while the others go on |

mod alerts;
mod counts;
mod warm_up;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use rdkafka::message::OwnedHeaders;
use tollgate_abuse::{Abuse, AbuseRules, AbuseState};
use tollgate_core::event::record::{Offset, Partition};

use crate::kafka::StageTopics;
use crate::metrics::Metrics;
use crate::outbox::{Delivery, Destination, LatePublications, OutboxTopics, Publications, Role};
use crate::threads::Threads;
use tollgate_config::settings::KafkaSettings;

use super::{Done, RequestId, StageRuntime, StageSetup};

use alerts::WaitingAlerts;
use counts::FoldedCounts;
use warm_up::{ReaderParts, WarmUps};

/// The version of the stage, for logs: its rules have versions of their own.
const VERSION: &str = "abuse";

/// Returns the stage that counts signals by these rules, in a group of this id. `metrics` are those of the process, and `own` those of the
/// stage, which has partitions of its own; `threads` are those of the process.
#[must_use]
pub fn abuse(
    kafka: &Arc<KafkaSettings>,
    rules: &Arc<AbuseRules>,
    group_id: &str,
    (metrics, own): (&Metrics, &Metrics),
    threads: &Arc<Threads>,
) -> StageSetup<AbuseRuntime> {
    let topics = Arc::new(StageTopics::of_abuse(kafka, group_id));
    let readers = Arc::new(ReaderParts::new(kafka, &topics, threads));
    let (kafka, rules, metrics, own) = (Arc::clone(kafka), Arc::clone(rules), metrics.clone(), own.clone());
    StageSetup {
        output: OutboxTopics {
            output: kafka.topics.alerts.clone(),
            // What cannot be read is counted and left where it is: the log is ours, and nobody awaits an answer.
            dead_letters: kafka.topics.alerts.clone(),
            others: vec![(Role::Alert, kafka.topics.alerts.clone()), (Role::Control, kafka.topics.controls.clone())],
        },
        topics,
        reduce: Arc::new(|_, _| None),
        version: VERSION.to_owned(),
        runtime: Box::new(move || AbuseRuntime {
            kafka: Arc::clone(&kafka),
            rules: Arc::clone(&rules),
            alerts: WaitingAlerts::default(),
            counts: FoldedCounts::new(&metrics, &own, &rules),
            warm_ups: WarmUps::new(&readers, &metrics),
        }),
    }
}

/// The stage runtime of a worker that counts signals.
#[derive(Debug)]
pub struct AbuseRuntime {
    kafka: Arc<KafkaSettings>,
    rules: Arc<AbuseRules>,
    alerts: WaitingAlerts,
    counts: FoldedCounts,
    warm_ups: WarmUps,
}

impl StageRuntime for AbuseRuntime {
    type Stage = Abuse;

    fn stage(&self, _: Partition, state: Option<AbuseState>) -> Abuse {
        Abuse::new(Arc::clone(&self.rules), state.unwrap_or_default())
    }

    fn partition_started(&mut self, partition: Partition, _: Option<Offset>) {
        self.alerts.forget(partition);
        self.counts.partition_started(partition);
    }

    fn state_lost(&mut self, partition: Partition) {
        self.alerts.forget(partition);
        self.warm_ups.forget(partition);
    }

    fn partition_revoked(&mut self, partition: Partition) {
        self.alerts.forget(partition);
        self.counts.partition_revoked(partition);
        self.warm_ups.forget(partition);
    }

    fn limits(&self) {}

    fn beside_records(&mut self, partition: Partition, stage: &mut Abuse) {
        self.warm_ups.beside_records(partition, stage);
    }

    fn publish(&mut self, done: Done<'_, Abuse>, publications: &mut Publications<'_>) {
        let folded = done.outcome;
        self.counts.folded(done.record, &folded);
        let topic = self.kafka.topics.controls.as_str();
        for control in &folded.controls {
            // The key decides the partition, as for operators' controls.
            let to = Destination { topic, partition: None, key: Some(control.key.as_bytes()), value: control.value.as_deref() };
            publications.send(Role::Control, to, OwnedHeaders::new(), None);
        }
        if !folded.alerts.is_empty() {
            publications.await_later(u32::try_from(folded.alerts.len()).unwrap_or(u32::MAX));
            self.alerts.add(publications.waiter(), folded.controls.len(), folded.alerts);
        }
    }

    fn ask(&mut self, _: RequestId, request: Infallible) {
        match request {}
    }

    fn response(&mut self) -> Option<(RequestId, Infallible)> {
        None
    }

    fn acknowledged(&mut self, delivery: &Delivery, _: i64) {
        if delivery.role == Role::Control {
            self.alerts.control_acknowledged(delivery);
        }
    }

    fn between_rounds(&mut self, late: &mut LatePublications<'_>) {
        let topic = self.kafka.topics.alerts.as_str();
        self.alerts.release(|waiter, alert| {
            let to = Destination { topic, partition: None, key: Some(alert.key.as_bytes()), value: Some(&alert.value) };
            late.send(Role::Alert, to, waiter);
            self.counts.alert(&alert.value);
        });
    }

    fn held(&self) -> usize {
        self.alerts.records()
    }

    fn tick(&mut self, now: Instant) {
        self.counts.report_unread(now);
    }

    fn flush(&mut self) {
        self.counts.flush();
    }
}
