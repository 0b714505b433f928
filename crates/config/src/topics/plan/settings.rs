//! Which settings every topic gets beside those that the rules of the table ask for. A setting that fits is left as it is.

use super::super::faults::STATE_RECORD_OVERHEAD;
use super::super::{Cleanup, Topic};
use super::{FoundTopic, TopicWishes};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// The size of segments unless brokers are configured otherwise, in bytes.
const KAFKA_SEGMENT_BYTES: u64 = 1 << 30;

/// What settings depend on besides the topic itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'t> {
    pub(super) wishes: &'t TopicWishes,
    pub(super) thread_bytes_max: usize,
    /// How many replicas the topic has or gets.
    pub(super) replicas: u32,
}

/// Returns the value that a setting of a topic should have, if the one that was found does not fit.
type Rule = fn(Topic<'_>, Option<&str>, &Context<'_>) -> Option<String>;

/// Returns the settings that a topic does not have as it should, with the values that they should have. Of a topic that is missing, these
/// are the ones that differ from Kafka's own defaults.
pub(super) fn wanted(topic: Topic<'_>, found: Option<&FoundTopic>, context: &Context<'_>) -> Vec<(&'static str, String)> {
    let rules: [(_, Rule); 3] =
        [("min.insync.replicas", min_insync_replicas), ("retention.ms", retention_ms), ("segment.bytes", segment_bytes)];
    let value = |name: &str| found.and_then(|found| found.settings.get(name)).map(String::as_str);
    rules.into_iter().filter_map(|(name, rule)| Some((name, rule(topic, value(name), context)?))).collect()
}

/// One replica of several may be away without a record being lost or refused.
fn min_insync_replicas(_: Topic<'_>, found: Option<&str>, context: &Context<'_>) -> Option<String> {
    let replicas = context.replicas;
    let size = found.map_or(1, |found| found.parse::<u32>().unwrap_or(0));
    let wanted = match context.wishes.min_insync_replicas {
        Some(wanted) => wanted,
        None if replicas >= 3 && size < 2 => 2,
        // Nothing could be written.
        None if size > replicas => replicas.saturating_sub(1).max(1),
        None => return None,
    };
    (size != wanted).then(|| wanted.to_string())
}

fn retention_ms(topic: Topic<'_>, found: Option<&str>, context: &Context<'_>) -> Option<String> {
    let found = found.and_then(|found| found.parse::<i64>().ok());
    if let Some(wanted) = context.wishes.retention_ms.get(topic.spec.key) {
        return (found != Some(*wanted)).then(|| wanted.to_string());
    }
    let Cleanup::Delete { days: Some(days) } = topic.spec.cleanup else { return None };
    let least = i64::from(days) * DAY_MS;
    // -1 is for ever.
    let is_enough = found.is_some_and(|found| found < 0 || found >= least);
    (!is_enough).then(|| least.to_string())
}

