//! Writes one control record, and reads what the controls topic holds.

use std::io::Write;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::{anyhow, ensure};
use rdkafka::Message as _;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;
use tollgate_core::decide::controls::ControlId;

use super::history::{Change, noted};
use super::listing::{Listing, compact};
use tollgate_operations::{Outgoing, Place, Topic, Topics, publish};

/// How long a command that writes waits for what the topic holds. A partition without a leader cannot be read, and that may last.
const READ_TIME_MAX: Duration = Duration::from_secs(5);

/// Writes a record and notes the change. `listing` is what the topic held before.
pub(super) fn write(
    kafka: &KafkaSettings,
    listing: &anyhow::Result<Listing>,
    id: &ControlId,
    value: Option<&[u8]>,
    change: &Change,
) -> anyhow::Result<Place> {
    let place = put(kafka, id, value)?;
    note(kafka, listing, id, place, change);
    Ok(place)
}

/// Writes a record, waits until the brokers have acknowledged it, and prints it on stdout with its place.
pub(super) fn put(kafka: &KafkaSettings, id: &ControlId, value: Option<&[u8]>) -> anyhow::Result<Place> {
    // A missing topic is reported at once, and not after a timeout.
    Topics::new(kafka)?.find(TopicRole::Controls)?;
    let key = id.to_string();
    let place = publish(kafka, &outgoing(kafka, &key, value, "the control"))?;
    let (topic, key) = (serde_json::to_string(&kafka.topics.controls)?, serde_json::to_string(&key)?);
    let value = value.map_or_else(|| "null".to_owned(), compact);
    let line = format!(r#"{{"topic":{topic},"partition":{},"offset":{},"key":{key},"value":{value}}}"#, place.0, place.1);
    writeln!(std::io::stdout(), "{line}")?;
    Ok(place)
}

/// Notes the change that a written record is. If the change cannot be noted, it is written all the same.
pub(super) fn note(kafka: &KafkaSettings, listing: &anyhow::Result<Listing>, id: &ControlId, place: Place, change: &Change) {
    if listing.as_ref().is_ok_and(Listing::is_partial) {
        say!("tollgate: what restricts counts at once all the same; what permits counts when the transaction has ended");
    }
    let note = || -> anyhow::Result<()> {
        // The changes that a note has are not overwritten unread.
        let listing = listing.as_ref().map_err(|error| anyhow!("{error:#}"))?;
        let (key, value) = noted(listing, id, place, change)?;
        publish(kafka, &outgoing(kafka, &key, Some(&value), "its history")).map(drop)
    };
    if let Err(error) = note() {
        say!("tollgate: it is written, and `control history` will not tell of it: {error:#}");
    }
}

fn outgoing<'a>(kafka: &'a KafkaSettings, key: &'a str, value: Option<&'a [u8]>, what: &'a str) -> Outgoing<'a> {
    Outgoing { topic: &kafka.topics.controls, partition: None, key: Some(key), value, what }
}

/// Reads the whole topic into a listing, and waits for that a few seconds at most.
///
/// # Errors
/// The topic cannot be read, or not in that time.
pub(super) fn read_in_time(kafka: &KafkaSettings) -> anyhow::Result<Listing> {
    let kafka = kafka.clone();
    within(READ_TIME_MAX, move || read(&kafka))?.unwrap_or_else(|| {
        Err(anyhow!("the controls topic (kafka.topics.controls) could not be read within {} s", READ_TIME_MAX.as_secs()))
    })
}

/// Returns what a question brings, or `None` if that takes longer. The question then goes on unheard.
fn within<T: Send + 'static>(time_max: Duration, question: impl FnOnce() -> T + Send + 'static) -> std::io::Result<Option<T>> {
    let (sender, receiver) = sync_channel(1);
    std::thread::Builder::new().name("question".to_owned()).spawn(move || _ = sender.send(question()))?;
    Ok(receiver.recv_timeout(time_max).ok())
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_question_that_is_never_answered_holds_nobody_up() {
        assert_eq!(within(Duration::from_secs(600), || 7).unwrap(), Some(7));
        let (end, never) = channel::<u32>();
        assert_eq!(within(Duration::from_millis(1), move || never.recv()).unwrap(), None);
        drop(end);
    }
}
