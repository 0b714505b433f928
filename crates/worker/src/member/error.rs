//! Why a member starts over.

use rdkafka::error::KafkaError;

use super::Failure;

/// Why a member could not go on. It starts over from the committed offsets.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// A client could not be made: a property is wrong.
    #[error("kafka.properties: {0}")]
    Client(KafkaError),
    /// The consumer is fenced or has failed for good.
    #[error("the consumer failed: {0}")]
    Consumer(KafkaError),
    /// Another consumer has its instance id, which is the configured one of the worker, or one that nobody else has.
    #[error("another consumer has taken its place: {}", why_fenced(.0.as_deref()))]
    Fenced(Option<String>),
    /// A publication failed for good, or another failure forbids to commit.
    #[error(transparent)]
    Publish(#[from] Failure),
    /// The group has not taken it back.
    #[error("it lost its partitions, and the group has not taken it back: a new consumer joins")]
    Lost,
    /// Our code or a library panicked; the panic itself is in the log.
    #[error("the member panicked")]
    Panicked,
}

fn why_fenced(instance_id: Option<&str>) -> String {
    let own = instance_id.map(|id| format!("two workers have worker.instance_id={id}, so give each one of its own; or "));
    format!("{}a peer took this worker for dead because it was silent", own.unwrap_or_default())
}
