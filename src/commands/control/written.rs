//! Writes one control record, and reads what the controls topic holds.

use std::io::Write;

use anyhow::ensure;

use tollgate_config::settings::KafkaSettings;
use tollgate_core::decide::controls::ControlId;

use super::listing::{Listing, compact};
use tollgate_operations::Topics;
use tollgate_operations::{Outgoing, publish};

/// Writes a record, waits until the brokers have acknowledged it, and prints it on stdout with its place.
pub(super) fn write(kafka: &KafkaSettings, id: &ControlId, value: Option<&[u8]>) -> anyhow::Result<()> {
    // A missing topic is reported at once, and not after a timeout.
    let topics = Topics::new(kafka)?;
    let controls = topics.controls()?;
    let key = id.to_string();
    let outgoing = Outgoing { topic: &kafka.topics.controls, partition: None, key: Some(&key), value, what: "the control" };
    let (partition, offset) = publish(kafka, &outgoing)?;
    let (topic, key) = (serde_json::to_string(&kafka.topics.controls)?, serde_json::to_string(&key)?);
    let value = value.map_or_else(|| "null".to_owned(), compact);
    let line = format!(r#"{{"topic":{topic},"partition":{partition},"offset":{offset},"key":{key},"value":{value}}}"#);
    writeln!(std::io::stdout(), "{line}")?;
    if topics.say_open_transactions(controls)? {
        say!("tollgate: what restricts counts at once all the same; what permits counts when the transaction has ended");
    }
    Ok(())
}

/// Returns whether a control is in force, by the records of the topic.
pub(super) fn is_in_force(kafka: &KafkaSettings, id: &ControlId) -> anyhow::Result<bool> {
    Ok(read(kafka)?.is_in_force(id))
}

/// Reads the whole topic into a listing.
pub(super) fn read(kafka: &KafkaSettings) -> anyhow::Result<Listing> {
    let topics = Topics::new(kafka)?;
    let topic = topics.controls()?;
    ensure!(topic.partitions > 0, "topic {} has no partitions", topic.name);
    topics.say_open_transactions(topic)?;
    let mut listing = Listing::default();
    for partition in topic.all()? {
        topics.read(topic, partition, |offset, key, value| listing.take(partition, offset, key, value))?;
    }
    Ok(listing)
}
