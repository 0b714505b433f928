//! The check that the state is keyed for as many partitions as there are, before a worker joins.
//!
//! Where the events topic was given more partitions, threads hash elsewhere, and a worker that took them there would know nothing of them:
//! a suppressed call would be allowed. So it does not start before `tollgate state rekey` has moved the state.

use rdkafka::consumer::BaseConsumer;

use tollgate_core::decide::thread::ThreadStore;
use tollgate_core::engine::checkpoint::{KeyedFor, KeyedState, Keying, OwnRecords, Rekey, StateKey};
use tollgate_core::event::record::Partition;

use crate::kafka::{PlainContext, Right, SecretFiles, StageTopics, make_consumer, reader_config};
use crate::partition::{RestoreError, read_own_records, read_to_end};
use crate::stop::Stop;
use tollgate_config::settings::KafkaSettings;

use super::preflight_error::{Counts, KeyedOtherwise, PreflightError, RETRY_PAUSE};

/// Checks that the state is keyed for as many partitions as the topics have. `drained` is the number of partitions that a worker is limited
/// to, which the state must be keyed for instead. It asks again while the brokers cannot be reached.
///
/// # Errors
/// Returns [`PreflightError::Keyed`] with what to do about it, [`PreflightError::Forbidden`] or [`PreflightError::State`].
pub fn check_keying(kafka: &KafkaSettings, count: u32, drained: Option<u32>, stop: &Stop) -> Result<(), PreflightError> {
    let topics = StageTopics::of(kafka);
    let partitions: Vec<_> = (0..count).filter_map(|number| i32::try_from(number).ok()).map(Partition).collect();
    let keying = ask_state(kafka, &topics, stop, |reader| {
        let own = read_own_records(reader, &topics.state, &partitions)?;
        keying(reader, &topics.state, &own, drained, stop)
    })?;
    Ok(judge(kafka, keying, count, drained)?)
}

/// Checks that what is known of subjects is keyed for as many partitions as the signals topic has. It asks again while the brokers cannot be
/// reached.
///
/// # Errors
/// As [`check_keying`].
pub fn check_subject_keying(kafka: &KafkaSettings, topics: &StageTopics, count: u32, stop: &Stop) -> Result<(), PreflightError> {
    let partitions: Vec<_> = (0..count).filter_map(|number| i32::try_from(number).ok()).map(Partition).collect();
    let own = ask_state(kafka, topics, stop, |reader| read_own_records(reader, &topics.state, &partitions).map(Some))?;
    match Keying::of(&own) {
        // Nothing was ever written there, or nothing says for how many partitions.
        Keying::Fits | Keying::Unknown => Ok(()),
        Keying::Other(found) | Keying::Mixed(found, _) | Keying::Moving(Rekey { from: found, .. }) => {
            let (state, events) = (topics.state.clone(), topics.input.clone());
            Err(KeyedOtherwise::Subjects(Counts { state, events, found, wanted: count }).into())
        }
    }
}

/// Asks a reader of a stage's state, with as many attempts as it needs. The question answers `None` if the sign to stop came meanwhile.
fn ask_state<T>(
    kafka: &KafkaSettings,
    topics: &StageTopics,
    stop: &Stop,
    question: impl Fn(&BaseConsumer<PlainContext>) -> Result<Option<T>, RestoreError>,
) -> Result<T, PreflightError> {
    let make_reader = || make_consumer(&reader_config(kafka, &topics.group_id), PlainContext::default());
    let (mut reader, mut secrets) = (make_reader().map_err(PreflightError::Client)?, SecretFiles::new(kafka));
    let topic = &topics.state;
    loop {
        match question(&reader) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => return Err(PreflightError::Stopped(kafka.shown_brokers())),
            Err(error) if error.reason() == "forbidden" => {
                return Err(PreflightError::Forbidden { refusals: vec![Right::read(topic).refusal(kafka)] });
            }
            Err(error) if error.reason() != "kafka" => return Err(PreflightError::State { topic: topic.clone(), error }),
            Err(error) => tracing::warn!(%error, topic, "trying again"),
        }
        if stop.wait(RETRY_PAUSE) {
            return Err(PreflightError::Stopped(kafka.shown_brokers()));
        }
        // The reader keeps the secrets that it was made with.
        if secrets.take_over_untried() {
            // Of a certificate and its key, one may have changed only.
            reader = make_reader().unwrap_or(reader);
        }
    }
}

