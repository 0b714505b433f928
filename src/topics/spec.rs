//! What can be said of a topic.

/// One entry of the table of topics.
#[derive(Debug, PartialEq, Eq)]
pub struct TopicSpec {
    /// The key below `kafka.topics` that names the topic.
    pub key: &'static str,
    /// What its records are, as a sentence.
    pub what: &'static str,
    /// Its name where the configuration gives none.
    pub default_name: &'static str,
    /// What its records are keyed by.
    pub record_key: &'static str,
    /// What becomes of old records.
    pub cleanup: Cleanup,
    /// How many partitions it has.
    pub partitions: PartitionRule,
    /// What its records hold, which decides how large they may have to be.
    pub carries: Carries,
    /// Who writes to it.
    pub written_by: &'static [Party],
    /// Who reads it.
    pub read_by: &'static [Party],
    /// Whether a worker does not start without it.
    pub is_required: bool,
}

/// What becomes of a topic's old records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// The last record of each key is kept for ever.
    Compact {
        /// What would be lost if records were deleted by age.
        keeps: &'static str,
    },
    /// They are deleted by age.
    Delete {
        /// The age in days; `None` leaves it to the cluster.
        days: Option<u32>,
    },
}

/// How many partitions a topic has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionRule {
    /// As many as somebody finds right.
    Free,
    /// One is enough, and gives all records one order. More are put up with.
    One,
    /// No fewer than another topic.
    AtLeast {
        /// The key of the other topic.
        topic: &'static str,
        /// Why, as the beginning of a sentence.
        why: &'static str,
    },
    /// Exactly as many as another topic.
    SameAs {
        /// The key of the other topic.
        topic: &'static str,
        /// Why, as a sentence without its end.
        why: &'static str,
    },
}

/// What a topic's records hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// What others write: as large as they like.
    Theirs,
    /// What Tollgate makes: its batches are no larger than the topic takes.
    Ours,
    /// Whole records of another topic, as far as this one takes them; Tollgate's batches are no larger than it takes.
    CopiesOf(
        /// The key of the other topic.
        &'static str,
    ),
    /// The state of a thread, which has to fit whole.
    ThreadState,
}

/// Who writes or reads a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    /// What runs agents.
    Orchestrators,
    /// `tollgate run`.
    Workers,
    /// People, and the commands that they give.
    Operators,
}

/// A topic and the name that it has here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topic<'n> {
    /// Its entry in the table.
    pub spec: &'static TopicSpec,
    /// Its name in the cluster.
    pub name: &'n str,
}

impl TopicSpec {
    /// Returns where the configuration names the topic.
    #[must_use]
    pub fn path(&self) -> String {
        format!("kafka.topics.{}", self.key)
    }
}

impl PartitionRule {
    /// Returns the key of the topic whose number of partitions this rule goes by.
    #[must_use]
    pub fn follows(self) -> Option<&'static str> {
        match self {
            Self::AtLeast { topic, .. } | Self::SameAs { topic, .. } => Some(topic),
            Self::Free | Self::One => None,
        }
    }
}

impl Party {
    /// Returns the word for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Orchestrators => "orchestrators",
            Self::Workers => "workers",
            Self::Operators => "operators",
        }
    }
}
