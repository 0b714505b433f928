//! The rules of the table that a topic does not meet, as data. `topics apply` makes changes of them, and a worker refuses to start.

use super::{Carries, FoundTopic, PartitionRule, Topic};

/// How many bytes a thread's state record may take beyond the thread itself: its key, ids of full length, and the batch around it.
pub(super) const STATE_RECORD_OVERHEAD: u64 = 4_096;

/// A rule that a topic does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault<'n> {
    /// The topic has fewer partitions than the topic that it follows, or more where it has to have as many.
    Partitions { other: Topic<'n>, wanted: u32, why: &'static str },
    /// The topic's `cleanup.policy` loses records.
    CleanupPolicy { found: String, wanted: &'static str },
    /// The topic's `max.message.bytes` is below the largest record: the state of a thread, or a record of the topic that it holds copies of.
    MessageBytes { found: u64, least: u64, original: Option<Topic<'n>> },
}

/// Returns the rules that a topic does not meet, its partitions first. `all` are the topics beside it. A setting that is not known is no fault.
pub(super) fn faults<'n>(topic: Topic<'n>, found: &FoundTopic, all: &[(Topic<'n>, FoundTopic)], thread_bytes_max: usize) -> Vec<Fault<'n>> {
    let of_key = |key: &str| all.iter().find(|(other, _)| other.spec.key == key);
    let (rule, leader) = (topic.spec.partitions, topic.spec.partitions.follows().and_then(of_key));
    let partitions = leader.and_then(|(other, led)| match rule {
        PartitionRule::AtLeast { why, .. } if found.partitions < led.partitions => Some((other, led, why)),
        PartitionRule::SameAs { why, .. } if found.partitions != led.partitions => Some((other, led, why)),
        _ => None,
    });
    let partitions = partitions.map(|(other, led, why)| Fault::Partitions { other: *other, wanted: led.partitions, why });
    let cleanup = found.settings.get("cleanup.policy").and_then(|value| {
        let wanted = topic.spec.cleanup.other_than(value)?;
        Some(Fault::CleanupPolicy { found: value.clone(), wanted })
    });
    let least = match topic.spec.carries {
        Carries::Theirs | Carries::Ours => None,
        Carries::ThreadState => Some((thread_bytes_max as u64 + STATE_RECORD_OVERHEAD, None)),
        Carries::CopiesOf(key) => of_key(key).and_then(|(original, found)| Some((found.message_bytes()?, Some(*original)))),
    };
    let size = least.zip(found.message_bytes()).filter(|((least, _), found)| found < least);
    let size = size.map(|((least, original), found)| Fault::MessageBytes { found, least, original });
    [partitions, cleanup, size].into_iter().flatten().collect()
}

impl FoundTopic {
    /// Returns the size of the largest batch that the topic takes, in bytes, if it is known.
    pub(super) fn message_bytes(&self) -> Option<u64> {
        self.settings.get("max.message.bytes")?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{ONE_BROKER, fitting, found, lines, topics};
    use super::super::{TopicWishes, check_partitions, check_settings};
    use super::*;

    /// Returns whether a worker refuses or warns of these topics, and whether `topics apply` has to do something about them.
    fn judged(found: &[(&str, FoundTopic)]) -> (bool, bool) {
        let found = topics(found);
        let of = |name: &str| found.iter().find(|(topic, _)| topic.name == name).unwrap().1.as_ref().unwrap();
        let names: Vec<_> = found.iter().map(|(topic, _)| *topic).collect();
        let counts: Vec<_> = names.iter().map(|topic| of(topic.name).partitions as usize).collect();
        let limits = check_settings(&names, |name, key| of(name).settings.get(key).cloned(), ONE_BROKER.thread_bytes_max);
        let is_faulty = check_partitions(&names, &counts).is_err() || !limits.is_ok_and(|limits| limits.warnings.is_empty());
        (is_faulty, !lines(&found, &TopicWishes::default(), ONE_BROKER).is_empty())
    }

    #[test]
    fn a_worker_and_topics_apply_find_the_same_faults() {
        let (size, policy) = ("max.message.bytes", "cleanup.policy");
        let compact = (policy, "compact");
        assert_eq!(judged(&fitting(3)), (false, false));
        for (key, changed) in [
            ("decisions", found(2, 1, &[])),
            ("state", found(2, 1, &[compact])),
            ("state", found(4, 1, &[compact])),
            ("state", found(3, 1, &[])),
            ("controls", found(1, 1, &[(policy, "compact,delete")])),
            ("events", found(3, 1, &[compact])),
            ("dlq", found(1, 1, &[compact])),
            ("state", found(3, 1, &[compact, (size, "69631")])),
            ("dlq", found(1, 1, &[(size, "1048587")])),
        ] {
            let mut all = fitting(3);
            all.retain(|(of, _)| *of != key);
            all.push((key, changed.clone()));
            assert_eq!(judged(&all), (true, true), "{key}: {changed:?}");
        }
    }
}
