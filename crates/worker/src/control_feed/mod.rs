//! The feed of controls: one thread per process reads the whole controls topic, in no consumer group, and applies every change to the
//! shared table at once.
//!
//! Members decide nothing before the table has caught up with the end that the topic had at start. Restrictions that an open transaction hides
//! count at once; a worker that starts waits for the end of the transaction, and names it. After that the table is never emptied:
//! while the brokers are away, what was last known stays in force, and a metric shows how long they have been silent. Partitions that are
//! added to the topic later are read after a restart. A worker reports in the same topic how far it has come.

mod client;
mod error;
mod hidden;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::health::Health;
use crate::host_time::now_ms;
use crate::kafka::{Context, Right, is_unreachable, make_consumer, partitions_of};
use crate::logging::OncePerMinute;
use crate::metrics::Metrics;
use crate::process::WorkerParts;
use crate::stop::Stop;
use crate::threads::MustRun;
use tollgate_config::settings::KafkaSettings;
use tollgate_core::decide::controls::{ControlRejection, Controls};
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::event::record::Partition;

use client::{FeedCallbacks, feed_config};
use error::FeedError;
use hidden::{Hidden, HiddenReader};
use report::Reporter;
pub use report::{WorkerReport, host_name, worker_name};

/// How long to wait for a record at a time. A record that comes ends the wait.
const POLL: Duration = Duration::from_millis(50);
/// How long one request to the brokers may take.
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);
/// The first pause before a feed that failed starts over; each is twice the one before.
const RESTART_PAUSE_MIN: Duration = Duration::from_millis(250);
/// The longest pause before a feed that failed starts over.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How often to check whether the table has caught up.
const CAUGHT_UP_POLL: Duration = Duration::from_millis(2);
/// How often to warn that it has not caught up.
const WAITING_INTERVAL: Duration = Duration::from_secs(5);
/// How often to look at what is hidden.
const SERVE_INTERVAL: Duration = Duration::from_millis(10);
/// From which age on a hidden record is told of: transactions of a moment are usual.
const HIDDEN_MS_MIN: i64 = 1_000;

/// The name of the thread.
const THREAD: &str = "controls";

/// What a feed is made of.
#[derive(Debug, Clone)]
pub struct FeedParts {
    /// The name under which the worker reports: see [`worker_name`].
    pub worker: String,
    /// Brokers and topics.
    pub kafka: Arc<KafkaSettings>,
    /// The table that changes are applied to.
    pub controls: Arc<Controls>,
    /// Whether one of the worker's guardrail providers reads the passports of the table.
    pub reads_passports: bool,
    /// The metrics to count in.
    pub metrics: Metrics,
    /// The health report that shows whether the table has caught up.
    pub health: Arc<Health>,
    /// The sign to stop.
    pub stop: Stop,
}

impl FeedParts {
    /// Returns the parts of the feed of a worker, which is to apply to these controls. `reads_passports` says whether its policy reads the passports
    /// among them.
    #[must_use]
    pub fn of(worker: &WorkerParts, controls: Arc<Controls>, reads_passports: bool) -> Self {
        let WorkerParts { worker, kafka, metrics, health, stop, .. } = worker.clone();
        Self { worker, kafka, controls, reads_passports, metrics, health, stop }
    }
}

/// A running feed.
#[derive(Debug)]
pub struct ControlFeed {
    parts: FeedParts,
    part: Stop,
    thread: JoinHandle<()>,
}

impl ControlFeed {
    /// Starts the thread that reads the controls.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start(parts: FeedParts) -> std::io::Result<Self> {
        parts.health.set_controls(false);
        let part = parts.stop.part();
        let own = FeedParts { stop: part.clone(), ..parts.clone() };
        let mut feed =
            Feed { parts: own, next: BTreeMap::new(), is_caught_up: false, last_contact: Instant::now(), warned: OncePerMinute::default() };
        let thread = MustRun::new(THREAD, parts.health.threads(), &parts.stop).spawn(move || feed.keep_running())?;
        Ok(Self { parts, part, thread })
    }

    /// Returns the sign of the feed, which can be told to start over.
    #[must_use]
    pub fn part(&self) -> &Stop {
        &self.part
    }

    /// Waits until everything that was in the topic at start has been applied. Returns `false` if the sign to stop came first.
    pub async fn caught_up(&self) -> bool {
        let FeedParts { kafka, health, stop, .. } = &self.parts;
        let mut reported = Instant::now();
        while !health.has_caught_up() {
            if stop.is_given() {
                return false;
            }
            tokio::time::sleep(CAUGHT_UP_POLL).await;
            if reported.elapsed() > WAITING_INTERVAL {
                reported = Instant::now();
                let hidden = health.controls_hidden().unwrap_or_default();
                tracing::warn!(
                    topic = kafka.topics.controls,
                    hidden,
                    "the controls are not read to their end yet; nothing is decided before"
                );
            }
        }
        true
    }

    /// Waits until the feed has ended, which it does at the sign to stop.
    pub fn join(self) {
        // A feed that panicked has been reported by the panic itself.
        let _panicked = self.thread.join();
    }
}

