//! A worker process: group members, each on a thread of its own, restarted when they fail.

mod embedded;
mod growth;
mod keying;
mod needs;
mod preflight;
mod preflight_error;
mod renewal;

pub use embedded::cluster_of_dev;
pub use growth::{GrowthWatch, watch_growth};
pub use keying::{check_keying, check_subject_keying};
pub use needs::Needs;
pub use preflight::{Preflight, check_configs, check_topics, check_transactions};
pub use preflight_error::PreflightError;
pub use renewal::{Renewal, RenewedParts};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::health::{Health, MemberPartitions, MemberPhase};
use crate::kafka::{ABUSE, StageTopics, silence_max, uses_consumer_protocol};
use crate::member::{Member, MemberError, MemberParts, Membership};
use crate::metrics::{Metrics, MetricsError};
use crate::peers::{Committers, Peers};
use crate::stages::{StageRuntime, StageSetup};
use crate::stop::Stop;
use crate::threads::MustRun;
use tollgate_config::settings::{KafkaSettings, WorkerSettings};

/// The longest pause before a failed member starts over.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);
/// A member that ran this long before it failed starts over with the shortest pause.
const RESTART_PAUSE_RESET: Duration = Duration::from_secs(60);

/// What a worker is made of, besides its stage.
#[derive(Debug, Clone)]
pub struct WorkerParts {
    /// The worker's name, in its reports and for the other workers of the group: see [`worker_name`](crate::control_feed::worker_name).
    pub worker: String,
    /// Brokers, group and topics.
    pub kafka: Arc<KafkaSettings>,
    /// The settings of the members.
    pub settings: WorkerSettings,
    /// What the check of the topics found.
    pub topics: Preflight,
    /// How members get their partitions.
    pub membership: Membership,
    /// The metrics to count in.
    pub metrics: Metrics,
    /// The health report that shows the members.
    pub health: Arc<Health>,
    /// The sign to stop.
    pub stop: Stop,
}

impl WorkerParts {
    /// Returns the same for the stage that counts signals: with the partitions of their topic, this many members, and metrics of its own.
    ///
    /// # Errors
    /// The list of metrics contradicts itself.
    pub fn for_abuse(&self, members: u32) -> Result<Self, MetricsError> {
        let topics = Preflight {
            partitions: self.topics.signal_partitions,
            // Its checkpoints are records of ours like the others.
            state_batch_bytes_max: self.topics.batch_bytes_max,
            ..self.topics
        };
        let settings = WorkerSettings { members: Some(members), ..self.settings.clone() };
        Ok(Self { topics, settings, metrics: self.metrics.for_stage(ABUSE)?, ..self.clone() })
    }
}

/// A running worker.
#[derive(Debug)]
pub struct Worker {
    members: Vec<JoinHandle<()>>,
    parts: Vec<Stop>,
}

impl Worker {
    /// Starts the members of a worker, each with the stage.
    ///
    /// # Errors
    /// The system gives no more threads.
    pub fn start<R: StageRuntime>(parts: &WorkerParts, stage: StageSetup<R>) -> std::io::Result<Self> {
        if stage.topics.stage.is_none() {
            parts.metrics.policy_info.with_label_values(&[&stage.version]).set(1);
        }
        parts.metrics.event_partitions.set(parts.topics.partitions.into());
        let count = match parts.membership {
            Membership::Group => parts.settings.members.map_or_else(cores, |members| members as usize),
            Membership::Alone => 1,
        };
        let stage = Arc::new(stage);
        let parts = member_parts(parts, &stage);
        let (mut members, mut own) = (Vec::with_capacity(count), Vec::with_capacity(count));
        own.extend(watch_peers(&parts, count)?);
        for number in 0..count {
            let part = parts.stop.part();
            let member = Member::new(number, MemberParts { stop: part.clone(), ..parts.clone() }, Arc::clone(&stage));
            parts.health.set(member.id(), MemberPhase::Starting, MemberPartitions::default());
            let (name, health, stop) = (member.id().thread(), Arc::clone(&parts.health), parts.stop.clone());
            members.push(MustRun::new(name, health.threads(), &stop).spawn(move || keep_running(&member))?);
            own.push(part);
        }
        Ok(Self { members, parts: own })
    }

    /// Returns the signs of the members, each of which can be told to start over.
    #[must_use]
    pub fn parts(&self) -> &[Stop] {
        &self.parts
    }

