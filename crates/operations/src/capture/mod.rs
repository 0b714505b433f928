//! A topic, or a part of it, as a capture from which it can be made again byte for byte.
//!
//! ```text
//! topic ─▶ spans (from where to where) ─▶ records ─▶ stand-ins, if asked ─▶ envelopes ─▶ pieces of the file
//! ```

mod progress;
mod read;
mod same_key;
mod spans;
mod stream;

use std::io;

use tollgate_config::settings::KafkaSettings;
use tollgate_core::redact::Redactor;
use tollgate_recordings::CaptureWriter;
use tollgate_worker::Stop;

use crate::{Topic, TopicRecords, Topics, consumer};
use progress::Progress;
use read::{RecordSink, Write, read};
use same_key::check_key;
use spans::spans;

pub use read::Faults;
pub use spans::{Bound, CaptureRange, Partitions};
pub use stream::{Missing, stream, topic_of};

const CLIENT_ID: &str = "tollgate-capture";

/// A capture that begins.
pub struct Capture<'c> {
    /// The brokers.
    pub kafka: &'c KafkaSettings,
    /// The reader that found the topic.
    pub topics: &'c Topics<'c>,
    /// The topic.
    pub topic: Topic<'c>,
    /// From where to where.
    pub asked: CaptureRange<'c>,
    /// What replaces the contents; `None` leaves records as they are.
    pub redactor: Option<Redactor>,
    /// The sign to stop.
    pub stop: &'c Stop,
}

/// A capture that has ended.
#[derive(Debug)]
pub struct Captured {
    /// How much was captured, for people.
    pub summary: String,
    /// How many bytes were written.
    pub bytes: u64,
    /// What is missing.
    pub faults: Faults,
    /// Whether the end was reached.
    pub is_whole: bool,
}

impl Capture<'_> {
    /// Captures the topic. `writer` makes the file once the topic was found good, and `cannot_write` says what is wrong with the file.
    ///
    /// # Errors
    /// A bound is not one of the topic, the key of stand-ins is another one, the topic cannot be read, or the file cannot be written.
    pub fn run(
        self,
        writer: impl FnOnce() -> anyhow::Result<CaptureWriter>,
        cannot_write: impl Fn(io::Error) -> anyhow::Error,
    ) -> anyhow::Result<Captured> {
        let Self { kafka, topics, topic, asked, mut redactor, stop } = self;
        if let (Some(redactor), Some(last)) = (&mut redactor, &asked.behind.last_line) {
            check_key(kafka, topic.name, last, redactor)?;
        }
        let spans = spans(&asked, topics, topic, &consumer(kafka, CLIENT_ID, 1)?)?;
        if spans.iter().any(|span| span.end.is_some()) {
            topics.say_open_transactions(topic)?;
        }
        let mut writer = writer()?;
        let total = spans.iter().map(|span| Some(u64::try_from(span.end?.saturating_sub(span.next)).unwrap_or_default())).sum();
        let (mut progress, mut faults) = (Progress::new(total), Faults::default());
        let write = |what: Write<'_>| {
            let written = match what {
                Write::Line(append) => writer.append(append),
                Write::Flush => writer.flush(),
            };
            written.map_err(&cannot_write)
        };
        let taken = &mut RecordSink { progress: &mut progress, faults: &mut faults, redactor, write };
        let is_followed = spans.iter().any(|span| span.end.is_none());
        let mut records = TopicRecords::open(kafka, CLIENT_ID, topic.name, &spans)?;
        let reached = read(&mut records, is_followed, stop, taken);
        // What was read before a failure is kept.
        let bytes = writer.finish().map_err(&cannot_write);
        // A topic that is followed has no end of its own.
        let is_whole = reached? || (is_followed && records.left() == 0);
        Ok(Captured { summary: progress.summary(), bytes: bytes?, faults, is_whole })
    }
}
