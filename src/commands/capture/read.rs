//! Reading spans of a topic, all partitions at once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message as _};
use rdkafka::{Offset as KafkaOffset, TopicPartitionList};
use tollgate_core::record::{Header, Record};
use tollgate_core::redact::{RedactedRecord, Redactor};

use crate::capture::write_envelope;
use crate::kafka::{PlainContext, consumer_config, is_unreachable, make_consumer, with_record};
use crate::settings::KafkaSettings;
use crate::stop::Stop;

use super::bounds::Span;
use super::progress::Progress;

const POLL: Duration = Duration::from_millis(100);
/// How long the brokers may be silent while records are missing.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How long a record may wait for its piece of the file where the end is open.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
const WATERMARKS_TIMEOUT: Duration = Duration::from_secs(10);
/// How many records that were left out are named.
const NAMED_MAX: usize = 10;

/// Returns a reader in no consumer group. It reads what a worker reads: records of transactions that were aborted are none.
pub(super) fn consumer(kafka: &KafkaSettings) -> anyhow::Result<BaseConsumer<PlainContext>> {
    let mut config = consumer_config(kafka, &kafka.group_id, None);
    config.set("client.id", "tollgate-capture").set("statistics.interval.ms", "0").set("enable.partition.eof", "true");
    // Where retention has taken what comes next, reading goes on with the first record that is there, and the gap is told.
    config.set("auto.offset.reset", "earliest");
    make_consumer(&config, PlainContext).context("kafka.properties")
}

/// What could not be captured.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Records that were left out, with the reason.
    left_out: Vec<String>,
    count: u64,
    /// Offsets that retention took before they were read.
    deleted: u64,
}

impl Faults {
    fn leave_out(&mut self, sentence: String) {
        self.count += 1;
        if self.left_out.len() < NAMED_MAX {
            self.left_out.push(sentence);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.deleted == 0
    }

    /// Tells people what is missing.
    pub(super) fn report(&self) {
        self.left_out.iter().for_each(|sentence| say!("tollgate: {sentence}"));
        if self.count > 0 {
            say!("tollgate: {} records were left out", self.count);
        }
        if self.deleted > 0 {
            say!("tollgate: {} offsets were deleted by the topic's retention before they were read", self.deleted);
        }
    }
}

/// Returns how many offsets of a span, from its next one up to another, retention has taken.
fn deleted(consumer: &BaseConsumer<PlainContext>, topic: &str, span: Span, up_to: i64) -> u64 {
    let low = consumer.fetch_watermarks(topic, span.partition, WATERMARKS_TIMEOUT).map_or(span.next, |(low, _)| low);
    u64::try_from(low.min(up_to).min(span.end.unwrap_or(i64::MAX)) - span.next).unwrap_or_default()
}

/// What is done with each record.
pub(super) struct Taken<'t, W> {
    pub(super) progress: &'t mut Progress,
    pub(super) faults: &'t mut Faults,
    /// What replaces the contents; `None` leaves records as they are.
    pub(super) redactor: Option<Redactor>,
    /// Has a line appended to the file, or what waits written.
    pub(super) write: W,
}

/// What is to be written.
pub(super) enum Write<'w> {
    /// What this appends.
    Line(&'w mut dyn FnMut(&mut Vec<u8>)),
    /// What waits.
    Flush,
}

