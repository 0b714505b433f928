//! Requests to the abuse stage: records of the signals topic, and whether the stage has obeyed them yet.
//!
//! The stage commits its offset only behind records whose effects are published. So a request is obeyed once the offset that the stage's group
//! has committed on its partition is greater than the request's own. A stage that commits nothing, as that of `tollgate dev`, is seen only by
//! the alert that it raises of a pardon, or of a rule that is paused no more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer as _;
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::{Message as _, Offset as KafkaOffset, TopicPartitionList};

use tollgate_abuse::Action;
use tollgate_config::settings::Settings;
use tollgate_config::topics::TopicRole;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_worker::kafka::{Inquirer, PropertyFault, Right, Watch, asker_config};

use super::alerts::Alert;
use crate::commands::shared::{Hints, Interrupt};
use tollgate_operations::Topics;

/// How often the group's offsets are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// What alerts say of requests that were obeyed.
const OBEYED: [Action; 2] = [Action::Pardoned, Action::EnforcementResumed];
/// How long the brokers may take to tell them.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a request stands.
pub(super) type Place = (Partition, Offset);

/// What can be seen of the abuse stage.
pub(super) struct StageView<'s> {
    settings: &'s Settings,
    topics: &'s Topics<'s>,
    inquirer: Inquirer,
    interrupt: &'s Interrupt,
    /// For how long the stage is waited for.
    wait: Duration,
    /// Where the alerts ended before the requests, if the stage commits no offsets.
    alert_ends: Option<Vec<Place>>,
}

impl<'s> StageView<'s> {
    /// Looks at the stage before requests are written.
    ///
    /// # Errors
    /// librdkafka does not take the configuration.
    pub(super) fn before(settings: &'s Settings, topics: &'s Topics<'s>, wait: Duration, interrupt: &'s Interrupt) -> anyhow::Result<Self> {
        let kafka = &settings.kafka;
        let inquirer = Inquirer::new(asker_config(kafka, &settings.abuse_group())).map_err(|error| PropertyFault::of(&error, kafka))?;
        let mut view = Self { settings, topics, inquirer, interrupt, wait, alert_ends: None };
        let deadline = Instant::now() + wait;
        if !wait.is_zero()
            && matches!(view.look(&topics.find(TopicRole::Signals)?.all()?, deadline), Some(Ok(committed)) if committed.is_empty())
        {
            // Who may not see the alerts sees less.
            view.alert_ends = Some(view.ends_of_alerts().unwrap_or_default());
        }
        Ok(view)
    }

    fn ends_of_alerts(&self) -> anyhow::Result<Vec<Place>> {
        let topic = self.topics.find(TopicRole::Alerts)?;
        topic.all()?.into_iter().map(|partition| Ok((partition, self.topics.ends_at_once(topic, partition)?.1))).collect()
    }

    fn is_awaited(&self, deadline: Instant) -> bool {
        Instant::now() < deadline && !self.interrupt.stop.is_given()
    }

    /// Waits until the abuse stage has obeyed all requests, for a time at most or until a signal comes. Returns for each whether it has.
    /// `keys` are those of the alerts that the stage raises of them, in the same order.
    pub(super) fn await_obeyed(&self, places: &[Place], keys: &[String]) -> Vec<bool> {
        let (mut obeyed, partitions) = (vec![false; places.len()], places.iter().map(|place| place.0).collect::<Vec<_>>());
        // The time begins once the requests are written, which takes a while if the leader of their partition is away.
        let deadline = Instant::now() + self.wait;
        while self.is_awaited(deadline) {
            match self.look(&partitions, deadline) {
                Some(Ok(committed)) => obeyed = passed(places, &committed),
                Some(Err(error)) if self.is_refused(&error) => break,
                Some(Err(_)) => {}
                None => break,
            }
            let alerted = self.alerted();
            keys.iter().zip(&mut obeyed).for_each(|(key, is_obeyed)| *is_obeyed |= alerted.contains(key));
            let is_over = obeyed.iter().all(|is_obeyed| *is_obeyed);
            if is_over || self.interrupt.stop.wait(LOOK_INTERVAL.min(deadline.saturating_duration_since(Instant::now()))) {
                break;
            }
        }
        if obeyed.contains(&false) {
            // A question may be open still, and the process ends soon.
            self.inquirer.abandon();
        }
        obeyed
    }

