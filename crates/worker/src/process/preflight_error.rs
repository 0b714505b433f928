//! Why a worker cannot join, with what to do about it.

use std::time::Duration;

use rdkafka::error::KafkaError;

use tollgate_config::topics::TopicFault;

use crate::partition::RestoreError;

/// How long to wait before unreachable brokers are asked again.
pub(super) const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Why a worker cannot join.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// A property of the client is wrong.
    #[error("kafka.properties: {0}")]
    Client(KafkaError),
    /// The brokers refuse rights without which a worker cannot work.
    #[error("{}", .refusals.join("\n"))]
    Forbidden {
        /// Each right that is wanting, with the command that grants it.
        refusals: Vec<String>,
    },
    /// The topics are not as a worker needs them.
    #[error(transparent)]
    Topics(#[from] TopicFault),
    /// The state is keyed for another number of partitions than there are.
    #[error(transparent)]
    Keyed(#[from] KeyedOtherwise),
    /// The state topic holds something that is not state.
    #[error("topic {topic}: {error}")]
    State {
        /// The topic.
        topic: String,
        /// What is wrong.
        error: RestoreError,
    },
    /// The brokers are the embedded broker of a `tollgate dev` that does the work of the group.
    #[error(
        "the broker at {brokers} (kafka.brokers) is that of a running `tollgate dev`, which decides for group {group_id} itself: with this worker every event would be decided twice. End that process, or name other brokers"
    )]
    Dev {
        /// The brokers.
        brokers: String,
        /// The group.
        group_id: String,
    },
    /// The sign to stop came before the brokers answered.
    #[error("stopped before the brokers at {0} could be reached")]
    Stopped(String),
}

/// The state topic, the events topic, and the numbers of partitions that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// The state topic.
    pub state: String,
    /// The events topic.
    pub events: String,
    /// For how many partitions the state is keyed.
    pub found: u32,
    /// How many partitions the events topic has.
    pub wanted: u32,
}

/// How the state is keyed, if it is not for as many partitions as there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyedOtherwise {
    /// It is keyed for another number.
    #[error(
        "the state in {state} is keyed for {found} partitions, and {events} has {wanted}: threads that now hash elsewhere would start without what is known of them, suppressions included. Stop all workers of the group, run `tollgate state rekey`, and start them again. Events of before the change are decided first, with `tollgate run --drain-partitions {found}`",
        state = .0.state, events = .0.events, found = .0.found, wanted = .0.wanted
    )]
    Other(Counts),
    /// It is being moved.
    #[error(
        "the state in {state} is being moved from {found} to {wanted} partitions: wait until `tollgate state rekey --execute` has ended, or run it again if it was interrupted",
        state = .0.state, found = .0.found, wanted = .0.wanted
    )]
    Moving(Counts),
    /// Some partitions say one number, and others another one.
    #[error(
        "some partitions of {state} are keyed for {found} partitions, and some for {other}: it is not what tollgate left there; restore the topic, or recreate it and delete the group's committed offsets, to decide all retained events again",
        state = .counts.state, found = .counts.found
    )]
    Mixed {
        /// The topics with the first number.
        counts: Counts,
        /// The other number.
        other: u32,
    },
    /// What is known of subjects is keyed for another number, and nothing moves it.
    #[error(
        "what {state} says of subjects is keyed for {found} partitions, and {events} has {wanted}: it is not moved to others. Name new topics for both (kafka.topics.signals, kafka.topics.abuse), so that counting begins anew; suspensions in force end at their time",
        state = .0.state, events = .0.events, found = .0.found, wanted = .0.wanted
    )]
    Subjects(Counts),
    /// Nothing is left to drain.
    #[error("--drain-partitions {drained}: the state in {state} is keyed for {found} partitions; leave the option out", state = .counts.state, found = .counts.found)]
    NothingToDrain {
        /// The topics with the number that the state is keyed for.
        counts: Counts,
        /// The number that was given.
        drained: u32,
    },
}
