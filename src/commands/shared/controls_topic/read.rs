//! Reads the controls topic into a listing.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::{anyhow, ensure};
use rdkafka::Message as _;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;

use super::listing::Listing;
use tollgate_operations::{Topic, Topics};

/// How long a command that writes waits for what the topic holds. A partition without a leader cannot be read, and that may last.
const READ_TIME_MAX: Duration = Duration::from_secs(5);

/// Reads the whole topic into a listing, and waits for that a few seconds at most.
///
/// # Errors
/// The topic cannot be read, or not in that time.
pub(crate) fn read_in_time(kafka: &KafkaSettings) -> anyhow::Result<Listing> {
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
pub(crate) fn read(kafka: &KafkaSettings) -> anyhow::Result<Listing> {
    let topics = Topics::new(kafka)?;
    let topic = topics.find(TopicRole::Controls)?;
    ensure!(topic.partitions > 0, "topic {} has no partitions", topic.name);
    let mut listing = Listing::default();
    listing.set_partial(topics.say_open_transactions(topic)?);
    for partition in topic.all()? {
        topics.read(topic, partition, |offset, key, value| listing.take(partition, offset, key, value))?;
    }
    // Asked for last, so that no report is ahead of an end that is known.
    for partition in topic.all()? {
        listing.set_end(partition, topics.ends(topic, partition)?.1);
    }
    if listing.is_partial() {
        // Notes are in no transaction.
        read_notes(&Topics::uncommitted(kafka)?, topic, &mut listing)?;
    }
    Ok(listing)
}

/// Takes the notes that stand behind what a listing has taken, of transactions that are not committed too.
pub(crate) fn read_notes(topics: &Topics<'_>, topic: Topic<'_>, listing: &mut Listing) -> anyhow::Result<()> {
    for partition in topic.all()? {
        let (begin, end) = topics.ends(topic, partition)?;
        listing.set_end(partition, end);
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
