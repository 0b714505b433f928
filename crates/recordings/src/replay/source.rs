//! Where records come from: a file or stdin here, or a source that the caller brings.

use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tollgate_core::event::record::OwnedRecord;

use crate::{Format, Input, Line, LineFault, Order, Reader, open, read_line, unreadable_from_here};

use super::progress::Place;

/// What comes next.
#[derive(Debug)]
pub enum Item {
    /// A record.
    Record(Place, Box<OwnedRecord>),
    /// What holds no record that could be sent: the number of the line, or the offset.
    Fault(Place, LineFault),
    /// Nothing has come for a moment.
    Nothing,
    /// The source has ended.
    End,
}

/// An open source.
pub trait Source {
    /// Returns what comes next.
    ///
    /// # Errors
    /// A topic cannot be read any more.
    fn next(&mut self) -> anyhow::Result<Item>;

    /// Returns the report of a fault, which names the place as this source does.
    fn fault(&self, place: Place, fault: &LineFault) -> serde_json::Value;
}

/// Takes the reports of faults.
pub type FaultReport<'r> = &'r mut dyn FnMut(&serde_json::Value);

/// How to read a file.
#[derive(Debug, Clone)]
pub struct FileOptions {
    /// The file; `-` is stdin.
    pub path: PathBuf,
    /// The format of its lines.
    pub format: Format,
    /// Records of this topic only.
    pub topic: Option<String>,
    /// The topic of records that name none.
    pub default_topic: String,
    /// How many bytes an event may have.
    pub event_bytes_max: usize,
}

/// The lines of a file.
pub struct FileSource {
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

impl Debug for FileSource {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("FileSource").field("options", &self.options).field("number", &self.number).finish_non_exhaustive()
    }
}

impl FileSource {
    /// Opens a file behind a line.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(options: FileOptions, skipped: i64) -> anyhow::Result<Self> {
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
}

impl Source for FileSource {
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

    fn fault(&self, Place { at, .. }: Place, LineFault { code, field, found, fix }: &LineFault) -> serde_json::Value {
        serde_json::json!({"line": at, "code": code, "field": field, "found": found, "fix": fix})
    }
}

impl FileSource {
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
pub fn unreadable_header() -> LineFault {
    LineFault::new("header_invalid", "headers", "a header whose name is not UTF-8", "leave this record out")
}

/// Checks that a file is there before anything else is done.
///
/// # Errors
/// It cannot be read.
pub fn check_file(path: &Path) -> anyhow::Result<()> {
    let found = std::fs::metadata(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    anyhow::ensure!(!found.is_dir(), "{}: found a folder; name a capture, `-` for stdin, or topic:NAME", path.display());
    Ok(())
}