    /// Asks for the offsets that the group has committed. Returns `None` if the answer is not wanted any more.
    fn look(&self, partitions: &[Partition], deadline: Instant) -> Option<Result<BTreeMap<Partition, Offset>, KafkaError>> {
        let partitions: BTreeSet<_> = partitions.iter().map(|partition| partition.0).collect();
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(&self.settings.kafka.topics.signals, partition);
        }
        // The brokers have answered before, so that there is nothing to say of them.
        let watch = &mut Watch { is_wanted: &|| self.is_awaited(deadline), say: &mut |_| {} };
        let answer = self.inquirer.ask_group(watch, move |client| client.committed_offsets(list, QUESTION_TIMEOUT))?;
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

    /// Says that a right is wanting, if that is the error.
    fn is_refused(&self, error: &KafkaError) -> bool {
        let Settings { kafka, .. } = self.settings;
        let signals = || Right::read(&kafka.topics.signals);
        let right = Right::refused_by(error.rdkafka_error_code(), &self.settings.abuse_group(), signals);
        if let Some(right) = &right {
            say!("tollgate: whether the abuse stage has obeyed cannot be seen: {}", right.refusal(kafka));
        }
        right.is_some()
    }

    /// Returns the keys of alerts that a request was obeyed, of those since the requests. A stage that commits no offsets is seen by nothing
    /// else.
    fn alerted(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        let Some((ends, topic)) = self.alert_ends.as_ref().zip(self.topics.find(TopicRole::Alerts).ok()) else { return keys };
        for (partition, from) in ends {
            if !matches!(self.topics.ends_at_once(topic, *partition), Ok((_, end)) if end > *from) {
                continue;
            }
            let take = |message: &BorrowedMessage<'_>| {
                let place = (*partition, message.offset());
                let alert = Alert::read(place, None, message.key(), message.payload());
                let is_answer = |alert: &Alert| OBEYED.iter().any(|action| alert.text("action") == action.as_str());
                keys.extend(alert.filter(is_answer).map(|alert| alert.key));
                true
            };
            // What cannot be read is looked at again.
            let _read = self.topics.read_at_once(topic, *partition, *from, take);
        }
        keys
    }

    /// Says that requests stand in the log, and that the stage is not known to have obeyed them. `what` names them: `the pardon of
    /// user/6e1f…`.
    pub(super) fn tell_requested(&self, what: &str, hints: &Hints) {
        let (topic, group) = (&self.settings.kafka.topics.signals, self.settings.abuse_group());
        if self.wait.is_zero() {
            say!(
                "requested: {what} stands in {topic}, and is obeyed once the abuse stage reads it; with --wait 0s nobody has looked whether it has"
            );
            return;
        }
        let within = if self.interrupt.stop.is_given() { "so far".to_owned() } else { format!("within {} s", self.wait.as_secs()) };
        let (run, run_stage) = (hints.command("run"), hints.command("run --stage abuse"));
        if self.alert_ends.is_some() {
            say!(
                "tollgate: requested, and not known to be obeyed: {what} stands in {topic}, and the group {group} has committed no offset {within}: \
                 no worker has run the abuse stage yet (`{run}`, or `{run_stage}`), or it runs in `tollgate dev`, which never commits, and had nothing to pardon or resume"
            );
        } else {
            say!(
                "tollgate: requested, and not obeyed yet: {what} stands in {topic}, and the abuse stage has not read it {within}; it is obeyed \
                 once the stage reads it. Does a worker run it (`{run}`, or `{run_stage}`), with the group {group}? How far it lags: \
                 tollgate_abuse_clock_lag_seconds"
            );
        }
    }
}

/// Returns for each request whether the committed offset has passed it.
fn passed(places: &[Place], committed: &BTreeMap<Partition, Offset>) -> Vec<bool> {
    places.iter().map(|(partition, offset)| committed.get(partition).is_some_and(|committed| committed > offset)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_obeyed_once_the_offset_behind_it_is_committed() {
        let places = [(Partition(0), Offset(7)), (Partition(0), Offset(8)), (Partition(2), Offset(0))];
        assert_eq!(passed(&places, &BTreeMap::new()), [false; 3]);
        let committed = BTreeMap::from([(Partition(0), Offset(8)), (Partition(1), Offset(9))]);
        assert_eq!(passed(&places, &committed), [true, false, false]);
        let committed = BTreeMap::from([(Partition(0), Offset(9)), (Partition(2), Offset(1))]);
        assert_eq!(passed(&places, &committed), [true; 3]);
    }
}
