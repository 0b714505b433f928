//! The plan for topics: what there is to create or to change, from the table, what was found and what was asked for.
//!
//! | module | what |
//! |---|---|
//! | `partitions` | how many partitions every topic gets, and which numbers are refused |
//! | `settings` | which settings every topic gets |
//! | `refusal` | what a plan does not do, and what to do about it |
//!
//! A plan never deletes anything, nor lets brokers delete more by age unless a shorter time was asked for, and adds no partition to a topic
//! that state depends on.

mod partitions;
mod refusal;
mod settings;

use std::collections::BTreeMap;

use super::faults::{Fault, faults};
use super::{FoundTopic, Topic};

pub use refusal::Refusal;

/// The replication factor of topics that are created, unless there are fewer brokers.
const REPLICATION_FACTOR: u32 = 3;
/// How many bytes a dead letter may have beyond the record that it is a copy of: the headers with the reason.
const DEAD_LETTER_OVERHEAD: u64 = 4_096;

/// What is asked for. What is `None` is left as it is, and gets a default where a topic is created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicWishes {
    /// How many partitions the events topic has, and with it the topics that follow it.
    pub partitions: Option<u32>,
    /// How many replicas every partition has.
    pub replication_factor: Option<u32>,
    /// How many replicas must be in sync for a record to be taken.
    pub min_insync_replicas: Option<u32>,
    /// How long topics hold records, in milliseconds, by the topic's key; -1 is for ever.
    pub retention_ms: BTreeMap<&'static str, i64>,
}

/// What is known of the cluster and the worker besides the topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surroundings {
    /// How many brokers there are.
    pub brokers: u32,
    /// The upper limit of a thread's state, in bytes.
    pub thread_bytes_max: usize,
}

/// A change to a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The topic is created.
    Create {
        /// How many partitions it gets.
        partitions: u32,
        /// How many replicas every partition gets.
        replication_factor: u32,
        /// Its settings that differ from the cluster's defaults.
        settings: Vec<(&'static str, String)>,
    },
    /// The topic gets more partitions.
    AddPartitions {
        /// How many it has.
        found: u32,
        /// How many it gets.
        wanted: u32,
    },
    /// A setting gets another value.
    Set {
        /// The setting.
        name: &'static str,
        /// The value that is in force.
        found: String,
        /// The value that it gets.
        wanted: String,
    },
}

/// What is planned for one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPlan<'n> {
    /// The topic.
    pub topic: Topic<'n>,
    /// Its partitions and its replication factor, if it exists.
    pub found: Option<(u32, u32)>,
    /// What there is to do.
    pub changes: Vec<Change>,
    /// What differs from what was asked for and is not done.
    pub refusals: Vec<Refusal>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

/// Returns the plan for topics, each with what was found of it: `None` if it is missing.
#[must_use]
pub fn plan<'n>(topics: &[(Topic<'n>, Option<FoundTopic>)], wishes: &TopicWishes, around: Surroundings) -> Vec<TopicPlan<'n>> {
    let new = |topic| FoundTopic { partitions: partitions::of_new(topic, topics, wishes), ..FoundTopic::default() };
    let planned = topics.iter().map(|(topic, found)| (*topic, found.clone().unwrap_or_else(|| new(*topic))));
    let planned: Vec<_> = planned.collect();
    let plan_of = |((topic, found), (_, planned_topic)): (&(_, Option<FoundTopic>), &(_, FoundTopic))| {
        let refused = found.as_ref().and_then(|found| partitions::refused_wish(*topic, found, topics, wishes));
        let mut plan = TopicPlan {
            topic: *topic,
            found: found.as_ref().map(|found| (found.partitions, found.replication_factor)),
            changes: Vec::new(),
            refusals: refused.into_iter().collect(),
            notes: Vec::new(),
        };
        let defaults = || FoundTopic { settings: kafka_defaults(), ..planned_topic.clone() };
        let in_force = found.clone().unwrap_or_else(defaults);
        let mut wanted = mended(&mut plan, &in_force, faults(*topic, &in_force, &planned, around.thread_bytes_max));
        let replicas = replicas(&mut plan, wishes, around);
        let context = settings::Context { wishes, thread_bytes_max: around.thread_bytes_max, replicas };
        wanted.extend(settings::wanted(*topic, found.as_ref(), &context));
        match found {
            None => {
                let partitions = in_force.partitions;
                plan.changes.push(Change::Create { partitions, replication_factor: replicas, settings: wanted });
            }
            Some(found) => plan.changes.extend(wanted.into_iter().map(|(name, wanted)| {
                let found = found.settings.get(name).cloned().unwrap_or_default();
                Change::Set { name, found, wanted }
            })),
        }
        plan
    };
    topics.iter().zip(&planned).map(plan_of).collect()
}

