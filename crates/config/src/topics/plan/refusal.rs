//! What a plan does not do: each with the reason and with what to do instead.

/// A difference that is not mended, because that would lose something or because this command cannot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// More partitions are asked of a topic whose threads have state.
    #[error(
        "topic {topic} has {found} partitions, and {wanted} are asked for: threads would hash to other partitions, away from their state. \
         Grow it as docs/partitions.md#more-partitions says, with tollgate state rekey behind it, or ask for --partitions {found}"
    )]
    Grow {
        /// The topic.
        topic: String,
        /// How many partitions it has.
        found: u32,
        /// How many are asked for.
        wanted: u32,
    },
    /// Fewer partitions are asked for than there are.
    #[error(
        "topic {topic} has {found} partitions, and {wanted} are asked for: Kafka takes no partition away. Ask for --partitions {found}, or \
         name a new topic in {key}"
    )]
    Shrink {
        /// The topic.
        topic: String,
        /// The configuration key that names it.
        key: String,
        /// How many partitions it has.
        found: u32,
        /// How many are asked for.
        wanted: u32,
    },
    /// A topic has more partitions than the topic that it follows.
    #[error(
        "topic {topic} has {found} partitions, and {other} has {wanted}: {why}. Kafka takes no partition away: name a new topic in {key}, or \
         delete this one while no worker runs; what it holds is lost by either, blocks and suppressions of running turns included"
    )]
    Ahead {
        /// The topic.
        topic: String,
        /// The configuration key that names it.
        key: String,
        /// How many partitions it has.
        found: u32,
        /// The topic that it follows.
        other: String,
        /// How many partitions that topic has or gets.
        wanted: u32,
        /// Why the number matters.
        why: &'static str,
    },
    /// A topic keeps the last record of each key, and should not. Without that, its old records would be deleted by age.
    #[error(
        "topic {topic} has cleanup.policy={found}, where later records replace earlier ones with their key: it has to be delete. This command \
         does not change that, since brokers then delete what is older than retention.ms: look at that, and set it with kafka-configs.sh, or \
         name a new topic in {key}"
    )]
    WouldDelete {
        /// The topic.
        topic: String,
        /// The configuration key that names it.
        key: String,
        /// The cleanup policy that it has.
        found: String,
    },
    /// A topic has another replication factor than was asked for.
    #[error(
        "topic {topic} has replication factor {found}, and {wanted} is asked for: kafka-reassign-partitions.sh changes that, and this \
         command does not; ask for --replication-factor {found}, or leave the option out"
    )]
    OtherReplicas {
        /// The topic.
        topic: String,
        /// How many replicas it has.
        found: u32,
        /// How many are asked for.
        wanted: u32,
    },
    /// There are fewer brokers than replicas. They may still be starting.
    #[error("replication factor {wanted} takes {wanted} brokers, and the cluster has {brokers}")]
    FewBrokers {
        /// How many replicas are asked for.
        wanted: u32,
        /// How many brokers there are.
        brokers: u32,
    },
    /// More replicas would have to be in sync than there are.
    #[error(
        "min.insync.replicas {wanted} with replication factor {replicas}: topic {topic} would take no record; ask for at most {replicas}"
    )]
    MoreInSync {
        /// The topic.
        topic: String,
        /// How many must be in sync.
        wanted: u32,
        /// How many there are.
        replicas: u32,
    },
}

impl Refusal {
    /// Returns whether the reason may go away by itself.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::FewBrokers { .. })
    }
}
