//! A watch on the number of partitions of the events topic while a worker runs.
//!
//! The group learns of new partitions only with the next refresh of its metadata, up to five minutes later. The watch says it within
//! seconds. The new partitions themselves are never taken: their state may still be on another partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaResult;

use crate::health::Health;
use crate::kafka::{PlainContext, StageTopics, consumer_config, make_consumer, partitions_of};
use crate::stop::Stop;
use crate::threads::MustRun;
use tollgate_config::settings::KafkaSettings;

use super::WorkerParts;
use super::preflight::{METADATA_TIMEOUT, PreflightError};

/// How often the brokers are asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// The part of the health report that says that the topic has grown.
const PARTITIONS: &str = "partitions";

/// The part of the health report that says that the watch sees nothing.
const BLIND: &str = "count";
/// How long the brokers may not say how many partitions there are before it is a problem.
const BLIND_MAX: Duration = Duration::from_secs(30);

/// What the watch has found.
#[derive(Debug, Clone)]
pub struct GrowthWatch {
    has_stopped_the_worker: Arc<AtomicBool>,
    part: Stop,
}

impl GrowthWatch {
    /// Returns whether the worker was stopped, because it could not have gone on with the partitions that it had.
    #[must_use]
    pub fn has_stopped_the_worker(&self) -> bool {
        self.has_stopped_the_worker.load(Ordering::Relaxed)
    }

    /// Returns the sign of the watch, which can be told to start over with another client.
    #[must_use]
    pub fn part(&self) -> &Stop {
        &self.part
    }
}

/// What a worker does when its topic has got more partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// There are as many as before.
    None,
    /// The threads of each partition stay on it or move to a new one: the worker goes on with those that it had.
    ToNewPartitions,
    /// Threads move between the partitions of before, where nothing would be known of them: the worker stops.
    AmongOldPartitions,
}

impl Growth {
    fn of(keyed_for: u32, known: u32, found: u32) -> Self {
        if found <= known {
            Self::None
        } else if keyed_for > 0 && found.is_multiple_of(keyed_for) {
            Self::ToNewPartitions
        } else {
            Self::AmongOldPartitions
        }
    }
}

/// Starts the watch, beside the members of a worker. `known` is the number of partitions that the topic has had, of which the worker may work
/// on some only.
///
/// # Errors
/// Returns [`PreflightError::Client`], or what the system says if it gives no more threads.
pub fn watch_growth(parts: &WorkerParts, stage: &StageTopics, known: u32) -> anyhow::Result<GrowthWatch> {
    let WorkerParts { kafka, topics, health, stop, .. } = parts;
    let client = client(kafka, stage).map_err(PreflightError::Client)?;
    let watch = GrowthWatch { has_stopped_the_worker: Arc::default(), part: stop.part() };
    let name = stage.stage.map_or_else(|| PARTITIONS.to_owned(), |stage| format!("{stage} {PARTITIONS}"));
    let guard = MustRun::new(name.clone(), health.threads(), stop);
    let mut watcher = Watcher {
        kafka: Arc::clone(kafka),
        stage: stage.clone(),
        name,
        keyed_for: topics.partitions,
        known,
        health: Arc::clone(health),
        watch: watch.clone(),
        answered_at: Instant::now(),
        is_blind: false,
    };
    guard.spawn(move || watcher.keep_watching(client))?;
    Ok(watch)
}

type Client = BaseConsumer<PlainContext>;

fn client(kafka: &KafkaSettings, stage: &StageTopics) -> KafkaResult<Client> {
    let mut config = consumer_config(kafka, &stage.group_id, None);
    // The watch says itself if it gets no answers.
    config.set("statistics.interval.ms", "0").set_log_level(RDKafkaLogLevel::Emerg);
    make_consumer(&config, PlainContext::default())
}

struct Watcher {
    kafka: Arc<KafkaSettings>,
    /// The stage whose input is watched.
    stage: StageTopics,
    /// The name of the watch, as the health report has it.
    name: String,
    keyed_for: u32,
    known: u32,
    health: Arc<Health>,
    watch: GrowthWatch,
    /// When the brokers last said how many partitions there are.
    answered_at: Instant,
    /// Whether that is too long ago, and was said.
    is_blind: bool,
}

impl Watcher {
    /// Asks until the sign to stop. When it is told to start over, the secrets have changed, and a client has those of when it was made.
    fn keep_watching(&mut self, first: Client) {
        let part = self.watch.part.clone();
        let mut made = Ok(first);
        while !part.is_for_good() {
            // Of a certificate and its key, one may have changed only, so a client that could not be made is tried again.
            if part.is_to_start_over() || made.is_err() {
                part.begin();
                made = client(&self.kafka, &self.stage);
            }
            let found = match &made {
                Ok(client) => {
                    // Errors are news too, and would gather.
                    while client.poll(Duration::ZERO).is_some() {}
                    partitions_of(client, &self.stage.input, METADATA_TIMEOUT)
                }
                Err(error) => Err(error.clone()),
            };
            self.take(found, Instant::now());
            // The sign to start over ends the wait as well.
            let _sign = part.wait(INTERVAL);
        }
    }

