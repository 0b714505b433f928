//! Requests to the abuse stage: records of the signals topic, and whether the stage has obeyed them yet.
//!
//! The stage commits its offset only behind records whose effects are published. So a request is obeyed once the offset that the stage's group
//! has committed on its partition is greater than the request's own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};

use crate::kafka::{Inquirer, PropertyFault, Right, Watch, asker_config};
use crate::settings::Settings;
use tollgate_core::record::{Offset, Partition};

use super::super::hints::Hints;
use super::super::interrupt::Interrupt;

/// How often the group's offsets are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How long the brokers may take to tell them.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a request stands.
pub(super) type Place = (Partition, Offset);

/// Waits until the abuse stage has obeyed all requests, for a time at most or until a signal comes. Returns for each whether it has.
///
/// # Errors
/// librdkafka does not take the configuration.
pub(super) fn await_obeyed(settings: &Settings, places: &[Place], wait: Duration, interrupt: &Interrupt) -> anyhow::Result<Vec<bool>> {
    if wait.is_zero() {
        return Ok(vec![false; places.len()]);
    }
    let deadline = Instant::now() + wait;
    let is_wanted = || Instant::now() < deadline && !interrupt.stop.is_given();
    let (kafka, group_id) = (&settings.kafka, settings.abuse_group());
    let inquirer = Inquirer::new(asker_config(kafka, &group_id)).map_err(|error| PropertyFault::of(&error, kafka))?;
    let mut committed = BTreeMap::new();
    while is_wanted() && !obeyed(places, &committed).iter().all(|is_obeyed| *is_obeyed) {
        match look(&inquirer, &kafka.topics.signals, places, &is_wanted) {
            Some(Ok(found)) => committed = found,
            Some(Err(error)) => {
                let right = Right::refused_by(error.rdkafka_error_code(), &group_id, || Right::read(&kafka.topics.signals));
                if let Some(right) = right {
                    say!("tollgate: whether the abuse stage has obeyed cannot be seen: {}", right.refusal(kafka));
                    break;
                }
            }
            None => break,
        }
        if interrupt.stop.wait(LOOK_INTERVAL.min(deadline.saturating_duration_since(Instant::now()))) {
            break;
        }
    }
    let obeyed = obeyed(places, &committed);
    if obeyed.contains(&false) {
        // A question may be open still, and the process ends soon.
        inquirer.abandon();
    }
    Ok(obeyed)
}

/// Asks for the offsets that the group has committed. Returns `None` if the answer is not wanted any more.
fn look(
    inquirer: &Inquirer,
    topic: &str,
    places: &[Place],
    is_wanted: &dyn Fn() -> bool,
) -> Option<Result<BTreeMap<Partition, Offset>, KafkaError>> {
    let mut list = TopicPartitionList::new();
    let mut partitions: Vec<_> = places.iter().map(|(partition, _)| partition.0).collect();
    partitions.sort_unstable();
    partitions.dedup();
    partitions.into_iter().for_each(|partition| _ = list.add_partition(topic, partition));
    // The brokers have taken the requests, so that there is nothing to say of them.
    let watch = &mut Watch { is_wanted, say: &mut |_| {} };
    let answer = inquirer.ask_group(watch, move |client| client.committed_offsets(list, QUESTION_TIMEOUT))?;
    Some(answer.and_then(|list| {
        let mut committed = BTreeMap::new();
        for element in list.elements() {
            element.error()?;
            if let KafkaOffset::Offset(offset) = element.offset() {
                committed.insert(Partition(element.partition()), Offset(offset));
            }
        }
        Ok(committed)
    }))
}

/// Returns for each request whether the committed offset has passed it.
fn obeyed(places: &[Place], committed: &BTreeMap<Partition, Offset>) -> Vec<bool> {
    places.iter().map(|(partition, offset)| committed.get(partition).is_some_and(|committed| committed > offset)).collect()
}

/// Says that requests stand in the log, and that the stage has not obeyed them yet. `what` names them: `the pardon of user/6e1f…`.
pub(super) fn tell_requested(what: &str, settings: &Settings, hints: &Hints, (wait, interrupt): (Duration, &Interrupt)) {
    let topic = &settings.kafka.topics.signals;
    if wait.is_zero() {
        say!(
            "requested: {what} stands in {topic}, and is obeyed once the abuse stage reads it; with --wait 0s nobody has looked whether it has"
        );
        return;
    }
    let within = if interrupt.stop.is_given() { "so far".to_owned() } else { format!("within {} s", wait.as_secs()) };
    let (run, run_stage) = (hints.command("run"), hints.command("run --stage abuse"));
    say!(
        "tollgate: requested, and not obeyed yet: {what} stands in {topic}, and the abuse stage has not read it {within}; it is obeyed once the \
         stage reads it. Does a worker run it (`{run}`, or `{run_stage}`), with the group {}? How far it lags: tollgate_abuse_clock_lag_seconds",
        settings.abuse_group()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_obeyed_once_the_offset_behind_it_is_committed() {
        let places = [(Partition(0), Offset(7)), (Partition(0), Offset(8)), (Partition(2), Offset(0))];
        assert_eq!(obeyed(&places, &BTreeMap::new()), [false; 3]);
        let committed = BTreeMap::from([(Partition(0), Offset(8)), (Partition(1), Offset(9))]);
        assert_eq!(obeyed(&places, &committed), [true, false, false]);
        let committed = BTreeMap::from([(Partition(0), Offset(9)), (Partition(2), Offset(1))]);
        assert_eq!(obeyed(&places, &committed), [true; 3]);
    }
}
