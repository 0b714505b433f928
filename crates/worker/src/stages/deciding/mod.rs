//! The deciding stage in a worker: it publishes verdicts, replies and dead letters, asks policy servers, and counts all of it.

mod counts;
mod dead_letter;
mod headers;
mod observers;
mod publish;
mod reduce;
mod signals;

pub use counts::Counts;
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
use tollgate_core::decide::thread::{StoreLimits, ThreadStore};
use tollgate_core::event::record::{Offset, Partition, Record};

use crate::kafka::StageTopics;
use crate::metrics::Metrics;
use crate::outbox::{Delivery, LatePublications, OutboxTopics, Publications, Role};
use crate::policy_servers::PolicyServers;
use crate::shadow::{ShadowFeed, Trial};
use crate::traces::Traces;
use tollgate_config::settings::KafkaSettings;

use dead_letter::dead_letter_headers;
use observers::{Observed, Observer};
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
    let shared = Arc::default();
    StageSetup {
        topics: verdict_topics(kafka),
        output: verdict_output(kafka),
        reduce: Arc::new(move |delivery, returned| reduce(delivery, returned, &policy_version)),
        version,
        runtime: Box::new(move || {
            let tracer = traces.as_ref().map(|traces| Box::new(traces.tracer()) as Box<dyn Observer>);
            let shadow = trial.as_ref().map(|trial| Box::new(ShadowFeed::start(trial)) as Box<dyn Observer>);
            let signals = signals.clone().map(|topic| Box::new(Signals::new(topic, &metrics)) as Box<dyn Observer>);
            // The tracer is the first: signals are not among the acknowledgements that a span waits for.
            let observers = [tracer, shadow, signals].into_iter().flatten().collect();
            let (sender, answers) = channel();
            let (policy, servers, counts) = (Arc::clone(&policy), servers.clone(), Counts::new(&metrics, &shared));
            DecidingRuntime { policy, publisher: publisher.clone(), counts, servers, answers, sender, observers, last_taken: None }
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
    /// What watches the records, in a fixed order.
    observers: Vec<Box<dyn Observer>>,
    /// The record that was taken last.
    last_taken: Option<(Partition, Offset)>,
}

impl DecidingRuntime {
    fn observe(&mut self, tell: impl FnMut(&mut Box<dyn Observer>)) {
        self.observers.iter_mut().for_each(tell);
    }
}

impl StageRuntime for DecidingRuntime {
    type Stage = Deciding;

    fn stage(&self, partition: Partition, state: Option<ThreadStore>) -> Deciding {
        self.observers.iter().for_each(|observer| observer.partition_taken(partition, state.as_ref()));
        let policy = Arc::clone(&self.policy);
        match state {
            Some(threads) => Deciding::with_threads(policy, threads),
            None => Deciding::new(policy),
        }
    }

    fn partition_started(&mut self, partition: Partition, new_end: Option<Offset>) {
        self.observe(|observer| observer.partition_started(partition, new_end));
    }

    fn state_lost(&mut self, partition: Partition) {
        self.observe(|observer| observer.state_lost(partition));
    }

    fn partition_revoked(&mut self, partition: Partition) {
        self.observe(|observer| observer.partition_revoked(partition));
    }

    fn limits(&self) -> StoreLimits {
        self.policy.store_limits()
    }

    fn taken(&mut self, record: &Record<'_>) {
        self.last_taken = Some((record.partition, record.offset));
        self.observe(|observer| observer.taken(record));
    }

    fn waits(&mut self) {
        if let Some((partition, offset)) = self.last_taken {
            self.observe(|observer| observer.waits(partition, offset));
        }
    }

    fn publish(&mut self, done: Done<'_, Deciding>, publications: &mut Publications<'_>) {
        let Done { record, outcome, output, own_headers } = done;
        let observed = Observed { record, outcome: &outcome, output };
        self.observe(|observer| observer.decided(observed));
        match &outcome {
            Outcome::Boundary(event_type) => self.counts.event(*event_type),
            Outcome::Verdict { event_type, decided, time_ms } => {
                self.counts.event(*event_type);
                self.counts.verdict(decided, self.policy.guardrails(), &self.servers);
                self.publisher.publish(record, output, None, *time_ms, publications);
            }
            Outcome::DeadLetter(rejection) => {
                self.counts.unreadable(record, rejection, !output.thread_id.is_empty());
                let headers = dead_letter_headers(own_headers(), record.topic, record.partition, record.offset, rejection);
                self.publisher.publish(record, output, Some(headers), record.timestamp_ms, publications);
            }
        }
        self.observe(|observer| observer.published(observed, publications));
    }

    fn ask(&mut self, request_id: RequestId, question: Question) {
        self.observe(|observer| observer.asked(request_id.partition, request_id.offset));
        self.servers.ask(question.provider, question.body, request_id, &self.sender);
    }

    fn response(&mut self) -> Option<(RequestId, Answer)> {
        let (request_id, answer) = self.answers.try_recv().ok()?;
        self.observe(|observer| observer.answered(request_id.partition, request_id.offset));
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
        self.observe(|observer| observer.acknowledged(delivery.partition, delivery.offset));
    }

    fn between_rounds(&mut self, late: &mut LatePublications<'_>) {
        self.observe(|observer| observer.between_rounds(late));
    }

    fn held(&self) -> usize {
        self.observers.iter().map(|observer| observer.held()).sum()
    }

    fn tick(&mut self, now: Instant) {
        self.observe(|observer| observer.tick(now));
    }

    fn lag(&mut self, partition: Partition, records: i64) {
        self.observe(|observer| observer.lag(partition, records));
    }

    fn flush(&mut self) {
        self.counts.flush();
        self.observe(|observer| observer.flush());
    }
}