/// Smaller segments stay, and so do larger ones where a single record may need them.
fn segment_bytes(topic: Topic<'_>, found: Option<&str>, context: &Context<'_>) -> Option<String> {
    let Cleanup::Compact { segment_bytes: Some(most), .. } = topic.spec.cleanup else { return None };
    let most = u64::from(most).max(context.thread_bytes_max as u64 + STATE_RECORD_OVERHEAD);
    let size = found.map_or(KAFKA_SEGMENT_BYTES, |found| found.parse().unwrap_or(KAFKA_SEGMENT_BYTES));
    (size > most).then(|| most.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::{ONE_BROKER, THREE_BROKERS, fitting, found, lines, topics};
    use super::super::{Surroundings, TopicWishes};
    use super::*;

    fn of(key: &'static str, changed: FoundTopic, wishes: &TopicWishes, around: Surroundings) -> Vec<String> {
        let mut all: Vec<_> = fitting(4).into_iter().filter(|(of, _)| *of != key).collect();
        all.push((key, changed));
        lines(&topics(&all), wishes, around).into_iter().filter(|line| line.starts_with(key) || line.starts_with("dlq")).collect()
    }

    fn changed(key: &'static str, settings: &[(&str, &str)]) -> Vec<String> {
        let partitions = if key == "controls" { 1 } else { 4 };
        of(key, found(partitions, 1, settings), &TopicWishes::default(), ONE_BROKER)
    }

    #[test]
    fn what_must_be_kept_is_compacted_and_nothing_else() {
        for (key, policy) in [("state", "delete"), ("state", "compact,delete"), ("controls", "delete")] {
            assert_eq!(changed(key, &[("cleanup.policy", policy)]), [format!("{key}: cleanup.policy {policy} → compact")]);
        }
        for (key, policy) in [("events", "compact"), ("decisions", "compact,delete")] {
            let refused = changed(key, &[("cleanup.policy", policy)]);
            let begins = format!("{key} refused: topic {key} has cleanup.policy={policy}, where");
            assert!(refused.len() == 1 && refused[0].starts_with(&begins), "its records would be deleted by age: {refused:?}");
        }
    }

    #[test]
    fn sizes_are_raised_and_never_lowered() {
        let size = "max.message.bytes";
        let compact = ("cleanup.policy", "compact");
        assert_eq!(changed("state", &[compact, (size, "69631")]), ["state: max.message.bytes 69631 → 69632"]);
        assert_eq!(changed("state", &[compact, (size, "69632")]), Vec::<String>::new());
        assert_eq!(changed("events", &[(size, "5000000")]), ["dlq: max.message.bytes 1048588 → 5004096"], "with room for the reason");
        assert_eq!(changed("dlq", &[(size, "1048587")]), ["dlq: max.message.bytes 1048587 → 1052684"]);
        assert_eq!(changed("dlq", &[(size, "9000000")]), Vec::<String>::new());
        assert_eq!(changed("decisions", &[(size, "1000")]), Vec::<String>::new(), "batches keep to it");
        let large = Surroundings { thread_bytes_max: 2_000_000, ..ONE_BROKER };
        let created = lines(&topics(&[]), &TopicWishes::default(), large);
        assert!(created[4].ends_with("cleanup.policy=compact, max.message.bytes=2004096, segment.bytes=67108864"), "{created:?}");
    }

    #[test]
    fn restores_read_little_that_is_not_compacted() {
        let compact = ("cleanup.policy", "compact");
        let state = |size: &str| changed("state", &[compact, ("segment.bytes", size)]);
        assert_eq!(state("1073741824"), ["state: segment.bytes 1073741824 → 67108864"]);
        assert!(state("67108864").is_empty() && state("1000000").is_empty());
        assert!(changed("controls", &[compact, ("segment.bytes", "1073741824")]).is_empty(), "they are few");
        let large = Surroundings { thread_bytes_max: 100_000_000, ..ONE_BROKER };
        let created = lines(&topics(&[]), &TopicWishes::default(), large);
        assert!(created[4].ends_with("max.message.bytes=100004096, segment.bytes=100004096"), "a record fits into one: {created:?}");
    }

    #[test]
    fn one_replica_may_be_away() {
        let least = "min.insync.replicas";
        let of_three = |value| of("events", found(4, 3, &[(least, value)]), &TopicWishes::default(), THREE_BROKERS)[..1].to_vec();
        assert_eq!(of_three("1"), ["events: min.insync.replicas 1 → 2"]);
        assert!(!of_three("2")[0].contains(least) && !of_three("3")[0].contains(least));
        assert_eq!(changed("events", &[(least, "2")]), ["events: min.insync.replicas 2 → 1"], "it would take no record");
        let asked = TopicWishes { min_insync_replicas: Some(1), ..TopicWishes::default() };
        assert_eq!(of("events", found(4, 3, &[(least, "2")]), &asked, THREE_BROKERS)[0], "events: min.insync.replicas 2 → 1");
    }

    #[test]
    fn records_are_held_as_long_as_is_asked_for() {
        let asked = TopicWishes { retention_ms: BTreeMap::from([("events", 1_000), ("decisions", -1)]), ..TopicWishes::default() };
        let lines = lines(&topics(&fitting(4)), &asked, ONE_BROKER);
        assert_eq!(lines, ["events: retention.ms 604800000 → 1000", "decisions: retention.ms 604800000 → -1"]);
        let fits = [("retention.ms", "1000")];
        assert_eq!(of("events", found(4, 1, &fits), &asked, ONE_BROKER), Vec::<String>::new());
    }
}
