//! How many partitions every topic gets.

use super::super::{Needed, PartitionRule, Topic};
use super::{FoundTopic, Refusal, TopicWishes};

/// How many partitions the events topic gets if nobody says otherwise. They can be shared out evenly among 1, 2, 3, 4, 6 or 12 members, and
/// more of them later take a `tollgate state rekey`.
const PARTITIONS: u32 = 12;

type Found<'t, 'n> = &'t [(Topic<'n>, Option<FoundTopic>)];

/// Returns how many partitions a missing topic gets.
pub(super) fn of_new(topic: Topic<'_>, all: Found<'_, '_>, wishes: &TopicWishes) -> u32 {
    let of_found = |(leader, found): &(Topic<'_>, Option<FoundTopic>)| {
        found.as_ref().map_or_else(|| of_leader(*leader, all, wishes), |found| found.partitions)
    };
    match topic.spec.partitions {
        PartitionRule::One => 1,
        PartitionRule::Free => of_leader(topic, all, wishes),
        PartitionRule::AtLeast { topic, .. } | PartitionRule::SameAs { topic, .. } => of_key(all, topic).map_or(1, of_found),
    }
}

/// Returns why a topic that others follow does not get as many partitions as are asked for. Its threads would hash elsewhere. The wish is
/// about the events topic: other topics that are followed stay as they are.
pub(super) fn refused_wish(topic: Topic<'_>, found: &FoundTopic, all: Found<'_, '_>, wishes: &TopicWishes) -> Option<Refusal> {
    let is_asked = topic.spec.partitions == PartitionRule::Free && topic.spec.needed == Needed::Always && is_followed(topic, all);
    let (name, found) = (topic.name.to_owned(), found.partitions);
    let wanted = wishes.partitions.filter(|wanted| is_asked && *wanted != found)?;
    Some(if wanted > found {
        Refusal::Grow { topic: name, found, wanted }
    } else {
        Refusal::Shrink { topic: name, key: topic.spec.path(), found, wanted }
    })
}

/// Returns how many partitions a missing topic gets that follows no other: those that are asked for, or as many as those of a topic that
/// follows it and exists, or as the events topic.
fn of_leader(leader: Topic<'_>, all: Found<'_, '_>, wishes: &TopicWishes) -> u32 {
    let followers = |is_exact: bool| {
        let exists = all.iter().filter(move |(topic, _)| matches!(topic.spec.partitions, PartitionRule::SameAs { .. }) == is_exact);
        let follows = exists.filter(|(topic, _)| topic.spec.partitions.follows() == Some(leader.spec.key));
        follows.filter_map(|(_, found)| Some(found.as_ref()?.partitions)).max()
    };
    let others =
        || all.iter().filter(|(topic, _)| is_followed(*topic, all)).filter_map(|(_, found)| Some(found.as_ref()?.partitions)).max();
    wishes.partitions.or_else(|| followers(true)).or_else(|| followers(false)).or_else(others).unwrap_or(PARTITIONS)
}

fn is_followed(topic: Topic<'_>, all: Found<'_, '_>) -> bool {
    all.iter().any(|(other, _)| other.spec.partitions.follows() == Some(topic.spec.key))
}

fn of_key<'t, 'n>(all: Found<'t, 'n>, key: &str) -> Option<&'t (Topic<'n>, Option<FoundTopic>)> {
    all.iter().find(|(topic, _)| topic.spec.key == key)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ONE_BROKER, fitting, found, lines, topics};
    use super::*;

    fn of(found: &[(&str, FoundTopic)], partitions: Option<u32>) -> Vec<String> {
        lines(&topics(found), &TopicWishes { partitions, ..TopicWishes::default() }, ONE_BROKER)
    }

    fn without(key: &str, partitions: u32) -> Vec<(&'static str, FoundTopic)> {
        fitting(partitions).into_iter().filter(|(of, _)| *of != key).collect()
    }

    fn with(key: &'static str, changed: FoundTopic, partitions: u32) -> Vec<(&'static str, FoundTopic)> {
        let mut all = without(key, partitions);
        all.push((key, changed));
        all
    }

    #[test]
    fn a_missing_topic_gets_as_many_as_those_that_it_belongs_with() {
        assert_eq!(of(&without("decisions", 7), None), ["decisions: create: partitions 7, replication factor 1"]);
        assert_eq!(
            of(&without("state", 7), None),
            ["state: create: partitions 7, replication factor 1, cleanup.policy=compact, segment.bytes=67108864"]
        );
        assert_eq!(of(&without("dlq", 7), None), ["dlq: create: partitions 7, replication factor 1"]);
        assert_eq!(of(&without("controls", 7), Some(7)), ["controls: create: partitions 1, replication factor 1, cleanup.policy=compact"]);
        // The state topic says how many the events must have had; decisions may have more.
        let mut all = without("events", 7);
        all.retain(|(key, _)| *key != "decisions");
        all.push(("decisions", found(9, 1, &[])));
        assert_eq!(of(&all, None), ["events: create: partitions 7, replication factor 1"]);
    }

    #[test]
    fn decisions_grow_with_events_and_never_shrink() {
        assert_eq!(of(&with("decisions", found(2, 1, &[]), 3), None), ["decisions: partitions 2 → 3"]);
        assert_eq!(of(&with("decisions", found(8, 1, &[]), 3), Some(3)), Vec::<String>::new());
        assert_eq!(of(&with("controls", found(5, 1, &[("cleanup.policy", "compact")]), 3), None), Vec::<String>::new());
    }

    #[test]
    fn events_are_not_grown_and_nothing_shrinks() {
        let grow = of(&fitting(12), Some(24));
        assert_eq!(grow.len(), 1, "{grow:?}");
        assert!(
            grow[0].starts_with("events refused: topic events has 12 partitions, and 24 are asked for: threads would hash"),
            "{grow:?}"
        );
        assert!(grow[0].contains("tollgate state rekey") && grow[0].ends_with("--partitions 12"), "{grow:?}");
        let shrink = of(&fitting(12), Some(6));
        assert_eq!(shrink.len(), 1, "{shrink:?}");
        assert!(shrink[0].contains("Kafka takes no partition away") && shrink[0].ends_with("kafka.topics.events"), "{shrink:?}");
    }

    #[test]
    fn state_grows_with_events_and_never_shrinks() {
        let compact = [("cleanup.policy", "compact")];
        let of_state = |partitions| of(&with("state", found(partitions, 1, &compact), 4), None);
        assert_eq!(of_state(2), ["state: partitions 2 → 4"]);
        let refused = of_state(8);
        assert!(refused.len() == 1 && refused[0].contains("8 partitions, and events has 4"), "{refused:?}");
    }
}
