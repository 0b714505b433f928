//! The rules that the cluster's topics must meet before a worker joins.

use super::faults::{Fault, faults};
use super::{Carries, Cleanup, FoundTopic, Needed, PartitionRule, Topic};

/// Why a worker cannot work with the topics as they are.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicFault {
    /// Topics are missing.
    #[error("no such topic: {missing}; create what is missing: tollgate topics apply{} --execute", if *.is_optional { " --optional" } else { "" })]
    Missing {
        /// The names of all missing topics.
        missing: String,
        /// Whether one of them is a topic that not every worker needs.
        is_optional: bool,
    },
    /// A topic has fewer partitions than the topic that it follows.
    #[error("{0}, so {topic} needs at least {wanted} partitions: tollgate topics apply --execute", topic = .0.topic, wanted = .0.wanted)]
    TooFewPartitions(PartitionCounts),
    /// A topic has more or fewer partitions than the topic that it follows.
    #[error("{counts}. {}", .counts.advice())]
    OtherPartitions {
        /// The numbers.
        counts: PartitionCounts,
    },
    /// A topic must be compacted, and would lose records by age.
    #[error("topic {topic} has cleanup.policy={found}: {lost} would be deleted by age. Set it to compact: tollgate topics apply --execute")]
    NotCompacted {
        /// The topic.
        topic: String,
        /// What would be lost.
        lost: &'static str,
        /// The cleanup policy that it has.
        found: String,
    },
    /// A topic must not be compacted, and would lose all but the last record of a key.
    #[error(
        "topic {topic} has cleanup.policy={found}: of the records with one key only the last would be kept. Set it to delete: tollgate topics apply --execute"
    )]
    Compacted {
        /// The topic.
        topic: String,
        /// The cleanup policy that it has.
        found: String,
    },
    /// The state of a thread may not fit into its topic.
    #[error(
        "topic {topic} has max.message.bytes={found}, and a thread's state may take {wanted} bytes: raise it (tollgate topics apply --execute), or lower limits.thread_bytes_max"
    )]
    StateTooSmall {
        /// The topic.
        topic: String,
        /// The largest batch that the topic takes, in bytes.
        found: u64,
        /// The largest batch that the topic may need to take, in bytes.
        wanted: u64,
    },
}

/// How many partitions a topic has, against the topic that it follows.
#[derive(Debug, PartialEq, Eq)]
pub struct PartitionCounts {
    /// The topic.
    pub topic: String,
    /// How many it has.
    pub found: u32,
    /// The topic that it follows.
    pub other: String,
    /// How many partitions that topic has.
    pub wanted: u32,
    /// Why the number matters.
    pub why: &'static str,
    /// Whether `tollgate state rekey` moves what the topic holds.
    pub is_rekeyed: bool,
}

impl PartitionCounts {
    /// Returns what to do where the numbers differ.
    fn advice(&self) -> String {
        let Self { topic, other, .. } = self;
        if self.is_rekeyed {
            return format!(
                "Where {other} was given more partitions, stop all workers of the group; `tollgate topics apply --execute` gives {topic} as \
                 many, and `tollgate state rekey` then moves what it holds; where {topic} has too many, name a new topic"
            );
        }
        format!(
            "What is known of subjects is not moved: give {other} no more partitions, and where it has them, name new topics for both \
             (kafka.topics.signals, kafka.topics.abuse), so that counting begins anew"
        )
    }
}

impl std::fmt::Display for PartitionCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { topic, found, other, wanted, why, .. } = self;
        write!(f, "topic {topic} has {found} partitions, {other} has {wanted}: {why}")
    }
}

/// The sizes that the topics take, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// The largest batch that every topic takes that we publish to, in bytes.
    pub batch_bytes: Option<u64>,
    /// The largest batch that the state topic takes, in bytes.
    pub state_batch_bytes: Option<u64>,
    /// Topics that should be configured otherwise, each with what is wrong.
    pub warnings: Vec<(String, String)>,
}

