//! The waiter: reads all partitions of the decisions topic, as orchestrators do.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::{Offset, TopicPartitionList};

use super::Arrivals;
use super::producer::NUMBER_HEADER;
use super::topics::client;
use tollgate_config::settings::KafkaSettings;
use tollgate_worker::kafka::PlainContext;

const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
/// How many verdicts are read before checking whether that was all.
const ROUND: usize = 256;
/// How long verdicts are waited for once all events are sent, if some still come.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(30);

/// Waits for verdicts on every partition of a topic, as an orchestrator does.
pub struct Reader {
    consumer: BaseConsumer<PlainContext>,
    topic: String,
    partitions: i32,
}

impl Reader {
    /// Returns a reader of a topic from this offset on.
    pub fn new(kafka: &KafkaSettings, topic: &str, from: Offset) -> Result<Self> {
        let reader = Self::counter(kafka, topic)?;
        let mut list = TopicPartitionList::new();
        // This is the end as it is now, and not as it is when the first fetch arrives.
        let ends = if from == Offset::End { reader.ends()? } else { Vec::new() };
        for partition in 0..reader.partitions {
            let end = usize::try_from(partition).ok().and_then(|at| ends.get(at)).map(|end| Offset::Offset(*end));
            list.add_partition_offset(topic, partition, end.unwrap_or(from))?;
        }
        reader.consumer.assign(&list)?;
        Ok(reader)
    }

    /// Returns a reader that only counts how much a topic holds, and fetches nothing.
    pub fn counter(kafka: &KafkaSettings, topic: &str) -> Result<Self> {
        let mut config = client(kafka);
        config
            .set("client.id", "tollgate-bench")
            // librdkafka wants a group even of clients that never join it.
            .set("group.id", "tollgate-bench")
            .set("enable.auto.commit", "false")
            .set("fetch.wait.max.ms", "100")
            .set("fetch.queue.backoff.ms", "5");
        let consumer: BaseConsumer<PlainContext> = config.create_with_context(PlainContext::default()).context("kafka.properties")?;
        let metadata =
            consumer.fetch_metadata(Some(topic), REQUEST_TIME_MAX).map_err(|error| anyhow!("the brokers do not answer: {error}"))?;
        let found = metadata.topics().iter().find(|found| found.name() == topic && found.error().is_none());
        let partitions = i32::try_from(found.map_or(0, |found| found.partitions().len()))?;
        ensure!(partitions > 0, "topic {topic} is missing at {}", kafka.brokers);
        Ok(Self { consumer, topic: topic.to_owned(), partitions })
    }

    /// Reads verdicts until all that are `awaited` are there, or none has come for the time of grace, or only few for half a minute. What
    /// is awaited is known when all has been sent. Verdicts that come after their deadline are misses all the same; they are read so that
    /// the next phase begins without them.
    pub fn collect(&self, arrivals: &mut Arrivals, start: Instant, awaited: &OnceLock<Option<Vec<bool>>>, grace: Duration) {
        let mut last_progress = Instant::now();
        let mut all_sent = None;
        loop {
            for _ in 0..ROUND {
                match self.consumer.poll(POLL) {
                    Some(Ok(message)) => {
                        last_progress = Instant::now();
                        if let Some(number) = number_of(&message) {
                            arrivals.observe(number, start.elapsed());
                        }
                    }
                    Some(Err(error)) => tracing::debug!(%error, "waiter"),
                    None => break,
                }
            }
            let is_over = match awaited.get() {
                None => false,
                // The sender has failed, and there is nothing to wait for.
                Some(None) => true,
                Some(Some(awaited)) => {
                    let waited = all_sent.get_or_insert_with(Instant::now).elapsed();
                    arrivals.is_complete(awaited) || last_progress.elapsed() > grace || waited > grace.max(DRAIN_TIME_MAX)
                }
            };
            if is_over {
                return;
            }
        }
    }

    /// Returns how many records have been written to the topic.
    pub fn count(&self) -> Result<u64> {
        self.ends()?.into_iter().map(|end| Ok(u64::try_from(end)?)).sum()
    }

    /// Returns the end of every partition. One request asks a broker for all of them, since this runs often beside a measured worker.
    fn ends(&self) -> Result<Vec<i64>> {
        let mut list = TopicPartitionList::new();
        for partition in 0..self.partitions {
            // In place of a time this asks for the end.
            list.add_partition_offset(&self.topic, partition, Offset::End)?;
        }
        let mut ends =
            self.consumer.offsets_for_times(list, REQUEST_TIME_MAX)?.elements().iter().map(end_of).collect::<Result<Vec<_>>>()?;
        ends.sort_by_key(|(partition, _)| *partition);
        Ok(ends.into_iter().map(|(_, end)| end).collect())
    }

    /// Returns the next record, if one comes within this time.
    pub(super) fn next(&self, wait: Duration) -> Option<BorrowedMessage<'_>> {
        self.consumer.poll(wait)?.inspect_err(|error| tracing::debug!(%error, "waiter")).ok()
    }

    /// Hands so many records to `take`, from the reader's position on.
    pub fn take(&self, count: u64, mut take: impl FnMut(&BorrowedMessage<'_>)) -> Result<()> {
        let deadline = Instant::now() + REQUEST_TIME_MAX * 6;
        let mut taken = 0;
        while taken < count {
            ensure!(Instant::now() < deadline, "only {taken} of {count} records of {} could be read", self.topic);
            if let Some(Ok(message)) = self.consumer.poll(POLL) {
                take(&message);
                taken += 1;
            }
        }
        Ok(())
    }
}

/// Returns the partition, and the offset that the broker gave for it.
fn end_of(element: &TopicPartitionListElem<'_>) -> Result<(i32, i64)> {
    element.error()?;
    let end = element.offset().to_raw().filter(|end| *end >= 0).context("the broker does not say where a partition ends")?;
    Ok((element.partition(), end))
}

/// Returns the number of the event that a verdict answers.
fn number_of(message: &BorrowedMessage<'_>) -> Option<u64> {
    std::str::from_utf8(header(message, NUMBER_HEADER)?).ok()?.parse().ok()
}

/// Returns the value of a header.
pub(super) fn header<'m>(message: &'m BorrowedMessage<'_>, name: &str) -> Option<&'m [u8]> {
    message.headers()?.iter().find(|header| header.key == name)?.value
}