/// Returns how the state is keyed; `None` if the sign to stop came first. Where no record says it, the threads do; `drained` is believed if it
/// explains where they are.
fn keying(
    reader: &BaseConsumer<PlainContext>,
    topic: &str,
    own: &[OwnRecords],
    drained: Option<u32>,
    stop: &Stop,
) -> Result<Option<Keying>, RestoreError> {
    let keying = Keying::of(own);
    if keying != Keying::Unknown {
        return Ok(Some(keying));
    }
    let count = u32::try_from(own.len()).unwrap_or(u32::MAX);
    let mut keyed_for = None;
    // The last partition with state comes first: there are at least as many partitions as its number says.
    for (number, _) in (0..count).zip(own).filter(|(_, own)| own.state.is_some()).rev() {
        let at = Partition(i32::try_from(number).unwrap_or(i32::MAX));
        let keyed_for = keyed_for.get_or_insert_with(|| KeyedFor::between(number + 1, count));
        let is_whole = read_to_end(reader, topic, at, |_, _, key, value| {
            if let (Ok(StateKey::Entry(id)), Some(_)) = (StateKey::read(key, ThreadStore::KIND), value) {
                keyed_for.take(id, at);
            }
            !stop.is_given()
        })?;
        // What some of the threads say must not be judged.
        if !is_whole {
            return Ok(None);
        }
    }
    let counts = keyed_for.as_ref().map_or(&[][..], KeyedFor::counts);
    Ok(Some(match (counts.last(), counts.first()) {
        (Some(last), _) if *last == count => Keying::Fits,
        (_, Some(first)) => Keying::Other(drained.filter(|drained| counts.contains(drained)).unwrap_or(*first)),
        (_, None) => {
            tracing::warn!(topic, "threads are on partitions that no number of partitions explains: the state is taken as it is");
            Keying::Fits
        }
    }))
}

fn judge(kafka: &KafkaSettings, keying: Keying, count: u32, drained: Option<u32>) -> Result<(), KeyedOtherwise> {
    let (state, events) = (kafka.topics.state.clone(), kafka.topics.events.clone());
    let counts = |found| Counts { state, events, found, wanted: count };
    match (keying, drained) {
        (Keying::Fits, None) => Ok(()),
        (Keying::Other(found), Some(drained)) if found == drained => Ok(()),
        (Keying::Fits, Some(drained)) => Err(KeyedOtherwise::NothingToDrain { counts: counts(count), drained }),
        (Keying::Other(found), _) => Err(KeyedOtherwise::Other(counts(found))),
        (Keying::Moving(Rekey { from, to }), _) => Err(KeyedOtherwise::Moving(Counts { wanted: to, ..counts(from) })),
        (Keying::Mixed(found, other), _) => Err(KeyedOtherwise::Mixed { counts: counts(found), other }),
        (Keying::Unknown, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::settings::{defaults, parse};

    fn said(keying: Keying, drained: Option<u32>) -> Option<String> {
        let user = parse("kafka: {topics: {events: e, state: s}}").unwrap();
        let kafka = tollgate_config::settings::Settings::read(&user, &defaults().unwrap()).unwrap().kafka;
        judge(&kafka, keying, 24, drained).err().map(|error| error.to_string())
    }

    #[test]
    fn a_worker_starts_only_on_state_that_is_keyed_for_its_partitions() {
        assert_eq!(said(Keying::Fits, None), None);
        let other = said(Keying::Other(12), None).unwrap();
        assert!(other.starts_with("the state in s is keyed for 12 partitions, and e has 24: "), "{other}");
        assert!(other.contains("`tollgate state rekey`") && other.ends_with("`tollgate run --drain-partitions 12`"), "{other}");
        let moving = said(Keying::Moving(Rekey { from: 12, to: 24 }), None).unwrap();
        assert!(moving.starts_with("the state in s is being moved from 12 to 24 partitions: "), "{moving}");
        assert!(
            said(Keying::Mixed(12, 24), None).unwrap().starts_with("some partitions of s are keyed for 12 partitions, and some for 24: ")
        );
    }

    #[test]
    fn what_came_before_is_drained_with_the_number_of_before() {
        assert_eq!(said(Keying::Other(12), Some(12)), None);
        assert!(said(Keying::Other(12), Some(6)).is_some() && said(Keying::Moving(Rekey { from: 12, to: 24 }), Some(12)).is_some());
        let nothing = said(Keying::Fits, Some(12)).unwrap();
        assert_eq!(nothing, "--drain-partitions 12: the state in s is keyed for 24 partitions; leave the option out");
    }
}