struct Feed {
    parts: FeedParts,
    /// The next offset of every partition. A feed that starts over must not apply old values over new ones.
    next: BTreeMap<i32, i64>,
    is_caught_up: bool,
    /// When the brokers last answered.
    last_contact: Instant,
    /// When a warning was last logged that records are hidden; `None` while there are none.
    warned: OncePerMinute<()>,
}

impl Feed {
    fn keep_running(&mut self) {
        let mut pause = RESTART_PAUSE_MIN;
        while !self.parts.stop.is_for_good() {
            self.parts.stop.begin();
            self.parts.health.threads().recovered(THREAD);
            let started = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| self.run())).unwrap_or(Err(FeedError::Panicked));
            // Without an error it was told to stop, or to start over.
            let Err(error) = outcome else { continue };
            if matches!(error, FeedError::Panicked) {
                self.parts.health.threads().panicked(THREAD);
            }
            pause = if started.elapsed() > RESTART_PAUSE_MAX { RESTART_PAUSE_MIN } else { (pause * 2).min(RESTART_PAUSE_MAX) };
            let right = error.right_wanted(&self.parts.kafka);
            if let Some(right) = &right {
                right.report_refused(&self.parts.health, &self.parts.kafka);
            } else {
                tracing::error!(%error, pause_ms = pause.as_millis(), "reading the controls failed; what was last known stays in force");
            }
            if error.is_missing() && !self.next.is_empty() {
                tracing::warn!(
                    topic = self.parts.kafka.topics.controls,
                    "a topic of this name is read from its beginning when it is there again"
                );
                self.next.clear();
            }
            let stale = self.last_contact.elapsed().as_secs();
            self.parts.metrics.controls_stale_seconds.set(i64::try_from(stale).unwrap_or(i64::MAX));
            let warning =
                format!("reading the controls fails ({error}): what was last known stays in force, and no new control reaches this worker");
            self.parts.health.set_warning(THREAD, Some(warning));
            self.parts.metrics.control_feed_restarts.inc();
            self.parts.health.beat_controls();
            let _is_over = self.parts.stop.wait(pause);
        }
        self.parts.health.end_controls();
    }

    fn run(&mut self) -> Result<(), FeedError> {
        let FeedParts { kafka, metrics, stop, health, .. } = self.parts.clone();
        let topic = kafka.topics.controls.as_str();
        let context = Context(FeedCallbacks::new(topic, metrics, self.last_contact));
        let consumer: BaseConsumer<Context<FeedCallbacks>> = make_consumer(&feed_config(&kafka), context).map_err(FeedError::Client)?;
        let count = match partitions_of(&consumer, topic, METADATA_TIMEOUT)? {
            0 => return Err(FeedError::Missing(topic.to_owned())),
            count => i32::try_from(count).unwrap_or(i32::MAX),
        };
        consumer.assign(&starts(topic, count, &self.next)?)?;
        let mut unread: BTreeSet<i32> = (0..count).collect();
        // It begins where the feed has come to, once that is the end of what is committed.
        let mut hidden: Option<HiddenReader> = None;
        let mut served = Instant::now();
        let mut reporter = Reporter::new(&kafka).map_err(FeedError::Client)?;
        while !stop.is_given() {
            health.beat_controls();
            fail::fail_point!("controls");
            match consumer.poll(POLL) {
                Some(Ok(message)) => {
                    if self.apply(&message) {
                        reporter.set_due();
                    }
                    if let Some(hidden) = &mut hidden {
                        hidden.settle(&self.parts.controls, message.partition(), message.offset() + 1);
                    }
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    unread.remove(&partition);
                    if unread.is_empty() {
                        Right::read(topic).report_granted(&health);
                        health.set_warning(THREAD, None);
                    }
                }
                // librdkafka recovers by itself when the brokers do, and logs it elsewhere.
                Some(Err(KafkaError::MessageConsumption(code))) if is_unreachable(code) => tracing::debug!(%code, "controls"),
                // If the topic is gone or forbidden, the feed would go on without any new controls and without a sign of it.
                Some(Err(error)) => return Err(error.into()),
                None => {}
            }
            self.last_contact = consumer.context().last_contact();
            if unread.is_empty() && hidden.is_none() {
                hidden = Some(HiddenReader::start(&kafka, topic, count, &self.next)?);
            }
            if let Some(hidden) = hidden.as_mut().filter(|_| served.elapsed() >= SERVE_INTERVAL) {
                served = Instant::now();
                if self.serve_hidden(hidden, consumer.context().take_settled())? {
                    reporter.set_due();
                }
                if self.is_caught_up {
                    reporter.serve(&self.parts, || (0..count).map(|partition| hidden.read(partition, &self.next)).collect());
                }
            }
        }
        if stop.is_for_good() {
            reporter.take_back(&self.parts);
        }
        Ok(())
    }

    /// Lets what is hidden count as far as it restricts, and forgets what stands in front of the `settled` offsets. Returns whether a
    /// restriction has come.
    fn serve_hidden(&mut self, hidden: &mut HiddenReader, settled: BTreeMap<i32, i64>) -> Result<bool, FeedError> {
        let controls = Arc::clone(&self.parts.controls);
        settled.into_iter().for_each(|(partition, next)| hidden.settle(&controls, partition, next));
        let restricts = hidden.serve(&controls, &self.next)?;
        if restricts {
            tracing::info!(topic = self.parts.kafka.topics.controls, "a restriction counts that is not committed yet");
        }
        self.report_hidden(hidden.oldest());
        if hidden.has_reached_end() && hidden.oldest().is_none() {
            self.set_caught_up();
        }
        Ok(restricts)
    }

    /// Shows since when records are hidden, and logs it once a minute.
    fn report_hidden(&mut self, hidden: Option<Hidden>) {
        let FeedParts { kafka, metrics, health, .. } = &self.parts;
        let age_ms = hidden.map(|hidden| now_ms().saturating_sub(hidden.since_ms).max(0));
        metrics.controls_hidden_seconds.set(age_ms.unwrap_or_default() / 1_000);
        let shown = hidden.zip(age_ms).filter(|(_, age_ms)| *age_ms >= HIDDEN_MS_MIN).map(|(Hidden { partition, offset, .. }, age_ms)| {
            let (topic, seconds) = (&kafka.topics.controls, age_ms / 1_000);
            format!("an open transaction hides {topic} from partition {partition}, offset {offset} on, since {seconds} s: what permits there waits for its end")
        });
        match &shown {
            Some(sentence) if self.warned.count((), Instant::now()).is_some() => tracing::warn!("{sentence}"),
            None if self.warned.forget(&()) => {
                tracing::info!(topic = kafka.topics.controls, "no transaction hides controls any more");
            }
            _ => {}
        }
        health.set_controls_hidden(shown);
    }

    fn set_caught_up(&mut self) {
        if std::mem::replace(&mut self.is_caught_up, true) {
            return;
        }
        let controls = &self.parts.controls;
        let (passports, subjects) = (controls.passport_count(), suspended_count(controls));
        tracing::info!(topic = self.parts.kafka.topics.controls, passports, subjects, "the controls are read to their end");
        self.update_gauges();
        self.parts.health.set_controls(true);
    }

    /// Applies a record. Returns whether it is a control of an operator, who may wait for it.
    fn apply(&mut self, message: &BorrowedMessage<'_>) -> bool {
        let FeedParts { controls, metrics, .. } = &self.parts;
        let (topic, partition, offset) = (message.topic(), message.partition(), message.offset());
        let is_operators = match controls.apply_from(Partition(partition), message.key(), message.payload()) {
            Ok(change) if change.control_type == "note" => false,
            Ok(change) => {
                metrics.controls_applied.with_label_values(&[change.control_type]).inc();
                // Until then the table only catches up with controls that came into force long ago.
                if self.is_caught_up {
                    self.update_gauges();
                    let delay_ms = message.timestamp().to_millis().map(|written| (now_ms() - written).max(0));
                    if let Some(delay_ms) = delay_ms {
                        metrics.control_delay.observe(delay_ms as f64 / 1e3);
                    }
                    tracing::info!(topic, partition, offset, control = change.control_type, effect = ?change.effect, delay_ms, "a control was applied");
                }
                change.is_operators
            }
            Err(rejection) => {
                metrics.control_rejections.with_label_values(&[rejection.code.as_str()]).inc();
                tracing::error!(
                    topic,
                    partition,
                    offset,
                    code = rejection.code.as_str(),
                    field = rejection.field,
                    found = rejection.found,
                    fix = rejection.fix,
                    "a control record was refused: {}",
                    effect(&rejection)
                );
                if self.is_caught_up {
                    self.update_gauges();
                }
                false
            }
        };
        self.next.insert(partition, offset + 1);
        is_operators
    }

    /// Sets the gauges of how many controls are in force.
    fn update_gauges(&self) {
        let FeedParts { controls, metrics, .. } = &self.parts;
        for (control_type, count) in [("passport", controls.passport_count()), ("subject", suspended_count(controls))] {
            metrics.controls.with_label_values(&[control_type]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

/// Returns what a refused record brings about, in words.
fn effect(rejection: &ControlRejection) -> &'static str {
    if rejection.code.is_of_key() {
        "its key names no control, so that nothing changes"
    } else {
        "whom its key names is suspended without end, or denied every call, until the record is written anew"
    }
}

/// Returns where to start in each of so many partitions: at its next offset, or at its beginning where there is none.
fn starts(topic: &str, count: i32, next: &BTreeMap<i32, i64>) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    for partition in 0..count {
        let start = next.get(&partition).map_or(KafkaOffset::Beginning, |next| KafkaOffset::Offset(*next));
        list.add_partition_offset(topic, partition, start)?;
    }
    Ok(list)
}

/// Returns how many subjects are suspended.
fn suspended_count(controls: &Controls) -> usize {
    SubjectKind::ALL.into_iter().map(|kind| controls.suspended_count(kind)).sum()
}
