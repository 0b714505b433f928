//! Whether the state may be moved: nobody is in the group, and every event of before the change is decided. Every question fails if the
//! brokers do not answer, or refuse to.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use tollgate_core::engine::checkpoint::{OwnRecords, Rekey};
use tollgate_core::event::record::{Offset, Partition};
use tollgate_worker::kafka::Right;

use super::Job;
use crate::BROKERS_TIMEOUT;

/// How long to wait for a record or the end of a partition.
const END_TIMEOUT: Duration = Duration::from_secs(15);
/// How many members and partitions are named.
const NAMED_MAX: usize = 5;

/// An offset that the group has committed, with what stands beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Committed {
    pub(super) offset: Offset,
    metadata: String,
}

/// Events of a partition that are not decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lag {
    partition: Partition,
    position: Offset,
    end: Offset,
}

/// Returns the offsets that the group has committed.
pub(super) fn committed(job: &Job<'_>) -> anyhow::Result<BTreeMap<Partition, Committed>> {
    let mut list = TopicPartitionList::with_capacity(job.partitions.len());
    job.partitions.iter().for_each(|partition| _ = list.add_partition(&job.topics.input, partition.0));
    let answered = job.asker.committed_offsets(list, BROKERS_TIMEOUT).map_err(|error| refused(job, &error))?;
    let mut committed = BTreeMap::new();
    for element in answered.elements() {
        element.error().map_err(|error| refused(job, &error))?;
        if let KafkaOffset::Offset(offset) = element.offset() {
            committed.insert(Partition(element.partition()), Committed { offset: Offset(offset), metadata: element.metadata().to_owned() });
        }
    }
    Ok(committed)
}

/// Returns where the events of a partition begin.
pub(super) fn low(job: &Job<'_>, partition: Partition) -> anyhow::Result<Offset> {
    watermarks(job, partition).map(|(low, _)| low)
}

fn watermarks(job: &Job<'_>, partition: Partition) -> anyhow::Result<(Offset, Offset)> {
    let found = job.asker.fetch_watermarks(&job.topics.input, partition.0, BROKERS_TIMEOUT);
    found.map(|(low, end)| (Offset(low), Offset(end))).map_err(|error| refused(job, &error))
}

/// Returns the members of the group, for people.
pub(super) fn members(job: &Job<'_>) -> anyhow::Result<Vec<String>> {
    let group_id = &job.topics.group_id;
    let list = job.asker.fetch_group_list(Some(group_id), BROKERS_TIMEOUT).map_err(|error| refused(job, &error))?;
    let groups = list.groups().iter().filter(|group| group.name() == group_id);
    let mut members: Vec<_> =
        groups.flat_map(|group| group.members()).map(|member| format!("{} at {}", member.id(), member.client_host())).collect();
    // A group of the newer protocol shows no members to this request. But then the brokers take an offset only from a member.
    if members.is_empty() && job.options.execute && takes_offsets_only_from_members(job)? {
        members.push("one that does not tell its name".to_owned());
    }
    Ok(members)
}

/// Commits an offset that is committed already, and returns whether that was refused because the group has members.
fn takes_offsets_only_from_members(job: &Job<'_>) -> anyhow::Result<bool> {
    let Some((partition, Committed { offset, metadata })) = committed(job)?.into_iter().next() else { return Ok(false) };
    let mut list = TopicPartitionList::with_capacity(1);
    let mut element = list.add_partition(&job.topics.input, partition.0);
    element.set_offset(KafkaOffset::Offset(offset.0))?;
    element.set_metadata(metadata);
    match job.asker.commit(&list, CommitMode::Sync) {
        Ok(()) => Ok(false),
        Err(error) => match error.rdkafka_error_code() {
            Some(
                RDKafkaErrorCode::UnknownMemberId
                | RDKafkaErrorCode::IllegalGeneration
                | RDKafkaErrorCode::RebalanceInProgress
                | RDKafkaErrorCode::StaleMemberEpoch,
            ) => Ok(true),
            _ => Err(refused(job, &error)),
        },
    }
}

/// Returns why members of the group are in the way.
pub(super) fn refusal(members: &[String]) -> Option<String> {
    let named: Vec<_> = members.iter().take(NAMED_MAX).map(String::as_str).collect();
    (!members.is_empty()).then(|| {
        format!(
            "members of the group: {} ({}). Stop all workers; one that has an instance id, or was killed, is a member until its session \
             times out",
            members.len(),
            named.join(", ")
        )
    })
}

/// Returns the partitions of before the change that have events which are not decided.
pub(super) fn lags(job: &Job<'_>, rekey: Rekey, own: &[OwnRecords]) -> anyhow::Result<Vec<Lag>> {
    let (committed, mut lags) = (committed(job)?, Vec::new());
    for (partition, own) in job.partitions.iter().copied().zip(own).take(rekey.from as usize) {
        let (low, end) = watermarks(job, partition)?;
        let position = committed.get(&partition).map(|committed| committed.offset).or(own.state.as_ref().map(|state| state.next));
        let position = position.unwrap_or(low).max(low);
        // Transactions of producers leave offsets without a record.
        if position < end && has_record(job, partition, position)? {
            lags.push(Lag { partition, position, end });
        }
    }
    Ok(lags)
}

/// Returns whether a partition of the events has a record from an offset on.
fn has_record(job: &Job<'_>, partition: Partition, from: Offset) -> anyhow::Result<bool> {
    let mut list = TopicPartitionList::with_capacity(1);
    list.add_partition_offset(&job.topics.input, partition.0, KafkaOffset::Offset(from.0))?;
    job.reader.assign(&list)?;
    let deadline = Instant::now() + END_TIMEOUT;
    let found = loop {
        match job.reader.poll(Duration::from_millis(50)) {
            Some(Ok(_)) => break Ok(true),
            Some(Err(KafkaError::PartitionEOF(ended))) if ended == partition.0 => break Ok(false),
            Some(Err(error)) if Right::refused_by(error.rdkafka_error_code(), "", || Right::read("")).is_some() => {
                break Err(refused(job, &error));
            }
            // Where it cannot be told, there may be one.
            Some(Err(_)) | None if Instant::now() > deadline => break Ok(true),
            Some(Err(_)) | None => {}
        }
    };
    job.reader.unassign()?;
    found
}

/// Returns why events that are not decided are in the way.
pub(super) fn lag_refusal(job: &Job<'_>, rekey: Rekey, lags: &[Lag]) -> Option<String> {
    let events: i64 = lags.iter().map(|lag| lag.end.0 - lag.position.0).sum();
    let named: Vec<_> = lags
        .iter()
        .take(NAMED_MAX)
        .map(|Lag { partition, position, end }| format!("partition {partition}: decided up to {position} of {end}"))
        .collect();
    (!lags.is_empty() && !job.options.accept_lag).then(|| {
        format!(
            "events of before the change that are not decided: {events} ({}{}). Decide them with `tollgate run --drain-partitions {}` until the lag is 0, \
             and stop it. --accept-lag moves the state nevertheless, and these events are then decided without what is known of their threads",
            named.join("; "),
            if lags.len() > NAMED_MAX { "; …" } else { "" },
            rekey.from
        )
    })
}

fn refused(job: &Job<'_>, error: &KafkaError) -> anyhow::Error {
    let topics = &job.topics;
    match Right::refused_by(error.rdkafka_error_code(), &topics.group_id, || Right::read(&topics.input)) {
        Some(right) => anyhow!("{}", right.refusal(&job.settings.kafka)),
        None => anyhow!("the brokers at {} do not say how the group stands: {error}", job.settings.kafka.shown_brokers()),
    }
}
