//! Where records come from: a file, stdin, or a topic as it stands.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tollgate_core::event::record::OwnedRecord;

use tollgate_recordings::{Format, Input, Line, LineFault, Order, Reader, open, read_line, unreadable_from_here};

use super::progress::Place;
use super::topic_source::TopicSource;

/// What comes next.
#[derive(Debug)]
pub(super) enum Item {
    Record(Place, Box<OwnedRecord>),
    /// What holds no record that could be sent: the number of the line, or the offset.
    Fault(Place, LineFault),
    /// Nothing has come for a moment.
    Nothing,
    End,
}

/// An open source.
pub(super) enum Source {
    File(Box<FileSource>),
    Topic(Box<TopicSource>),
}

impl Source {
    /// Returns what comes next.
    ///
    /// # Errors
    /// A topic cannot be read any more.
    pub(super) fn next(&mut self) -> anyhow::Result<Item> {
        match self {
            Self::File(file) => file.next(),
            Self::Topic(topic) => topic.next(),
        }
    }
}

/// How to read a file.
#[derive(Debug, Clone)]
pub(super) struct FileOptions {
    pub(super) path: PathBuf,
    pub(super) format: Format,
    /// Records of this topic only.
    pub(super) topic: Option<String>,
    /// The topic of records that name none.
    pub(super) default_topic: String,
    pub(super) event_bytes_max: usize,
}

/// The lines of a file.
pub(super) struct FileSource {
    options: FileOptions,
    input: Input,
    reader: Reader,
    order: Order,
    line: Vec<u8>,
    number: i64,
    /// Lines up to this one were sent before.
    skipped: i64,
    /// The topic of the first record.
    topic: Option<String>,
    /// Whether that record named it.
    is_named: bool,
    is_over: bool,
}

impl FileSource {
    /// Opens a file behind a line.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn open(options: FileOptions, skipped: i64) -> anyhow::Result<Self> {
        Ok(Self {
            input: open(&options.path)?,
            reader: Reader::new(options.format),
            options,
            order: Order::default(),
            line: Vec::new(),
            number: 0,
            skipped,
            topic: None,
            is_named: false,
            is_over: false,
        })
    }

    fn next(&mut self) -> anyhow::Result<Item> {
        let bytes_max = self.reader.line_bytes_max(self.options.event_bytes_max);
        while !self.is_over {
            self.number += 1;
            let place = Place { partition: 0, at: self.number };
            match read_line(&mut self.input, &mut self.line, bytes_max) {
                Ok(Line::End) => break,
                Ok(_) if self.number <= self.skipped => continue,
                Ok(Line::Whole) if self.line.trim_ascii().is_empty() => continue,
                Ok(Line::Whole) => {}
                Ok(Line::TooLong) => {
                    let found = format!("more than {bytes_max} bytes");
                    return Ok(Item::Fault(place, LineFault::new("line_too_long", "line", found, "raise limits.event_bytes_max")));
                }
                Err(error) => {
                    self.is_over = true;
                    return Ok(Item::Fault(place, unreadable_from_here(&error)));
                }
            }
            if let Some(item) = self.record(place)? {
                return Ok(item);
            }
        }
        Ok(Item::End)
    }

    /// Returns the record of the line, or its fault; `None` if it is of a topic that is not wanted.
    fn record(&mut self, place: Place) -> anyhow::Result<Option<Item>> {
        let Self { options, reader, order, line, topic, is_named, number, .. } = self;
        let captured = match reader.read(line) {
            Ok(captured) => captured,
            Err(fault) => return Ok(Some(Item::Fault(place, fault))),
        };
        if captured.topic.is_none() && topic.is_some() && *is_named {
            // A plain event has no name of a topic, but this file holds captured records.
            let fix = "what stands before it is good; take the capture again if it was cut off here";
            return Ok(Some(Item::Fault(place, LineFault::new("not_a_record", "line", "no captured record, as the lines before it", fix))));
        }
        *is_named |= captured.topic.is_some();
        let found = captured.topic.as_deref().unwrap_or(&options.default_topic);
        if options.topic.as_deref().is_some_and(|wanted| wanted != found) {
            return Ok(None);
        }
        check_topic(topic.get_or_insert_with(|| found.to_owned()), found, *number)?;
        if let Err(fault) = order.note(&captured, &options.default_topic) {
            return Ok(Some(Item::Fault(place, fault)));
        }
        // A record that names no place stands where `eval` sees it.
        let read = captured
            .with_record(&options.default_topic, *number - 1, |record, is_readable| is_readable.then(|| Box::new(OwnedRecord::of(record))));
        Ok(Some(read.map_or_else(|| Item::Fault(place, unreadable_header()), |record| Item::Record(place, record))))
    }
}

fn check_topic(first: &str, found: &str, number: i64) -> anyhow::Result<()> {
    anyhow::ensure!(
        first == found,
        "line {number}: found a record of topic {found} in a capture that begins with {first}; choose one with --topic NAME"
    );
    Ok(())
}

/// Returns the fault of a record that cannot be sent as it is: clients write names of headers in UTF-8 only.
pub(super) fn unreadable_header() -> LineFault {
    LineFault::new("header_invalid", "headers", "a header whose name is not UTF-8", "leave this record out")
}

/// Returns the name of the topic of `topic:NAME`.
pub(super) fn topic_of(source: &str) -> Option<&str> {
    source.strip_prefix("topic:")
}

/// Checks that a file is there before anything else is done.
///
/// # Errors
/// It cannot be read.
pub(super) fn check_file(path: &Path) -> anyhow::Result<()> {
    let found = std::fs::metadata(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    anyhow::ensure!(!found.is_dir(), "{}: found a folder; name a capture, `-` for stdin, or topic:NAME", path.display());
    Ok(())
}
