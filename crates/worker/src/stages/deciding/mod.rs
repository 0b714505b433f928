//! The deciding stage in a worker: it publishes verdicts, replies and dead letters, asks policy servers, and counts all of it.

mod counts;
mod dead_letter;
mod headers;
mod publish;
mod reduce;
mod signals;

pub use counts::{Counts, FreeLabels};
pub use publish::VerdictPublisher;
pub use reduce::reduce;
pub use signals::SignalTopic;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use prometheus::local::LocalHistogramTimer;
use tollgate_core::decide::deciding::{Deciding, Outcome};
use tollgate_core::decide::guardrail::{Answer, Question};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::shadow::Decision;
use tollgate_core::decide::thread::{StoreLimits, ThreadStore};
use tollgate_core::event::record::{Offset, Partition, Record};

use crate::kafka::StageTopics;
use crate::metrics::Metrics;
use crate::outbox::{Delivery, LatePublications, OutboxTopics, Publications, Role};
use crate::policy_servers::PolicyServers;
use crate::shadow::{ShadowFeed, Trial};
use crate::traces::{Tracer, Traces};
use tollgate_config::settings::KafkaSettings;

use dead_letter::dead_letter_headers;
use signals::Signals;

use super::{Done, RequestId, StageRuntime, StageSetup};

/// Returns the deciding stage under a policy, with the policy servers to ask. With traces, sampled records get a span. With a trial, a
/// sample of the threads is decided by another policy too, which changes no verdict. With a signals topic, what is seen of subjects is written
/// there.
#[must_use]
pub fn deciding(
    kafka: &Arc<KafkaSettings>,
    policy: &Arc<Policy>,
    servers: &PolicyServers,
    metrics: &Metrics,
    (traces, trial, signals): (Option<&Traces>, Option<&Trial>, Option<SignalTopic>),
) -> StageSetup<DecidingRuntime> {
    let (traces, trial) = (traces.cloned(), trial.cloned());
    let (publisher, version) = (VerdictPublisher::new(Arc::clone(kafka), metrics.clone()), policy.version().to_owned());
    let (policy, servers, metrics, policy_version) = (Arc::clone(policy), servers.clone(), metrics.clone(), version.clone());
    let labels = Arc::default();
    StageSetup {
        topics: verdict_topics(kafka),
        output: verdict_output(kafka),
        reduce: Arc::new(move |delivery, returned| reduce(delivery, returned, &policy_version)),
        version,
        runtime: Box::new(move || {
            let (tracer, counts) = (traces.as_ref().map(Traces::tracer), Counts::new(&metrics, &labels));
            let runtime = DecidingRuntime::new(Arc::clone(&policy), publisher.clone(), servers.clone(), counts, tracer);
            DecidingRuntime {
                shadow: trial.as_ref().map(ShadowFeed::start),
                signals: signals.clone().map(|topic| Signals::new(topic, &metrics)),
                ..runtime
            }
        }),
    }
}

/// Returns the group, the input topic and the state topic of a worker that gives verdicts.
pub(super) fn verdict_topics(kafka: &KafkaSettings) -> Arc<StageTopics> {
    Arc::new(StageTopics::of(kafka))
}

/// Returns the topics of verdicts and dead letters.
pub(super) fn verdict_output(kafka: &KafkaSettings) -> OutboxTopics {
    OutboxTopics {
        output: kafka.topics.decisions.clone(),
        dead_letters: kafka.topics.dlq.clone(),
        others: vec![(Role::Signals, kafka.topics.signals.clone())],
    }
}

/// The stage runtime of a worker that decides.
#[derive(Debug)]
pub struct DecidingRuntime {
    policy: Arc<Policy>,
    publisher: VerdictPublisher,
    counts: Counts,
    servers: PolicyServers,
    /// The channel of the policy servers' answers.
    answers: Receiver<(RequestId, Answer)>,
    sender: Sender<(RequestId, Answer)>,
    /// `None` if traces are off.
    tracer: Option<Tracer>,
    /// `None` if no policy is on trial.
    shadow: Option<ShadowFeed>,
    /// `None` if no signals are written.
    signals: Option<Signals>,
    /// The record that was taken last.
    last_taken: Option<(Partition, Offset)>,
}

impl DecidingRuntime {
    /// Returns a runtime under a policy, with the policy servers to ask and where to count.
    #[must_use]
    pub fn new(policy: Arc<Policy>, publisher: VerdictPublisher, servers: PolicyServers, counts: Counts, tracer: Option<Tracer>) -> Self {
        let (sender, answers) = channel();
        Self { policy, publisher, counts, servers, answers, sender, tracer, shadow: None, signals: None, last_taken: None }
    }
}

impl StageRuntime for DecidingRuntime {
    type Stage = Deciding;

    fn stage(&self, partition: Partition, state: Option<ThreadStore>) -> Deciding {
        if let Some(shadow) = &self.shadow {
            shadow.taken(partition, state.as_ref());
        }
        let policy = Arc::clone(&self.policy);
        match state {
            Some(threads) => Deciding::with_threads(policy, threads),
            None => Deciding::new(policy),
        }
    }