/// Adds to the plan of a topic what there is to do about its faults, and returns the settings that mend the others.
fn mended(plan: &mut TopicPlan<'_>, in_force: &FoundTopic, faults: Vec<Fault<'_>>) -> Vec<(&'static str, String)> {
    let (topic, key, count) = (plan.topic.name.to_owned(), plan.topic.spec.path(), in_force.partitions);
    let mut settings = Vec::new();
    for fault in faults {
        let (topic, key) = (topic.clone(), key.clone());
        match fault {
            Fault::Partitions { wanted, .. } if wanted > count => plan.changes.push(Change::AddPartitions { found: count, wanted }),
            // More partitions do no harm to what is there: a worker takes no state that is keyed for another number.
            Fault::Partitions { other, wanted, why } => {
                plan.refusals.push(Refusal::Ahead { topic, key, found: count, other: other.name.to_owned(), wanted, why });
            }
            Fault::CleanupPolicy { found, wanted: "delete" } => plan.refusals.push(Refusal::WouldDelete { topic, key, found }),
            Fault::CleanupPolicy { wanted, .. } => settings.push(("cleanup.policy", wanted.to_owned())),
            Fault::MessageBytes { least, original, .. } => {
                let overhead = original.map_or(0, |_| DEAD_LETTER_OVERHEAD);
                settings.push(("max.message.bytes", (least + overhead).to_string()));
            }
        }
    }
    settings
}