    fn blind(&self) -> String {
        format!("{} {BLIND}", self.name)
    }

    fn take(&mut self, found: KafkaResult<usize>, now: Instant) {
        match found {
            Ok(found) => {
                self.answered_at = now;
                if std::mem::take(&mut self.is_blind) {
                    self.health.set_problem(&self.blind(), None);
                    tracing::info!(topic = self.stage.input, "the brokers say again how many partitions the topic has");
                }
                self.judge(u32::try_from(found).unwrap_or(u32::MAX));
            }
            Err(error) if now.duration_since(self.answered_at) >= BLIND_MAX => {
                let problem = format!(
                    "the brokers have not said for {} s and more how many partitions topic {} has, so it would not be seen that it grows: {error}",
                    BLIND_MAX.as_secs(),
                    self.stage.input
                );
                if !std::mem::replace(&mut self.is_blind, true) {
                    tracing::error!("{problem}");
                }
                self.health.set_problem(&self.blind(), Some(problem));
            }
            Err(error) => tracing::debug!(%error, "how many partitions there are is unknown"),
        }
    }

    fn judge(&self, found: u32) {
        let growth = Growth::of(self.keyed_for, self.known, found);
        if self.stage.stage.is_some() {
            // Its workers have agreed on the number that they started with.
            if growth != Growth::None && self.health.set_problem(&self.name, Some(said_of_signals(&self.stage, self.known, found))) {
                tracing::error!("{}", said_of_signals(&self.stage, self.known, found));
            }
            return;
        }
        if growth != Growth::None {
            let said = said(&self.stage.input, self.known, found, growth);
            if self.health.set_problem(&self.name, Some(said.clone())) {
                tracing::error!("{said}");
            }
        }
        if growth == Growth::AmongOldPartitions {
            self.watch.has_stopped_the_worker.store(true, Ordering::Relaxed);
            self.watch.part.give();
        }
    }
}

/// Returns what is wrong where the signals topic has grown. What is known of subjects is not moved.
fn said_of_signals(stage: &StageTopics, known: u32, found: u32) -> String {
    format!(
        "topic {} has {found} partitions and had {known}: workers that start from now on would look for subjects elsewhere. Name new topics \
         for signals and for what is known of subjects (kafka.topics.signals, kafka.topics.abuse) before any worker starts anew",
        stage.input
    )
}

fn said(topic: &str, known: u32, found: u32, growth: Growth) -> String {
    let meanwhile = match growth {
        Growth::AmongOldPartitions => "threads hash to other partitions of these now, so the worker stops",
        Growth::ToNewPartitions | Growth::None => "the new ones are not decided, and the others go on",
    };
    format!(
        "topic {topic} has {found} partitions and had {known}: {meanwhile}. Once the old partitions are at lag 0, stop all workers of the \
         group, run `tollgate state rekey`, and start them again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::error::{KafkaError, RDKafkaErrorCode};
    use tollgate_core::settings::{defaults, parse};

    #[test]
    fn a_watch_that_gets_no_answers_is_a_problem_until_it_gets_one() {
        let user = parse("kafka: {topics: {events: e}}").unwrap();
        let kafka = Arc::new(tollgate_config::settings::Settings::read(&user, &defaults().unwrap()).unwrap().kafka);
        let (health, stop, start) = (Arc::new(Health::default()), Stop::default(), Instant::now());
        let watch = GrowthWatch { has_stopped_the_worker: Arc::default(), part: stop.part() };
        let mut watcher = Watcher {
            stage: StageTopics::of(&kafka),
            name: PARTITIONS.to_owned(),
            kafka,
            keyed_for: 2,
            known: 2,
            health: Arc::clone(&health),
            watch,
            answered_at: start,
            is_blind: false,
        };
        let timeout = || Err(KafkaError::MetadataFetch(RDKafkaErrorCode::OperationTimedOut));
        watcher.take(timeout(), start + Duration::from_secs(29));
        assert!(health.report().problems.is_empty());
        watcher.take(timeout(), start + Duration::from_secs(30));
        let [problem] = &health.report().problems[..] else { panic!("no problem") };
        assert!(problem.starts_with("the brokers have not said for 30 s and more how many partitions topic e has"), "{problem}");
        watcher.take(Ok(2), start + Duration::from_secs(31));
        watcher.take(timeout(), start + Duration::from_secs(60));
        assert!(health.report().problems.is_empty());
        watcher.take(Ok(3), start + Duration::from_secs(61));
        assert!(stop.is_given() && watcher.watch.has_stopped_the_worker());
    }

    #[test]
    fn a_multiple_moves_threads_to_new_partitions_only() {
        assert_eq!(Growth::of(12, 12, 12), Growth::None);
        assert_eq!(Growth::of(12, 12, 24), Growth::ToNewPartitions);
        assert_eq!(Growth::of(12, 12, 18), Growth::AmongOldPartitions);
        assert_eq!(Growth::of(12, 24, 24), Growth::None, "a worker that drains knows of them");
        assert_eq!(Growth::of(12, 24, 25), Growth::AmongOldPartitions);
        assert_eq!(Growth::of(12, 12, 0), Growth::None, "a topic that is gone is named by others");
    }
}
