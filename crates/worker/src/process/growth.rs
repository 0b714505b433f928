//! A watch on the brokers while a worker runs: whether those answer that lead the worker's partitions, and how many partitions the events
//! topic has.
//!
//! The group learns of new partitions only with the next refresh of its metadata, up to five minutes later. The watch says it within
//! seconds. The new partitions themselves are never taken: their state may still be on another partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaResult;

use crate::health::Health;
use crate::host_time::now_ms;
use crate::kafka::{Inquirer, StageTopics, Watch, consumer_config, is_forbidden, leaderless, partitions_of, reach_leaders};
use crate::logging::OncePerMinute;
use crate::stop::Stop;
use crate::threads::MustRun;
use tollgate_config::settings::KafkaSettings;
use tollgate_json::time::rfc_3339;

use super::WorkerParts;
use super::preflight_error::PreflightError;

/// How often the brokers are asked.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long each of two questions may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long brokers are silent before another client asks them: librdkafka may not notice that they are back.
const CLIENT_SILENCE_MAX: Duration = Duration::from_secs(30);
/// The part of the health report that says that the topic has grown.
const PARTITIONS: &str = "partitions";

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
        silent: None,
        lines: OncePerMinute::default(),
    };
    guard.spawn(move || {
        let _log = watcher.stage.enter_log();
        watcher.keep_watching(client);
    })?;
    Ok(watch)
}

fn client(kafka: &KafkaSettings, stage: &StageTopics) -> KafkaResult<Inquirer> {
    let mut config = consumer_config(kafka, &stage.group_id, None);
    // A broker that hangs is named as soon as a request is over. librdkafka wants a second more than a fetch may wait.
    config.set("fetch.wait.max.ms", "10").set("socket.timeout.ms", "1010");
    Inquirer::new(config)
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
    /// Since when the brokers do not answer.
    silent: Option<String>,
    /// The log lines that say so.
    lines: OncePerMinute<()>,
}

impl Watcher {
    /// Asks until the sign to stop. When it is told to start over, the secrets have changed, and a client has those of when it was made.
    fn keep_watching(&mut self, first: Inquirer) {
        let part = self.watch.part.clone();
        let (mut made, mut is_new, mut made_at) = (Ok(first), true, Instant::now());
        while !part.is_for_good() {
            // Of a certificate and its key, one may have changed only, so a client that could not be made is tried again.
            let may_hang = self.silent.is_some() && made_at.elapsed() >= CLIENT_SILENCE_MAX;
            if part.is_to_start_over() || made.is_err() || may_hang {
                part.begin();
                (made, is_new, made_at) = (client(&self.kafka, &self.stage), true, Instant::now());
            }
            match &made {
                Ok(client) => {
                    let Some(found) = self.ask(client) else { continue };
                    if found.is_ok() {
                        client.forget_reasons();
                    }
                    // A new client has to connect and to log in first.
                    if found.is_ok() || !std::mem::take(&mut is_new) {
                        self.take(found, Instant::now());
                    }
                }
                Err(error) => self.take(Err(error.to_string()), Instant::now()),
            }
            // The sign to start over ends the wait as well.
            let _sign = part.wait(INTERVAL);
        }
        // Closing it would wait for brokers that are away.
        made.iter().for_each(Inquirer::abandon);
    }

    /// Asks how many partitions there are, and whether the leaders of those that are held answer. Returns why there is no answer, or `None` at
    /// the sign to stop.
    fn ask(&self, client: &Inquirer) -> Option<Result<usize, String>> {
        let (input, mut topics) = (self.stage.input.clone(), vec![self.stage.input.clone()]);
        // A verdict waits for the leader of its own partition too.
        topics.extend(self.stage.stage.is_none().then(|| self.kafka.topics.decisions.clone()));
        let held: Vec<_> = self.health.held(self.stage.stage).into_iter().map(|(_, partition)| partition).collect();
        let watch = &mut Watch { is_wanted: &|| !self.watch.part.is_given(), say: &mut |_| {} };
        let found = client.ask(watch, move |client| {
            let count = partitions_of(client, &input, TIMEOUT)?;
            let reached = match reach_leaders(client, &topics, &held, TIMEOUT) {
                Ok(true) => return Ok(Ok(count)),
                // Others name a right that is wanting.
                Err(error) if is_forbidden(&error) => return Ok(Ok(count)),
                reached => reached,
            };
            match leaderless(client.client(), &topics, |partition| held.contains(&partition), TIMEOUT)? {
                Some(said) => Ok(Err(said)),
                None => reached.map(|_| Ok(count)),
            }
        })?;
        Some(found.unwrap_or_else(|error| Err(client.last_reason().map_or_else(|| error.to_string(), |reason| reason.to_string()))))
    }

    fn take(&mut self, found: Result<usize, String>, now: Instant) {
        let topic = self.stage.input.as_str();
        let reason = match found {
            Ok(found) => {
                if let Some(since) = self.silent.take() {
                    self.lines.forget(&());
                    self.health.set_cut_off(self.stage.stage, None);
                    tracing::info!(topic, since, "the brokers answer again");
                }
                return self.judge(u32::try_from(found).unwrap_or(u32::MAX));
            }
            Err(reason) => reason,
        };
        let since = self.silent.get_or_insert_with(|| rfc_3339(now_ms()).unwrap_or_default());
        let brokers = self.kafka.shown_brokers();
        let problem = format!("no answer about topic {topic} since {since} from the brokers at {brokers}: {reason}");
        self.health.set_cut_off(self.stage.stage, Some(problem.clone()));
        if self.lines.count((), now).is_some() {
            tracing::error!("{problem}");
        }
    }

    fn judge(&self, found: u32) {
        let growth = Growth::of(self.keyed_for, self.known, found);
        if growth == Growth::None {
            return;
        }
        let counts_signals = self.stage.stage.is_some();
        let of_events = || said(&self.stage.input, self.known, found, growth);
        let said = if counts_signals { said_of_signals(&self.stage, self.known, found) } else { of_events() };
        if self.health.set_problem(&self.name, Some(said.clone())) {
            tracing::error!("{said}");
        }
        // The workers that count signals have agreed on the number that they started with.
        if growth == Growth::AmongOldPartitions && !counts_signals {
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
            silent: None,
            lines: OncePerMinute::default(),
        };
        let refused = || Err("b:1: Connection refused".to_owned());
        watcher.take(Ok(2), start);
        assert!(health.report().problems.is_empty());
        watcher.take(refused(), start);
        let first = health.report().problems;
        let [problem] = &first[..] else { panic!("no problem") };
        assert!(problem.starts_with("no answer about topic e since 2") && problem.ends_with("b:1: Connection refused"), "{problem}");
        assert!(health.is_cut_off(None) && !health.is_cut_off(Some("abuse")));
        watcher.take(refused(), start + Duration::from_secs(60));
        assert_eq!(health.report().problems, first, "it keeps its beginning");
        watcher.take(Ok(2), start + Duration::from_secs(60));
        assert!(health.report().problems.is_empty());
        watcher.take(Ok(3), start + Duration::from_secs(60));
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