    /// Waits until every member has drained, committed and left.
    pub fn join(self) {
        for member in self.members {
            // A member that panicked has been reported by the panic itself.
            let _panicked = member.join();
        }
    }
}

/// Runs a member until the sign to stop, and starts it over with growing pauses when it fails.
fn keep_running<R: StageRuntime>(member: &Member<R>) {
    let parts = member.parts();
    let _log = parts.topics.enter_log();
    let mut pause = Duration::from_millis(500);
    let thread = member.id().thread();
    loop {
        let started = Instant::now();
        parts.stop.begin();
        parts.health.threads().recovered(&thread);
        let outcome = catch_unwind(AssertUnwindSafe(|| member.run())).unwrap_or(Err(MemberError::Panicked));
        match outcome {
            Ok(()) if parts.stop.is_for_good() => {
                return parts.health.set(member.id(), MemberPhase::Stopped, MemberPartitions::default());
            }
            // It was told to start over.
            Ok(()) => parts.health.set(member.id(), MemberPhase::Starting, MemberPartitions::default()),
            Err(error) => {
                if matches!(error, MemberError::Panicked) {
                    parts.health.threads().panicked(&thread);
                }
                parts.health.set(member.id(), MemberPhase::Failed, MemberPartitions::default());
                parts.metrics.member_restarts.inc();
                pause =
                    if started.elapsed() > RESTART_PAUSE_RESET { Duration::from_millis(500) } else { (pause * 2).min(RESTART_PAUSE_MAX) };
                let pause_ms = pause.as_millis();
                if let Some(right) = member.right_wanted(&error) {
                    right.report_refused(&parts.health, &parts.kafka);
                    tracing::debug!(member = %member.id(), %error, pause_ms, "member failed for want of a right; it starts over");
                } else {
                    tracing::error!(member = %member.id(), %error, pause_ms, "member failed; it starts over from the committed offsets");
                }
                if parts.stop.wait(pause) && parts.stop.is_for_good() {
                    return;
                }
            }
        }
    }
}

/// Returns whether the workers of a group watch each other. With KIP-848 no member can take the place of another, so it would be of no use.
fn are_watched(membership: Membership, kafka: &KafkaSettings) -> bool {
    membership == Membership::Group && !uses_consumer_protocol(kafka)
}

/// Starts to watch the other workers of the group, if they watch each other. Returns the sign of the watch.
fn watch_peers(parts: &MemberParts, members: usize) -> std::io::Result<Option<Stop>> {
    let Some(worker) = parts.worker.clone().filter(|_| are_watched(parts.membership, &parts.kafka)) else { return Ok(None) };
    let stop = parts.stop.part();
    let peers = Peers {
        kafka: Arc::clone(&parts.kafka),
        topics: Arc::clone(&parts.topics),
        worker,
        members,
        silence_max: silence_max(&parts.kafka),
        committers: parts.committers.clone(),
        health: Arc::clone(&parts.health),
        stop: stop.clone(),
    };
    let name = parts.topics.stage.map_or_else(|| "peers".to_owned(), |stage| format!("{stage}-peers"));
    MustRun::new(name, parts.health.threads(), &parts.stop).spawn(move || {
        let _log = peers.topics.enter_log();
        peers.run();
    })?;
    Ok(Some(stop))
}

/// Returns the name that the members of a worker have in the group, if they are static members: as configured, or because peers need a name.
fn static_name(parts: &WorkerParts) -> Option<String> {
    let is_static = parts.settings.instance_id.is_some() || are_watched(parts.membership, &parts.kafka);
    is_static.then(|| parts.worker.clone())
}

fn member_parts<R>(parts: &WorkerParts, stage: &StageSetup<R>) -> MemberParts {
    MemberParts {
        kafka: Arc::clone(&parts.kafka),
        topics: Arc::new(StageTopics { partitions: Some(parts.topics.partitions), ..(*stage.topics).clone() }),
        settings: parts.settings.clone(),
        membership: parts.membership,
        partition_count: parts.topics.partitions,
        batch_bytes_max: parts.topics.batch_bytes_max,
        state_batch_bytes_max: parts.topics.state_batch_bytes_max,
        checkpoint_interval: match parts.membership {
            Membership::Group => Some(Duration::from_millis(parts.settings.checkpoint_interval_ms.into())),
            Membership::Alone => None,
        },
        metrics: parts.metrics.clone(),
        misplaced: Arc::default(),
        health: Arc::clone(&parts.health),
        worker: static_name(parts),
        committers: Committers::default(),
        stop: parts.stop.clone(),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
