//! Publishes records and waits for their acknowledgements, for a limited time.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::BaseRecord;

use tollgate_config::settings::KafkaSettings;
use tollgate_core::event::record::Partition;
use tollgate_worker::kafka::{Linger, Right};

use crate::{Place, Sender, Sending};

/// How long the brokers may take to acknowledge the record: as long as it takes until a partition whose leader has died has another one.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);

/// Somebody waits for each record, so it goes out at once.
const SENDING: Sending = Sending {
    acknowledged_within: PUBLISH_TIMEOUT,
    room_within: PUBLISH_TIMEOUT,
    client_id: None,
    linger: Linger::None,
    batch_bytes_max: None,
    // Controls, requests and notes say what is so from now on.
    may_repeat: true,
};

/// A record to publish.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition; `None` is where murmur2 puts the key.
    pub partition: Option<Partition>,
    /// The key; `None` is a record without one, which its partition alone places.
    pub key: Option<&'a str>,
    /// The value. Null deletes the key in a compacted topic.
    pub value: Option<&'a [u8]>,
    /// What the record is, for people: `the event`.
    pub what: &'a str,
}

/// Publishes a record and returns its place, once all replicas that the topic asks for have acknowledged it.
pub fn publish(kafka: &KafkaSettings, outgoing: &Outgoing<'_>) -> anyhow::Result<Place> {
    let places = publish_all(kafka, std::slice::from_ref(outgoing))?;
    places.into_iter().next().with_context(|| format!("{} has no place", outgoing.what))
}

/// Publishes records, all at once, and returns their places in the same order. If one fails, others may stand in the topic all the same.
pub fn publish_all(kafka: &KafkaSettings, all: &[Outgoing<'_>]) -> anyhow::Result<Vec<Place>> {
    let sender: Sender<usize> = Sender::new(kafka, SENDING)?;
    for (number, outgoing) in all.iter().enumerate() {
        let mut record = BaseRecord::with_opaque_to(outgoing.topic, Box::new(number));
        (record.key, record.payload) = (outgoing.key.map(str::as_bytes), outgoing.value);
        record.partition = outgoing.partition.map(|partition| partition.0);
        let sent = sender.send(record, || false);
        sent.map_err(|error| anyhow!("{} cannot be published to {}: {error}", outgoing.what, outgoing.place()))?;
    }
    let mut outcomes: BTreeMap<usize, _> = sender.finish().into_iter().collect();
    // What is not reported was not acknowledged in time.
    let timed_out = || Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut));
    let place_of = |(number, outgoing): (usize, &Outgoing<'_>)| outgoing.placed(outcomes.remove(&number).unwrap_or_else(timed_out), kafka);
    all.iter().enumerate().map(place_of).collect()
}

impl Outgoing<'_> {
    /// Returns where it goes, for people.
    fn place(&self) -> String {
        self.partition.map_or_else(|| self.topic.to_owned(), |partition| format!("partition {partition} of {}", self.topic))
    }

    /// Returns the place where it stands, or says why it may not stand in its topic.
    fn placed(&self, outcome: Result<Place, KafkaError>, kafka: &KafkaSettings) -> anyhow::Result<Place> {
        let (what, place) = (self.what, self.place());
        outcome.map_err(|error| match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageTimedOut) => anyhow!(
                "the brokers at {} did not acknowledge {what} within {} s: whether it stands in {place} is unknown",
                kafka.brokers,
                PUBLISH_TIMEOUT.as_secs()
            ),
            code => match Right::refused_by(code, &kafka.group_id, || Right::write(self.topic)) {
                Some(right) => anyhow!("{what} was not published to {place}: {}", right.refusal(kafka)),
                None => anyhow!("{what} was not published to {place}: {error}"),
            },
        })
    }
}
