//! What the abuse stage had counted of a subject at its last checkpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::anyhow;
use serde::Serialize;

use tollgate_abuse::{Abuse, AbuseRules, AbuseState, SubjectView};
use tollgate_config::topics::TopicRole;
use tollgate_core::decide::signal::SubjectKey;
use tollgate_core::engine::checkpoint::{KeyedState, Latest, StateKey};
use tollgate_core::event::record::{Offset, Partition, StreamClock};

use crate::commands::shared::Resolved;
use tollgate_operations::{Topic, Topics};

/// What was counted of a subject.
#[derive(Debug, Serialize)]
pub(super) struct SubjectCounts {
    /// The subject's name.
    pub(super) subject: String,
    /// The partition of the signals topic.
    pub(super) partition: i32,
    #[serde(flatten)]
    pub(super) view: SubjectView,
}

/// Reads what was counted of a subject under each of its names. Counts of rules that the configuration does not have, or has in another
/// version, are left out. `None` if the stage has written no checkpoint yet.
pub(super) fn read(topics: &Topics<'_>, subject: &Resolved, rules: &AbuseRules) -> anyhow::Result<Option<Vec<SubjectCounts>>> {
    let topic = topics.find(TopicRole::Abuse)?;
    if is_empty(topics, topic)? {
        return Ok(None);
    }
    let rules = Arc::new(rules.clone());
    let mut counts = Vec::new();
    for key in &subject.keys {
        let partition = key.partition(topic.partitions);
        let stage = stage(topics, topic, partition, &rules, Some(*key))?;
        if let Some(view) = stage.view(key) {
            counts.push(SubjectCounts { subject: key.to_string(), partition: partition.0, view });
        }
    }
    Ok(Some(counts))
}

/// Returns whether the stage has written no checkpoint yet, in any partition.
///
/// # Errors
/// The topic cannot be read.
pub(super) fn has_none(topics: &Topics<'_>) -> anyhow::Result<bool> {
    is_empty(topics, topics.find(TopicRole::Abuse)?)
}

fn is_empty(topics: &Topics<'_>, topic: Topic<'_>) -> anyhow::Result<bool> {
    for partition in topic.all()? {
        let (begin, end) = topics.ends(topic, partition)?;
        if begin < end {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the rules that enforce nothing in some partition until they are resumed.
pub(super) fn paused(topics: &Topics<'_>, rules: &AbuseRules) -> anyhow::Result<BTreeSet<String>> {
    let topic = topics.find(TopicRole::Abuse)?;
    let rules = Arc::new(rules.clone());
    let mut paused = BTreeSet::new();
    for partition in topic.all()? {
        paused.extend(stage(topics, topic, partition, &rules, None)?.paused().map(str::to_owned));
    }
    Ok(paused)
}

/// Returns the abuse stage of a partition as of its last checkpoint, with one subject at most.
fn stage(
    topics: &Topics<'_>,
    topic: Topic<'_>,
    partition: Partition,
    rules: &Arc<AbuseRules>,
    subject: Option<SubjectKey>,
) -> anyhow::Result<Abuse> {
    let wanted = subject.map(|key| format!("{SUBJECTS}{key}"));
    let mut latest = Latest::default();
    topics.read(topic, partition, |offset, key, value| take(&mut latest, wanted.as_deref(), offset, key, value))?;
    if let Some((offset, error)) = latest.take_unreadable().into_iter().next() {
        return Err(anyhow!("partition {partition} of {}, record at offset {offset}: {error}", topic.name));
    }
    let entries = std::mem::take(&mut latest.entries);
    Ok(Abuse::new(Arc::clone(rules), AbuseState::restored((), StreamClock::default(), entries)))
}

/// What the keys of subjects begin with.
const SUBJECTS: &str = "subject/";

/// Takes a record of the partition, unless it is of another subject: there may be millions.
fn take(
    latest: &mut Latest<<AbuseState as KeyedState>::Entry>,
    wanted: Option<&str>,
    offset: Offset,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) {
    let is_of_another = |id: &str| id.starts_with(SUBJECTS) && Some(id) != wanted;
    if matches!(StateKey::read(key, AbuseState::KIND), Ok(StateKey::Entry(id)) if is_of_another(id)) {
        return;
    }
    latest.take::<AbuseState>(offset, key, value, |_, _, entry| entry);
}

#[cfg(test)]
mod tests {
    use tollgate_core::decide::signal::{Batch, KeyKind, Point, PointKind};
    use tollgate_core::engine::checkpoint::StateRecord;
    use tollgate_core::engine::stage::Stage as _;
    use tollgate_core::event::record::Record;
    use tollgate_json::digest::Digest;

    use super::*;
    use tollgate_config::load;

    fn key(id: &str) -> SubjectKey {
        SubjectKey { kind: KeyKind::User, hash: Digest::of(id.as_bytes()) }
    }

    /// Returns the records of a checkpoint after three safety stops of two users.
    fn checkpoint(rules: &Arc<AbuseRules>) -> Vec<StateRecord> {
        let mut stage = Abuse::new(Arc::clone(rules), AbuseState::default());
        let (mut batch, mut value) = (Batch::default(), Vec::new());
        for (offset, id) in [(1, "alice"), (2, "bob"), (3, "alice")] {
            batch.point(&Point {
                kind: PointKind::SafetyStop,
                subject: key(id),
                source: Partition(0),
                offset: Offset(offset),
                time_ms: 1_800_000_000_000 + offset,
                thread_id: "t".into(),
                event_id: format!("e{offset}").into(),
                user: Some(key(id).hash),
                tenant: None,
                agent: None,
                thread: None,
                args_hash: None,
                tool: None,
                code: None,
                category: None,
                stage: None,
                provider: None,
                detector: None,
            });
        }
        batch.take(&mut value);
        let topic = "tollgate.signals";
        let (partition, offset, timestamp_ms) = (Partition(0), Offset(0), None);
        stage.apply(&Record { topic, partition, offset, timestamp_ms, key: None, value: Some(&value), headers: &[] }, &mut ());
        let mut records = Vec::new();
        stage.state_mut().take_changes(|id, entry| records.push(StateRecord::entry::<AbuseState>(id, entry)));
        records
    }

    #[test]
    fn a_subject_is_found_among_others() {
        let rules = Arc::new(load(None, []).unwrap().abuse.rules);
        let records = checkpoint(&rules);
        let wanted = format!("{SUBJECTS}{}", key("alice"));
        let mut latest = Latest::default();
        for (offset, record) in (0..).zip(&records) {
            take(&mut latest, Some(&wanted), Offset(offset), Some(record.key.as_bytes()), record.value.as_deref());
        }
        let of_subjects: Vec<_> = latest.entries.keys().filter(|id| id.starts_with(SUBJECTS)).cloned().collect();
        assert_eq!(of_subjects, [wanted.into_boxed_str()]);
        let stage = Abuse::new(rules, AbuseState::restored((), StreamClock::default(), std::mem::take(&mut latest.entries)));
        let view = stage.view(&key("alice")).unwrap();
        let counted = view.counters.iter().find(|counter| counter.rule == "safety-stop-user").unwrap();
        assert_eq!((counted.count, counted.threshold, counted.step, counted.steps), (2.0, 5.0, None, 5));
        assert_eq!((stage.view(&key("bob")), stage.paused().count()), (None, 0));
    }
}