    fn partition_started(&mut self, partition: Partition, new_end: Option<Offset>) {
        if let Some(signals) = &mut self.signals {
            signals.partition_started(partition, new_end);
        }
    }

    fn state_lost(&mut self, partition: Partition) {
        if let Some(signals) = &mut self.signals {
            signals.forget(partition);
        }
    }

    fn partition_revoked(&mut self, partition: Partition) {
        if let Some(shadow) = &self.shadow {
            shadow.partition_revoked(partition);
        }
        self.state_lost(partition);
    }

    fn limits(&self) -> StoreLimits {
        self.policy.store_limits()
    }

    fn taken(&mut self, record: &Record<'_>) {
        self.last_taken = Some((record.partition, record.offset));
        if let Some(tracer) = &mut self.tracer {
            tracer.taken(record);
        }
    }

    fn waits(&mut self) {
        if let Some(tracer) = &mut self.tracer {
            tracer.waits();
        }
        if let (Some(signals), Some((partition, offset))) = (&mut self.signals, self.last_taken) {
            signals.undecided(partition, offset);
        }
    }

    fn publish(&mut self, done: Done<'_, Deciding>, publications: &mut Publications<'_>) {
        let Done { record, outcome, output, own_headers } = done;
        if let Some(tracer) = &mut self.tracer {
            tracer.decided(record);
        }
        if let Some(shadow) = &mut self.shadow {
            shadow_of(shadow, record, &outcome, &output.thread_id);
        }
        let mut rejected = None;
        match outcome {
            Outcome::Boundary(event_type) => {
                self.counts.event(event_type);
                if let Some(tracer) = &mut self.tracer {
                    tracer.without_verdict();
                }
            }
            Outcome::Verdict { event_type, decided, time_ms } => {
                self.counts.event(event_type);
                self.counts.verdict(&decided, self.policy.guardrails());
                self.publisher.publish(record, output, None, time_ms, publications);
            }
            Outcome::DeadLetter(rejection) => {
                self.counts.unreadable(rejection.code.as_str(), !output.thread_id.is_empty());
                tracing::warn!(topic = record.topic, partition = %record.partition, offset = %record.offset, code = rejection.code.as_str(), "{rejection}");
                rejected = Some(rejection.code.as_str());
                let headers = dead_letter_headers(own_headers(), record.topic, record.partition, record.offset, &rejection);
                self.publisher.publish(record, output, Some(headers), record.timestamp_ms, publications);
            }
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.published(&output.json, rejected, publications.due());
        }
        if let Some(signals) = &mut self.signals {
            signals.decided(&output.signals, publications);
        }
    }

    fn ask(&mut self, request_id: RequestId, question: Question) {
        if let Some(tracer) = &mut self.tracer {
            tracer.asked(request_id.partition, request_id.offset);
        }
        if let Some(signals) = &mut self.signals {
            signals.undecided(request_id.partition, request_id.offset);
        }
        self.servers.ask(question.provider, question.body, request_id, &self.sender);
    }

    fn response(&mut self) -> Option<(RequestId, Answer)> {
        let (request_id, answer) = self.answers.try_recv().ok()?;
        if let Some(tracer) = &mut self.tracer {
            tracer.answered(request_id.partition, request_id.offset);
        }
        Some((request_id, answer))
    }

    /// A key that is not the thread's id makes the record a dead letter.
    fn is_keyed_by_thread(&self, outcome: &Outcome) -> bool {
        !matches!(outcome, Outcome::DeadLetter(_))
    }

    fn timer(&mut self) -> Option<LocalHistogramTimer> {
        self.counts.timer()
    }

    fn acknowledged(&mut self, delivery: &Delivery, now_ms: i64) {
        // Nobody waits for signals.
        if delivery.role == Role::Signals {
            return;
        }
        self.counts.acknowledged(delivery, now_ms);
        if let Some(tracer) = &mut self.tracer {
            tracer.acknowledged(delivery.partition, delivery.offset);
        }
    }

    fn between_rounds(&mut self, late: &mut LatePublications<'_>) {
        if let Some(signals) = &mut self.signals {
            signals.between_rounds(late);
        }
    }

    fn held(&self) -> usize {
        self.signals.as_ref().map_or(0, Signals::held)
    }

    fn tick(&mut self, now: Instant) {
        if let Some(signals) = &mut self.signals {
            signals.tick(now);
        }
    }

    fn lag(&mut self, partition: Partition, records: i64) {
        if let Some(signals) = &mut self.signals {
            signals.lag(partition, records);
        }
    }

    fn flush(&mut self) {
        self.counts.flush();
        if let Some(tracer) = &mut self.tracer {
            tracer.expire();
        }
        if let Some(signals) = &mut self.signals {
            signals.flush();
        }
    }
}

/// Hands a record to the policy on trial. One that cannot be read is the same to both, and changes no state.
fn shadow_of(shadow: &mut ShadowFeed, record: &Record<'_>, outcome: &Outcome, thread_id: &str) {
    match outcome {
        Outcome::Verdict { decided, .. } => shadow.decided(record, thread_id, || Some(Decision::of(decided))),
        Outcome::Boundary(_) => shadow.decided(record, thread_id, || None),
        Outcome::DeadLetter(_) => {}
    }
}
