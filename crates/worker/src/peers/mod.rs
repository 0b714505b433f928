//! The workers of a group watch each other, so that a worker that died costs seconds.
//!
//! The group itself misses a member when its session is over. Brokers allow no session below 6 s (`group.min.session.timeout.ms`), and a
//! session has to outlast the replacement of a coordinator, which takes longer. So each worker writes a beat several times a second, and the
//! others remove the members of a worker whose beat stands still. A worker that is removed by mistake joins again: the fencing of its state
//! makes that safe, and it costs a restore.
//!
//! | module | what it does |
//! |---|---|
//! | `beat` | a worker's beat: the metadata of the group's offsets on the state topic, which names the owner of each partition |
//! | `silence` | whose beat has stood still for too long |
//! | `removal` | removes the members of a worker from the group |

mod beat;
mod removal;
mod silence;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaResult;

use tollgate_config::settings::KafkaSettings;

use crate::health::Health;
use crate::host_time::now_ms;
use crate::kafka::{PlainContext, SILENCE_MAX, StageTopics, asker_config, make_consumer};
use crate::stop::Stop;

pub(crate) use beat::instance_id;
use beat::{Beat, Beats};
use silence::Silence;

/// How many beats a worker writes until its peers take it for dead.
const BEATS_PER_TIMEOUT: u32 = 16;
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Returns how often a worker writes its beat. While a roll-out raises the session, its peers may still take it for dead after the default.
fn interval(silence_max: Duration) -> Duration {
    silence_max.min(SILENCE_MAX) / BEATS_PER_TIMEOUT
}

/// Commits offsets in the name of a member.
type Commit = Box<dyn Fn(&TopicPartitionList) -> KafkaResult<()> + Send>;

/// The members of a worker in whose name offsets can be committed. Clones share them.
#[derive(Clone, Default)]
pub struct Committers(Arc<Mutex<BTreeMap<usize, Commit>>>);

impl std::fmt::Debug for Committers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Committers").field(&self.members().keys()).finish()
    }
}

impl Committers {
    /// Adds a member, until the guard is dropped.
    #[must_use]
    pub fn add(&self, number: usize, commit: impl Fn(&TopicPartitionList) -> KafkaResult<()> + Send + 'static) -> Committing {
        self.members().insert(number, Box::new(commit));
        Committing { all: self.clone(), number }
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<usize, Commit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A member in whose name offsets can be committed.
#[derive(Debug)]
pub struct Committing {
    all: Committers,
    number: usize,
}

impl Drop for Committing {
    fn drop(&mut self) {
        self.all.members().remove(&self.number);
    }
}

/// What writes the beat of a worker, and watches those of its peers.
#[derive(Debug)]
pub struct Peers {
    /// Brokers and their properties.
    pub kafka: Arc<KafkaSettings>,
    /// The group, the input topic and the state topic.
    pub topics: Arc<StageTopics>,
    /// The name of this worker, to which its members add their numbers.
    pub worker: String,
    /// How many members the worker has.
    pub members: usize,
    /// How long a worker may be silent before its peers take it for dead.
    pub silence_max: Duration,
    /// The members in whose name the beat is written.
    pub committers: Committers,
    /// The health report, which knows the partitions of the members.
    pub health: Arc<Health>,
    /// The sign to stop, and to make the client anew.
    pub stop: Stop,
}

impl Peers {
    /// Writes beats and watches, until the sign to stop was given and no member is at work any more.
    pub fn run(&self) {
        while !self.is_over() {
            self.stop.begin();
            match make_consumer(&asker_config(&self.kafka, &self.topics.group_id), PlainContext::default()) {
                Ok(client) => self.watch(&client),
                // Of a certificate and its key, one may have changed only.
                Err(error) => tracing::debug!(%error, "no client to watch the peers with"),
            }
            self.pause();
        }
    }

    fn is_over(&self) -> bool {
        self.stop.is_for_good() && self.committers.members().is_empty()
    }

    fn interval(&self) -> Duration {
        interval(self.silence_max)
    }

    fn pause(&self) {
        // A worker that drains is not dead, so its beat goes on behind the sign to stop.
        if self.stop.wait(self.interval()) && self.stop.is_for_good() {
            std::thread::sleep(self.interval().min(TIMEOUT));
        }
    }

    fn watch(&self, client: &BaseConsumer<PlainContext>) {
        let (mut silence, mut before) = (Silence::new(&self.worker, self.silence_max), Instant::now());
        while !self.is_over() && !self.stop.is_to_start_over() {
            // Nothing is assigned, so only events come.
            while client.poll(Duration::ZERO).is_some() {}
            // While the coordinator is away nobody's beat comes through, and that time does not count.
            match Beats::read(client, &self.topics, TIMEOUT) {
                Ok(beats) => {
                    let since = Instant::now().duration_since(std::mem::replace(&mut before, Instant::now()));
                    self.beat(&beats);
                    // Nor does a time in which this worker itself stood still.
                    let is_assigned = self.health.is_assigned(self.topics.stage);
                    for dead in silence.observe(&beats, is_assigned, since.min(self.interval() * 2)) {
                        self.remove(&dead);
                    }
                }
                Err(error) => tracing::debug!(%error, "the beats of the peers are unknown"),
            }
            self.pause();
        }
    }

    /// Names this worker as the owner of each partition that it holds, and moves its beat.
    fn beat(&self, beats: &Beats) {
        let held = self.health.held(self.topics.stage);
        let members = self.committers.members();
        let Some(commit) = held.first().and_then(|(number, _)| members.get(number)) else { return };
        let beat = Beat { moment_ms: now_ms(), members: self.members, worker: self.worker.clone() };
        let partitions = held.iter().map(|(_, partition)| *partition);
        if let Err(error) = beats.offsets_to_commit(&self.topics, &beat, partitions).and_then(|list| commit(&list)) {
            tracing::debug!(%error, "no beat");
        }
    }

    fn remove(&self, dead: &Beat) {
        let (worker, silence_max_ms) = (&dead.worker, self.silence_max.as_millis());
        tracing::warn!(
            group = self.topics.group_id,
            worker,
            silence_max_ms,
            "a worker is silent, so its members are removed from the group, and others take its partitions over"
        );
        if let Err(error) = removal::remove(&self.kafka, &self.topics, dead, &self.stop) {
            tracing::warn!(group = self.topics.group_id, worker, %error, "its members could not be removed; trying again");
        }
    }
}