/// Checks that all topics exist and have enough partitions. `counts` holds the number of partitions of each, and 0 for one that is missing.
///
/// # Errors
/// Returns the first [`TopicFault`] in the order of the topics; missing topics come before anything else.
pub fn check_partitions(topics: &[Topic<'_>], counts: &[usize]) -> Result<(), TopicFault> {
    let found = || topics.iter().copied().zip(counts.iter().copied());
    let missing: Vec<Topic<'_>> = found().filter(|(_, count)| *count == 0).map(|(topic, _)| topic).collect();
    if !missing.is_empty() {
        let is_optional = missing.iter().any(|topic| !topic.spec.is_created());
        let missing: Vec<_> = missing.iter().map(|topic| topic.name).collect();
        return Err(TopicFault::Missing { missing: missing.join(", "), is_optional });
    }
    let found_topic = |count| FoundTopic { partitions: u32::try_from(count).unwrap_or(u32::MAX), ..FoundTopic::default() };
    let all: Vec<_> = found().map(|(topic, count)| (topic, found_topic(count))).collect();
    for (topic, found) in &all {
        let Some(Fault::Partitions { other, wanted, why }) = faults(*topic, found, &all, 0).into_iter().next() else { continue };
        let (topic_name, other, is_rekeyed) = (topic.name.to_owned(), other.name.to_owned(), topic.spec.needed == Needed::Always);
        let counts = PartitionCounts { topic: topic_name, found: found.partitions, other, wanted, why, is_rekeyed };
        return Err(match topic.spec.partitions {
            PartitionRule::AtLeast { .. } => TopicFault::TooFewPartitions(counts),
            _ => TopicFault::OtherPartitions { counts },
        });
    }
    Ok(())
}

/// Checks how the topics are configured, and returns the sizes that they take. `setting` returns a topic's setting by the names of both, or
/// `None` if it is not known. A topic refuses a batch as a whole if it is larger than the topic takes, so the producer's batches must not
/// be larger. A topic of copies that takes less than the original cannot hold all of them. A compacted topic must not delete by age, and no
/// other topic may be compacted. The state topic must take the state of the largest thread, whose own bytes are at most `thread_bytes_max`.
///
/// # Errors
/// Returns [`TopicFault::NotCompacted`] and [`TopicFault::Compacted`] before [`TopicFault::StateTooSmall`].
pub fn check_settings(
    topics: &[Topic<'_>],
    setting: impl Fn(&str, &str) -> Option<String>,
    thread_bytes_max: usize,
) -> Result<Limits, TopicFault> {
    let settings = |topic: &Topic<'_>| {
        let known = ["cleanup.policy", "max.message.bytes"].map(|name| Some((name.to_owned(), setting(topic.name, name)?)));
        FoundTopic { settings: known.into_iter().flatten().collect(), ..FoundTopic::default() }
    };
    let all: Vec<_> = topics.iter().map(|topic| (*topic, settings(topic))).collect();
    let (mut limits, mut too_small) = (Limits::default(), None);
    for (topic, found) in &all {
        let topic_name = topic.name.to_owned();
        for fault in faults(*topic, found, &all, thread_bytes_max) {
            match (fault, topic.spec.cleanup) {
                (Fault::CleanupPolicy { found, .. }, Cleanup::Compact { keeps, .. }) => {
                    return Err(TopicFault::NotCompacted { topic: topic_name, lost: keeps, found });
                }
                (Fault::CleanupPolicy { found, .. }, Cleanup::Delete { .. }) => {
                    return Err(TopicFault::Compacted { topic: topic_name, found });
                }
                (Fault::MessageBytes { found, least, original: Some(original) }, _) => {
                    let cut = "larger dead letters will be published without their value";
                    let warning = format!("max.message.bytes is {found}, that of {} is {least}: {cut}", original.name);
                    limits.warnings.push((topic_name.clone(), warning));
                }
                (Fault::MessageBytes { found, least, original: None }, _) => {
                    too_small.get_or_insert(TopicFault::StateTooSmall { topic: topic_name.clone(), found, wanted: least });
                }
                (Fault::Partitions { .. }, _) => {}
            }
        }
        let size = found.message_bytes();
        match topic.spec.carries {
            Carries::Theirs => {}
            Carries::Ours | Carries::CopiesOf(_) => limits.batch_bytes = least(limits.batch_bytes, size),
            Carries::ThreadState => limits.state_batch_bytes = least(limits.state_batch_bytes, size),
        }
    }
    too_small.map_or(Ok(limits), Err)
}

/// Returns the smaller of two sizes, as far as they are known.
fn least(known: Option<u64>, size: Option<u64>) -> Option<u64> {
    known.into_iter().chain(size).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topics::{Needed, TOPICS, TopicSettings};

    /// Returns the topics that a worker needs, named like their keys.
    fn required() -> Vec<Topic<'static>> {
        TOPICS.iter().filter(|spec| spec.needed == Needed::Always).map(|spec| Topic { spec, name: spec.key }).collect()
    }

    fn partitions(counts: [usize; 5]) -> Result<(), String> {
        check_partitions(&required(), &counts).map_err(|fault| fault.to_string())
    }

    #[test]
    fn topics_that_fit_pass() {
        let names: Vec<_> = required().iter().map(|topic| topic.name).collect();
        assert_eq!(names, ["events", "decisions", "dlq", "controls", "state"]);
        assert_eq!(partitions([3, 3, 1, 1, 3]), Ok(()));
        assert_eq!(partitions([3, 7, 2, 4, 3]), Ok(()), "more verdict partitions and more controls partitions are put up with");
    }

    #[test]
    fn what_is_missing_is_named_with_what_creates_it() {
        let missing = |names: &str| Err(format!("no such topic: {names}; create what is missing: tollgate topics apply --execute"));
        assert_eq!(partitions([3, 3, 0, 1, 0]), missing("dlq, state"));
        assert_eq!(partitions([3, 3, 3, 0, 3]), missing("controls"));
        assert_eq!(partitions([0, 2, 9, 9, 5]), missing("events"), "before anything else");
        assert_eq!(partitions([0; 5]), missing("events, decisions, dlq, controls, state"));
    }

    #[test]
    fn partitions_go_by_those_of_the_events() {
        let few = "topic decisions has 2 partitions, events has 3: verdicts go to the partition of their event, so decisions needs at least 3 partitions: tollgate topics apply --execute";
        assert_eq!(partitions([3, 2, 1, 1, 3]), Err(few.to_owned()));
        for state in [2, 4] {
            let fault = partitions([3, 3, 1, 1, state]).unwrap_err();
            let begins = format!(
                "topic state has {state} partitions, events has 3: the state of a partition stands on the partition of the same number. Where"
            );
            assert!(fault.starts_with(&begins), "{fault}");
        }
    }

    /// A worker that watches for abuse needs more topics.
    #[test]
    fn topics_for_abuse_are_named_and_counted_like_the_others() {
        let topics: Vec<_> = TOPICS.iter().filter(|spec| spec.is_created()).map(|spec| Topic { spec, name: spec.key }).collect();
        let faults = |counts: [usize; 8]| check_partitions(&topics, &counts).map_err(|fault| fault.to_string());
        assert_eq!(faults([3, 3, 1, 1, 1, 5, 5, 3]), Ok(()), "signals have as many partitions as they like");
        let missing = "no such topic: alerts, signals, abuse; create what is missing: tollgate topics apply --execute";
        assert_eq!(faults([3, 3, 1, 1, 0, 0, 0, 3]), Err(missing.to_owned()));
        let other = faults([3, 3, 1, 1, 1, 6, 5, 3]).unwrap_err();
        assert!(other.starts_with("topic abuse has 5 partitions, signals has 6: the state of a partition stands on"), "{other}");
        assert!(
            other.ends_with("name new topics for both (kafka.topics.signals, kafka.topics.abuse), so that counting begins anew"),
            "{other}"
        );
    }

    fn settings(known: &[(&str, &str, &str)]) -> Result<Limits, String> {
        let setting = |topic: &str, name: &str| {
            let found = known.iter().find(|(of, called, _)| (*of, *called) == (topic, name));
            found.map(|(_, _, value)| (*value).to_owned())
        };
        check_settings(&required(), setting, 10_000).map_err(|fault| fault.to_string())
    }

    #[test]
    fn sizes_bound_batches() {
        let (size, all) = ("max.message.bytes", |bytes: u64| Some(bytes));
        assert_eq!(settings(&[]), Ok(Limits::default()), "brokers may not say");
        let found =
            settings(&[("events", size, "800"), ("decisions", size, "900"), ("dlq", size, "950"), ("state", size, "14096")]).unwrap();
        assert_eq!(found, Limits { batch_bytes: all(900), state_batch_bytes: all(14_096), warnings: Vec::new() });
        let found = settings(&[("events", size, "800"), ("dlq", size, "700")]).unwrap();
        assert!(found.batch_bytes == all(700) && found.warnings.len() == 1, "{found:?}");
        let cut = "max.message.bytes is 700, that of events is 800: larger dead letters will be published without their value";
        assert_eq!(found.warnings, [("dlq".to_owned(), cut.to_owned())]);
        let fault = settings(&[("state", size, "14095")]).unwrap_err();
        assert!(fault.starts_with("topic state has max.message.bytes=14095, and a thread's state may take 14096 bytes"), "{fault}");
    }

    #[test]
    fn what_must_be_kept_is_compacted() {
        let policy = "cleanup.policy";
        assert!(settings(&[("events", policy, "delete"), ("state", policy, "compact"), ("controls", policy, "compact")]).is_ok());
        for (topic, found) in [("state", "delete"), ("controls", "compact,delete")] {
            let fault = settings(&[(topic, policy, found)]).unwrap_err();
            assert!(fault.starts_with(&format!("topic {topic} has cleanup.policy={found}: {topic} would be deleted by age.")), "{fault}");
            assert!(fault.ends_with("tollgate topics apply --execute"), "{fault}");
        }
        for (topic, found) in [("events", "compact"), ("decisions", "compact,delete"), ("dlq", "compact")] {
            let fault = settings(&[(topic, policy, found)]).unwrap_err();
            assert!(fault.starts_with(&format!("topic {topic} has cleanup.policy={found}: of the records with one key")), "{fault}");
        }
    }

    #[test]
    fn faults_name_topics_as_they_are_called_here() {
        let names = TopicSettings::named(|spec| format!("acme.{}", spec.key));
        let topics: Vec<_> = names.each().filter(|topic| topic.spec.needed == Needed::Always).collect();
        let fault = check_partitions(&topics, &[3, 2, 1, 1, 3]).unwrap_err().to_string();
        assert!(fault.starts_with("topic acme.decisions has 2 partitions, acme.events has 3:"), "{fault}");
    }
}
