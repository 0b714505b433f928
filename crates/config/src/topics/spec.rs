//! The properties of a topic: an entry of the table, and the types of its fields.

use std::collections::BTreeMap;

/// One entry of the table of topics.
#[derive(Debug, PartialEq, Eq)]
pub struct TopicSpec {
    /// The key below `kafka.topics` that names the topic.
    pub key: &'static str,
    /// What its records are, as a sentence.
    pub what: &'static str,
    /// The topic's name if the configuration gives none.
    pub default_name: &'static str,
    /// What its records are keyed by.
    pub record_key: &'static str,
    /// What happens to old records.
    pub cleanup: Cleanup,
    /// How many partitions the topic has.
    pub partitions: PartitionRule,
    /// What the records hold, which decides how large they may be.
    pub carries: Carries,
    /// Who writes to the topic.
    pub written_by: &'static [Party],
    /// Who reads the topic.
    pub read_by: &'static [Party],
    /// Which workers need the topic to start.
    pub needed: Needed,
}

/// Which workers need a topic to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// All of them.
    Always,
    /// Those that watch for abuse, as they do unless that is turned off.
    ForAbuse,
    /// Those that are asked for what the topic carries.
    OnRequest,
}

/// What happens to a topic's old records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// The last record of each key is held for ever.
    Compact {
        /// What would be lost if records were deleted by age.
        keeps: &'static str,
        /// The largest segment, in bytes, where the default would be too large: brokers do not compact the segment that they write to, so
        /// whoever reads the topic from its beginning reads all of that.
        segment_bytes: Option<u32>,
    },
    /// Records are deleted by age.
    Delete {
        /// The age in days; `None` leaves it to the cluster.
        days: Option<u32>,
    },
}

impl Cleanup {
    /// Returns the value of `cleanup.policy` that a topic needs, if it has another value.
    #[must_use]
    pub fn other_than(self, found: &str) -> Option<&'static str> {
        let wanted = match self {
            Self::Compact { .. } => "compact",
            Self::Delete { .. } => "delete",
        };
        (found != wanted).then_some(wanted)
    }
}

/// The rule for how many partitions a topic has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionRule {
    /// Any number.
    Free,
    /// One is enough and gives all records one order. More are accepted.
    One,
    /// At least as many as another topic.
    AtLeast {
        /// The key of the other topic.
        topic: &'static str,
        /// The reason, as the beginning of a sentence.
        why: &'static str,
    },
    /// Exactly as many as another topic.
    SameAs {
        /// The key of the other topic.
        topic: &'static str,
        /// The reason, as a sentence without its end.
        why: &'static str,
    },
}

/// What a topic's records hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// Records that others write, of any size.
    Theirs,
    /// Records that Tollgate makes. Its batches are no larger than the topic takes.
    Ours,
    /// Copies of another topic's records, as far as this topic takes them. Tollgate's batches are no larger than the topic takes.
    CopiesOf(
        /// The key of the other topic.
        &'static str,
    ),
    /// The state of a thread, which must fit as a whole.
    ThreadState,
}

/// Who writes or reads a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    /// The systems that run agents.
    Orchestrators,
    /// `tollgate run`.
    Workers,
    /// `tollgate serve`.
    Servers,
    /// People, and the commands that they run.
    Operators,
}

/// A topic's entry in the table, with its name in this cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topic<'n> {
    /// Its entry in the table.
    pub spec: &'static TopicSpec,
    /// Its name in the cluster.
    pub name: &'n str,
}

/// What is known of a topic that exists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundTopic {
    /// How many partitions it has.
    pub partitions: u32,
    /// How many replicas the partition has that has the fewest.
    pub replication_factor: u32,
    /// Its settings as they are in force, whoever set them.
    pub settings: BTreeMap<String, String>,
}

impl TopicSpec {
    /// Returns whether the topic is created without being asked for.
    #[must_use]
    pub fn is_created(&self) -> bool {
        self.needed != Needed::OnRequest
    }

    /// A topic that `kafka.reply_topics` names. It is none of the table's: there may be any number of them.
    pub const REPLIES: &Self = &Self {
        key: "reply_topics",
        what: "Verdicts for a caller that asked for them here.",
        default_name: "",
        record_key: "thread_id",
        cleanup: Cleanup::Delete { days: None },
        partitions: PartitionRule::Free,
        carries: Carries::Ours,
        written_by: &[Party::Workers],
        read_by: &[Party::Orchestrators],
        needed: Needed::Always,
    };

    /// Returns the path of the configuration key that names the topic.
    #[must_use]
    pub fn path(&self) -> String {
        let block = if self == Self::REPLIES { "kafka" } else { "kafka.topics" };
        format!("{block}.{}", self.key)
    }
}

impl PartitionRule {
    /// Returns the key of the topic whose number of partitions this rule follows.
    #[must_use]
    pub fn follows(self) -> Option<&'static str> {
        match self {
            Self::AtLeast { topic, .. } | Self::SameAs { topic, .. } => Some(topic),
            Self::Free | Self::One => None,
        }
    }
}

impl Party {
    /// Returns the name of the party, for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrators => "orchestrators",
            Self::Workers => "workers",
            Self::Servers => "servers",
            Self::Operators => "operators",
        }
    }
}
