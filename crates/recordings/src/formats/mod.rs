//! The formats in which `tollgate eval` reads records: plain events, the envelope of a capture, and `kcat -J`.
//!
//! Each line is read by itself. A line that two formats could read is decided by the order of [`detect`], and one that cannot be told is
//! a fault. It is never read as something that it may not be.

mod as_written;
mod detect;
mod wrapped;

use std::borrow::Cow;

use clap::ValueEnum;
use tollgate_core::event::decode::Rejection;
use tollgate_core::event::record::{Header, Offset, Partition, Record};
use tollgate_json::Parser;

use detect::{EVENT_DEPTH_MAX, detect, format_of};

/// The format of a line, as `--format` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Told by each line
    Auto,
    /// One event a line, without its record's key, headers and time
    Events,
    /// Lines of `kcat -J`
    Kcat,
    /// A captured record a line: {"topic","partition","offset","timestamp","key","headers","value"}
    Envelope,
}

/// A header's name and value. The value may be null.
type CapturedHeader<'l> = (Cow<'l, [u8]>, Option<Cow<'l, [u8]>>);

/// What a line holds of a record. What the format does not tell is `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Captured<'l> {
    /// The topic.
    pub topic: Option<Cow<'l, str>>,
    /// The partition.
    pub partition: Option<i32>,
    /// The offset.
    pub offset: Option<i64>,
    /// When the record was written, in milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    /// The key.
    pub key: Option<Cow<'l, [u8]>>,
    /// The value; `None` is Kafka's null.
    pub value: Option<Cow<'l, [u8]>>,
    /// Whether the line says that stand-ins are in place of its contents.
    pub is_redacted: bool,
    /// The headers, in order. A name that is not UTF-8 is kept as bytes: the worker refuses such a record, and so does `eval`.
    pub headers: Vec<CapturedHeader<'l>>,
}

/// Why a line is not what its format says.
#[derive(Debug, PartialEq, Eq)]
pub struct LineFault {
    /// The code of the fault.
    pub code: &'static str,
    /// The member.
    pub field: &'static str,
    /// The shape of what was found.
    pub found: String,
    /// What to write instead.
    pub fix: &'static str,
}

impl LineFault {
    /// Returns a fault with the shape of what was found.
    #[must_use]
    pub fn new(code: &'static str, field: &'static str, found: impl Into<String>, fix: &'static str) -> Self {
        Self { code, field, found: found.into(), fix }
    }
}

impl From<Rejection> for LineFault {
    fn from(rejection: Rejection) -> Self {
        Self { code: rejection.code.as_str(), field: rejection.field, found: rejection.found, fix: rejection.fix }
    }
}

/// Returns the fault of a file that cannot be read to its end, such as a compressed one that was cut off.
pub fn unreadable_from_here(error: &std::io::Error) -> LineFault {
    let fix = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "what stands before it is good; the command that captured it goes on with --resume",
        _ => "what stands before it is good; capture it again, into another file",
    };
    LineFault::new("unreadable_from_here", "file", error.to_string(), fix)
}

/// Reads lines in one format, or in the one that each line is in.
#[derive(Debug)]
pub struct Reader {
    format: Format,
    parser: Parser,
    /// The value of the last record, where its line has it with escapes.
    value: Vec<u8>,
}

impl Reader {
    /// Returns a reader of a format.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, parser: Parser::new(), value: Vec::new() }
    }

    /// Returns how many bytes a line may have whose event has at most `event_bytes_max`. A record in JSON takes twice its bytes where every
    /// byte of it is escaped by another, and there are its key and headers.
    pub fn line_bytes_max(&self, event_bytes_max: usize) -> usize {
        const KEY_AND_HEADERS_BYTES: usize = 1 << 20;
        match self.format {
            Format::Events => event_bytes_max,
            _ => event_bytes_max.saturating_mul(2).saturating_add(KEY_AND_HEADERS_BYTES),
        }
    }

    /// Returns another reader of the same lines.
    pub fn again(&self) -> Self {
        Self::new(self.format)
    }

    /// Returns the partition of a line's record, 0 if it names none. Where a line begins as captures and kcat write it, no more of it is
    /// read, and what the rest says is not known.
    pub fn partition(&mut self, line: &[u8]) -> i32 {
        let begins_with_it = matches!(self.format, Format::Auto | Format::Envelope | Format::Kcat);
        let leading = begins_with_it.then(|| wrapped::leading_partition(line)).flatten();
        leading.or_else(|| self.read(line).ok()?.partition).unwrap_or_default()
    }

    /// Reads the record of a line.
    ///
    /// # Errors
    /// The line is not what its format says, or could be of two formats.
    pub fn read<'l>(&'l mut self, line: &'l [u8]) -> Result<Captured<'l>, LineFault> {
        let Self { format, parser, value } = self;
        if matches!(format, Format::Auto | Format::Envelope)
            && let Some(captured) = as_written::read(line, value)
        {
            return Ok(captured);
        }
        if *format == Format::Auto && wrapped::leading_partition(line).is_some() {
            return read_likely_record(line, parser);
        }
        let format = match format {
            Format::Auto => detect(line, parser)?,
            forced => *forced,
        };
        match format {
            Format::Auto | Format::Events => Ok(event(line)),
            Format::Kcat => wrapped::read(line, &wrapped::KCAT, parser),
            Format::Envelope => wrapped::read(line, &wrapped::ENVELOPE, parser),
        }
    }
}

/// Reads a line that begins as a captured record. It is parsed once, to tell its format and to read it.
fn read_likely_record<'l>(line: &'l [u8], parser: &'l mut Parser) -> Result<Captured<'l>, LineFault> {
    let root = parser.parse(line, EVENT_DEPTH_MAX).map_err(|error| wrapped::not_json(line, &error))?;
    match format_of(root)? {
        Format::Envelope => wrapped::read_root(root, &wrapped::ENVELOPE),
        Format::Kcat => wrapped::read_root(root, &wrapped::KCAT),
        Format::Auto | Format::Events => Ok(event(line)),
    }
}

/// Returns the record of an event of which nothing else is known.
fn event(line: &[u8]) -> Captured<'_> {
    Captured { value: Some(line.into()), ..Captured::default() }
}

impl Captured<'_> {
    /// Calls `use_record` with the record, and with whether the names of its headers can be read. `topic` and `offset` stand for those that
    /// the line does not tell.
    pub fn with_record<T>(&self, topic: &str, offset: i64, use_record: impl FnOnce(&Record<'_>, bool) -> T) -> T {
        let named: Option<Vec<Header<'_>>> = self
            .headers
            .iter()
            .map(|(name, value)| Some(Header { name: std::str::from_utf8(name).ok()?, value: value.as_deref() }))
            .collect();
        let is_readable = named.is_some();
        let headers = named.unwrap_or_default();
        let record = Record {
            topic: self.topic.as_deref().unwrap_or(topic),
            partition: Partition(self.partition.unwrap_or_default()),
            offset: Offset(self.offset.unwrap_or(offset)),
            timestamp_ms: self.timestamp_ms,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: &headers,
        };
        use_record(&record, is_readable)
    }
}
