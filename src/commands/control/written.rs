//! Writes one control record, and reads what the controls topic holds.

use std::io::Write;

use anyhow::ensure;
use rdkafka::Message as _;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;
use tollgate_core::decide::controls::ControlId;

use super::history::{Change, noted};
use super::listing::{Listing, compact};
use tollgate_operations::{Outgoing, Place, Topic, Topics, publish};

/// Writes a record, waits until the brokers have acknowledged it, and prints it on stdout with its place. Then it notes the change. `listing`
/// is what the topic held before.
pub(super) fn write(
    kafka: &KafkaSettings,
    listing: &anyhow::Result<Listing>,
    id: &ControlId,
    value: Option<&[u8]>,
    change: &Change,
) -> anyhow::Result<Place> {
    // A missing topic is reported at once, and not after a timeout.
    Topics::new(kafka)?.find(TopicRole::Controls)?;
    let key = id.to_string();
    let outgoing = Outgoing { topic: &kafka.topics.controls, partition: None, key: Some(&key), value, what: "the control" };
    let place = publish(kafka, &outgoing)?;
    let (topic, key) = (serde_json::to_string(&kafka.topics.controls)?, serde_json::to_string(&key)?);
    let value = value.map_or_else(|| "null".to_owned(), compact);
    let line = format!(r#"{{"topic":{topic},"partition":{},"offset":{},"key":{key},"value":{value}}}"#, place.0, place.1);
    writeln!(std::io::stdout(), "{line}")?;
    if listing.as_ref().is_ok_and(Listing::is_partial) {
        say!("tollgate: what restricts counts at once all the same; what permits counts when the transaction has ended");
    }
    let note = || -> anyhow::Result<()> {
        // The changes that a note has are not overwritten unread.
        let listing = listing.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
        let (key, value) = noted(listing, id, place, change)?;
        publish(kafka, &Outgoing { key: Some(&key), value: Some(&value), what: "its history", ..outgoing }).map(drop)
    };
    if let Err(error) = note() {
        say!("tollgate: it is written, and `control history` will not tell of it: {error:#}");
    }
    Ok(place)
}

/// Reads the whole topic into a listing.
pub(super) fn read(kafka: &KafkaSettings) -> anyhow::Result<Listing> {
    let topics = Topics::new(kafka)?;
    let topic = topics.find(TopicRole::Controls)?;
    ensure!(topic.partitions > 0, "topic {} has no partitions", topic.name);
    let mut listing = Listing::default();
    listing.set_partial(topics.say_open_transactions(topic)?);
    for partition in topic.all()? {
        topics.read(topic, partition, |offset, key, value| listing.take(partition, offset, key, value))?;
    }
    if listing.is_partial() {
        // Notes are in no transaction.
        read_notes(&Topics::uncommitted(kafka)?, topic, &mut listing)?;
    }
    Ok(listing)
}

/// Takes the notes that stand behind what a listing has taken, of transactions that are not committed too.
pub(super) fn read_notes(topics: &Topics<'_>, topic: Topic<'_>, listing: &mut Listing) -> anyhow::Result<()> {
    for partition in topic.all()? {
        let (begin, end) = topics.ends(topic, partition)?;
        let next = listing.next(partition).max(begin);
        if next < end {
            topics.read_from(topic, partition, next, |message| {
                listing.take_note(partition, message.offset(), message.key(), message.payload());
                true
            })?;
        }
    }
    Ok(())
}