/// Reads every span to its end, and writes each record as a line. Returns `false` if the sign to stop came first.
pub(super) fn read<W: FnMut(Write<'_>) -> anyhow::Result<()>>(
    consumer: &BaseConsumer<PlainContext>,
    topic: &str,
    spans: Vec<Span>,
    stop: &Stop,
    taken: &mut Taken<'_, W>,
) -> anyhow::Result<bool> {
    let mut open: BTreeMap<i32, Span> =
        spans.into_iter().filter(|span| span.end.is_none_or(|end| span.next < end)).map(|span| (span.partition, span)).collect();
    let mut list = TopicPartitionList::new();
    for span in open.values() {
        list.add_partition_offset(topic, span.partition, KafkaOffset::Offset(span.next))?;
    }
    consumer.assign(&list)?;
    let is_followed = open.values().any(|span| span.end.is_none());
    let (mut heard, mut flushed) = (Instant::now(), Instant::now());
    while !open.is_empty() {
        if stop.is_given() {
            return Ok(false);
        }
        if is_followed && flushed.elapsed() >= FLUSH_INTERVAL {
            (taken.write)(Write::Flush)?;
            flushed = Instant::now();
        }
        taken.progress.show(open.values().filter_map(|span| u64::try_from(span.end? - span.next).ok()).sum());
        let Some(polled) = consumer.poll(POLL) else {
            let is_awaited = open.values().any(|span| span.end.is_some());
            if is_awaited && heard.elapsed() > SILENCE_MAX {
                bail!("the brokers are silent since {} s; the same command with --resume goes on", SILENCE_MAX.as_secs());
            }
            continue;
        };
        match polled {
            Ok(message) => {
                heard = Instant::now();
                taken.take(&message, consumer, &mut open)?;
            }
            Err(KafkaError::PartitionEOF(partition)) => {
                heard = Instant::now();
                // What is left up to the end are marks of transactions, records that were compacted, or what retention has taken.
                if let Some(span) = open.get(&partition).copied()
                    && let Some(end) = span.end
                {
                    taken.faults.deleted += deleted(consumer, topic, span, end);
                    open.remove(&partition);
                }
            }
            // librdkafka connects again by itself.
            Err(KafkaError::MessageConsumption(code)) if is_unreachable(code) => {}
            Err(error) => return Err(error).with_context(|| format!("topic {topic} cannot be read")),
        }
    }
    Ok(true)
}

impl<W: FnMut(Write<'_>) -> anyhow::Result<()>> Taken<'_, W> {
    /// Takes a message, if it is in its span.
    fn take(
        &mut self,
        message: &BorrowedMessage<'_>,
        consumer: &BaseConsumer<PlainContext>,
        open: &mut BTreeMap<i32, Span>,
    ) -> anyhow::Result<()> {
        let (partition, offset) = (message.partition(), message.offset());
        let Some(span) = open.get_mut(&partition) else { return Ok(()) };
        let next = span.next;
        ensure!(offset >= next, "partition {partition}: found offset {offset} where {next} comes next: the topic was made anew");
        // A gap is also what compaction and marks of transactions leave. A mark is a gap of one, and there are too many of these to ask
        // about.
        if offset > span.next + 1 {
            self.faults.deleted += deleted(consumer, message.topic(), *span, offset);
        }
        span.next = offset + 1;
        let is_in_span = span.end.is_none_or(|end| offset < end);
        if span.end.is_some_and(|end| span.next >= end) {
            open.remove(&partition);
        }
        if !is_in_span {
            return Ok(());
        }
        with_record(message, |record, rejection| match rejection {
            None => self.record(record),
            Some(_) => {
                self.faults.leave_out(format!("{}: left out, a header's name is not UTF-8 and cannot be read", record.coordinates()));
                Ok(())
            }
        })
    }

    /// Writes a record, with stand-ins for its contents if that is asked for.
    fn record(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        let Some(redactor) = &mut self.redactor else { return self.line(record) };
        match redactor.redact(record) {
            Ok(RedactedRecord { key, value, headers }) => {
                let headers: Vec<_> = headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
                self.line(&Record { key: key.as_deref(), value: value.as_deref(), headers: &headers, ..*record })
            }
            Err(fault) => {
                self.faults.leave_out(fault.to_string());
                Ok(())
            }
        }
    }

    fn line(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        let Self { progress, write, redactor, .. } = self;
        write(Write::Line(&mut |lines| {
            let before = lines.len();
            write_envelope(record, redactor.is_some(), lines);
            progress.note((lines.len() - before) as u64, record.timestamp_ms);
        }))
    }
}
