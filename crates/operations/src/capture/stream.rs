//! A topic as it stands, read as a capture of it would be: for commands that take a capture or a topic.

use std::io::{self, BufReader, BufWriter, PipeReader, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;

use tollgate_config::settings::KafkaSettings;
use tollgate_recordings::{Contents, Input};
use tollgate_worker::Stop;

use super::CLIENT_ID;
use super::progress::Progress;
use super::read::{Faults, RecordSink, Write, read};
use super::spans::{CaptureRange, spans};
use crate::{TopicRecords, Topics, consumer};

const BUFFER_BYTES: usize = 256 * 1024;

/// What a topic's name begins with where a file may be named too.
const PREFIX: &str = "topic:";

/// Returns the name of the topic of `topic:NAME`; `None` is the name of a file.
pub fn topic_of(source: &str) -> Option<&str> {
    source.strip_prefix(PREFIX)
}

/// How many records of a topic were missing: retention took them before they were read, or they cannot be read. It is known once the last
/// line was read.
#[derive(Debug, Clone, Default)]
pub struct Missing(Arc<AtomicU64>);

impl Missing {
    /// Returns how many records were missing.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Returns the lines of a capture of a topic, from its beginning to where it ends now, and how many records are missing in the end. The
/// topic is named by an option or a key.
///
/// # Errors
/// The topic is not there, or the brokers do not answer.
pub fn stream(kafka: &KafkaSettings, name: &str, named_by: &str) -> anyhow::Result<(Input, Missing)> {
    let spans = {
        let topics = Topics::new(kafka)?;
        let asked = CaptureRange { from: &[], to: &[], partitions: &[], follows: false, behind: &Contents::default() };
        spans(&asked, &topics, topics.named(name, named_by)?, &consumer(kafka, CLIENT_ID, 1)?)?
    };
    let (lines, pipe) = io::pipe().context("no pipe")?;
    let (kafka, topic, missing) = (kafka.clone(), name.to_owned(), Missing::default());
    let counted = missing.clone();
    let take = move || -> anyhow::Result<()> {
        let mut pipe = BufWriter::with_capacity(BUFFER_BYTES, pipe);
        let (mut progress, mut faults, mut line) = (Progress::new(None), Faults::default(), Vec::new());
        let write = |what: Write<'_>| {
            let Write::Line(append) = what else { return Ok(pipe.flush()?) };
            line.clear();
            append(&mut line);
            Ok(pipe.write_all(&line)?)
        };
        let taken = &mut RecordSink { progress: &mut progress, faults: &mut faults, redactor: None, write };
        read(&mut TopicRecords::open(&kafka, CLIENT_ID, &topic, &spans)?, false, &Stop::default(), taken)?;
        say!("tollgate: topic {topic}: {}", progress.summary());
        faults.report();
        counted.0.store(faults.missing(), Ordering::Release);
        Ok(pipe.flush()?)
    };
    let reader = thread::Builder::new().name("topic".to_owned()).spawn(take).context("no thread")?;
    Ok((BufReader::with_capacity(BUFFER_BYTES, Box::new(Lines { lines, reader: Some(reader) })), missing))
}

/// The lines, and the thread that reads the topic.
struct Lines {
    lines: PipeReader,
    reader: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.lines.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        // A pipe also ends where its writer fails, and the rest of the topic must not be missing without a word.
        match self.reader.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(0),
            Some(Ok(Err(error))) => Err(io::Error::other(format!("{error:#}"))),
            Some(Err(_)) => Err(io::Error::other("the thread that reads the topic has ended")),
        }
    }
}