/// Returns the settings of a topic that is created without any, as far as rules of the table are about them.
fn kafka_defaults() -> BTreeMap<String, String> {
    [("cleanup.policy", "delete"), ("max.message.bytes", "1048588")].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Returns how many replicas a topic has or gets, and adds to the plan what is wrong with that.
fn replicas(plan: &mut TopicPlan<'_>, wishes: &TopicWishes, around: Surroundings) -> u32 {
    let default_replicas = REPLICATION_FACTOR.min(around.brokers).max(1);
    let replicas = match (plan.found, wishes.replication_factor) {
        (None, wished) => {
            let replicas = wished.unwrap_or(default_replicas);
            if replicas > around.brokers {
                plan.refusals.push(Refusal::FewBrokers { wanted: replicas, brokers: around.brokers });
            }
            replicas
        }
        (Some((_, found)), Some(wanted)) if found != wanted => {
            plan.refusals.push(Refusal::OtherReplicas { topic: plan.topic.name.to_owned(), found, wanted });
            found
        }
        (Some((_, found)), wished) => {
            if wished.is_none() && found < default_replicas {
                let brokers = around.brokers;
                plan.notes
                    .push(format!("its replication factor is {found} with {brokers} brokers; kafka-reassign-partitions.sh raises it"));
            }
            found
        }
    };
    if let Some(wanted) = wishes.min_insync_replicas.filter(|wanted| *wanted > replicas) {
        plan.refusals.push(Refusal::MoreInSync { topic: plan.topic.name.to_owned(), wanted, replicas });
    }
    replicas
}

impl TopicPlan<'_> {
    /// Returns whether the topic is as it should be.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.changes.is_empty() && self.refusals.is_empty()
    }

    /// Returns the settings that are to be changed, with their new values.
    pub fn new_settings(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.changes
            .iter()
            .filter_map(|change| if let Change::Set { name, wanted, .. } = change { Some((*name, wanted.as_str())) } else { None })
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Create { partitions, replication_factor, settings } => {
                write!(f, "create: partitions {partitions}, replication factor {replication_factor}")?;
                settings.iter().try_for_each(|(name, value)| write!(f, ", {name}={value}"))
            }
            Self::AddPartitions { found, wanted } => write!(f, "partitions {found} → {wanted}"),
            Self::Set { name, found, wanted } => write!(f, "{name} {found} → {wanted}"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::topics::{Needed, TOPICS};

    /// Returns the topics that a worker needs, named like their keys, each with what was found.
    pub(in crate::topics) fn topics(found: &[(&str, FoundTopic)]) -> Vec<(Topic<'static>, Option<FoundTopic>)> {
        let required = TOPICS.iter().filter(|spec| spec.needed == Needed::Always);
        let of = |key: &str| found.iter().find(|(of, _)| *of == key).map(|(_, found)| found.clone());
        required.map(|spec| (Topic { spec, name: spec.key }, of(spec.key))).collect()
    }

    /// Returns a topic with these partitions and replicas, and Kafka's default settings but for small segments.
    pub(in crate::topics) fn found(partitions: u32, replication_factor: u32, settings: &[(&str, &str)]) -> FoundTopic {
        let usual = [
            ("cleanup.policy", "delete"),
            ("max.message.bytes", "1048588"),
            ("min.insync.replicas", "1"),
            ("retention.ms", "604800000"),
            ("segment.bytes", "67108864"),
        ];
        let settings = usual.iter().chain(settings).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        FoundTopic { partitions, replication_factor, settings }
    }

    pub(in crate::topics) const ONE_BROKER: Surroundings = Surroundings { brokers: 1, thread_bytes_max: 65_536 };
    pub(in crate::topics) const THREE_BROKERS: Surroundings = Surroundings { brokers: 3, thread_bytes_max: 65_536 };
    const COMPACT: (&str, &str) = ("cleanup.policy", "compact");

    pub(in crate::topics) fn fitting(partitions: u32) -> Vec<(&'static str, FoundTopic)> {
        vec![
            ("events", found(partitions, 1, &[])),
            ("decisions", found(partitions, 1, &[])),
            ("dlq", found(1, 1, &[])),
            ("controls", found(1, 1, &[COMPACT])),
            ("state", found(partitions, 1, &[COMPACT])),
        ]
    }

    /// Returns what is planned, a line for each change, refusal and note.
    pub(in crate::topics) fn lines(topics: &[(Topic<'_>, Option<FoundTopic>)], wishes: &TopicWishes, around: Surroundings) -> Vec<String> {
        let mut lines = Vec::new();
        for plan in plan(topics, wishes, around) {
            let name = plan.topic.name;
            lines.extend(plan.changes.iter().map(|change| format!("{name}: {change}")));
            lines.extend(plan.refusals.iter().map(|refusal| format!("{name} refused: {refusal}")));
            lines.extend(plan.notes.iter().map(|note| format!("{name} note: {note}")));
        }
        lines
    }

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(lines(&topics(&fitting(12)), &TopicWishes::default(), ONE_BROKER), Vec::<String>::new());
        let asked =
            TopicWishes { partitions: Some(12), replication_factor: Some(1), min_insync_replicas: Some(1), ..TopicWishes::default() };
        assert_eq!(lines(&topics(&fitting(12)), &asked, ONE_BROKER), Vec::<String>::new());
        assert!(plan(&topics(&fitting(12)), &asked, ONE_BROKER).iter().all(TopicPlan::fits));
    }

    #[test]
    fn an_empty_cluster_gets_every_topic() {
        let lines_of = |wishes, around| lines(&topics(&[]), &wishes, around);
        let retention_ms = BTreeMap::from([("events", 86_400_000), ("dlq", -1)]);
        let asked = TopicWishes { partitions: Some(24), retention_ms, ..TopicWishes::default() };
        assert_eq!(
            lines_of(asked, THREE_BROKERS),
            [
                "events: create: partitions 24, replication factor 3, min.insync.replicas=2, retention.ms=86400000",
                "decisions: create: partitions 24, replication factor 3, min.insync.replicas=2",
                "dlq: create: partitions 24, replication factor 3, min.insync.replicas=2, retention.ms=-1",
                "controls: create: partitions 1, replication factor 3, cleanup.policy=compact, min.insync.replicas=2",
                "state: create: partitions 24, replication factor 3, cleanup.policy=compact, min.insync.replicas=2, segment.bytes=67108864",
            ]
        );
        let of_one = lines_of(TopicWishes::default(), ONE_BROKER);
        assert_eq!(of_one[0], "events: create: partitions 12, replication factor 1");
        assert_eq!(of_one[4], "state: create: partitions 12, replication factor 1, cleanup.policy=compact, segment.bytes=67108864");
    }

    #[test]
    fn replicas_are_asked_of_new_topics_and_compared_with_those_of_old_ones() {
        let asked = TopicWishes { replication_factor: Some(3), ..TopicWishes::default() };
        let refused = lines(&topics(&[]), &asked, ONE_BROKER);
        assert!(
            refused.iter().any(|line| line == "events refused: replication factor 3 takes 3 brokers, and the cluster has 1"),
            "{refused:?}"
        );
        let plan_of = plan(&topics(&[]), &asked, ONE_BROKER);
        assert!(plan_of.iter().all(|plan| plan.refusals.iter().all(Refusal::may_pass)), "brokers may still be starting");
        let refused = lines(&topics(&fitting(4)), &asked, THREE_BROKERS);
        assert_eq!(refused.len(), 5);
        assert!(refused[0].starts_with("events refused: topic events has replication factor 1, and 3 is asked for: "), "{}", refused[0]);
        assert!(refused[0].contains("kafka-reassign-partitions.sh"), "{}", refused[0]);
        let noted = lines(&topics(&fitting(4)), &TopicWishes::default(), THREE_BROKERS);
        assert_eq!(noted.len(), 5);
        assert_eq!(noted[0], "events note: its replication factor is 1 with 3 brokers; kafka-reassign-partitions.sh raises it");
        let asked = TopicWishes { min_insync_replicas: Some(2), ..TopicWishes::default() };
        let refused = lines(&topics(&fitting(4)), &asked, ONE_BROKER);
        let says_so = |line: &String| line.starts_with("events refused: min.insync.replicas 2 with replication factor 1");
        assert!(refused.iter().any(says_so), "{refused:?}");
    }
}
