//! The lines of `kafka-console-consumer.sh`: columns, with tabs between them, in the order in which the tool prints them.
//!
//! ```text
//! CreateTime:1700000000000  Partition:0  Offset:7  Delivery:1  Epoch:3  name:value,name:value  key  value
//! ```
//!
//! Each column but the last is there only if it was asked for. The first five name themselves. The value begins behind the tab that has a
//! whole JSON object behind it: there is never more than one such place, since no JSON object ends with another that begins inside it.

use std::borrow::Cow;

use clap::ValueEnum;
use tollgate_json::{DEPTH_MAX, Parser, Value};

use super::{Captured, CapturedHeader, LineFault};

/// How many tabs of a line are tried as the beginning of its value. Keys and headers hold no JSON, so it is one of the first.
const VALUES_TRIED_MAX: usize = 64;
const EVENT_DEPTH_MAX: usize = DEPTH_MAX + 4;
const NO_HEADERS: &[u8] = b"NO_HEADERS";
/// What the tool prints for null.
const NULL: &[u8] = b"null";

/// A column before the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Column {
    /// print.timestamp
    Timestamp,
    /// print.partition
    Partition,
    /// print.offset
    Offset,
    /// print.delivery
    Delivery,
    /// print.epoch
    Epoch,
    /// print.headers
    Headers,
    /// print.key
    Key,
}

/// The columns that name themselves, in their order.
const NAMED: [Column; 5] = [Column::Timestamp, Column::Partition, Column::Offset, Column::Delivery, Column::Epoch];

/// Reads the record of a line, whose columns the user may have named.
pub(super) fn read<'l>(line: &'l [u8], columns: Option<&[Column]>, parser: &mut Parser) -> Result<Captured<'l>, LineFault> {
    let mut captured = Captured::default();
    let mut rest = line;
    for column in NAMED {
        let wanted = columns.map(|columns| columns.contains(&column));
        let Some((text, behind)) = split_tab(rest).filter(|_| wanted != Some(false)) else { continue };
        if captured.take(column, text) {
            rest = behind;
        } else if wanted == Some(true) {
            return Err(LineFault::new(
                "columns_differ",
                name_of(column),
                "another column",
                "name the columns that were printed: --columns",
            ));
        }
    }
    let value_at = value_at(rest, parser);
    let (headers, key, value) = match columns {
        Some(columns) => named_columns(rest, value_at, columns)?,
        None => evident_columns(rest, value_at, parser)?,
    };
    captured.headers = headers.map(read_headers).unwrap_or_default();
    captured.key = key.filter(|key| *key != NULL).map(Cow::Borrowed);
    captured.value = (value != NULL).then_some(Cow::Borrowed(value));
    Ok(captured)
}

/// Returns whether a whole JSON object stands behind a tab of a line.
pub(super) fn holds_a_value(line: &[u8], parser: &mut Parser) -> bool {
    value_at(line, parser).is_some_and(|at| at > 0)
}

/// Returns a value without the prefix of a schema registry, as the gate reads it.
pub(super) fn without_registry_prefix(value: &[u8]) -> &[u8] {
    match value {
        [0, _, _, _, _, json @ ..] => json,
        _ => value,
    }
}

/// What stands before the value, if it is there, and the value.
type Columns<'l> = (Option<&'l [u8]>, Option<&'l [u8]>, &'l [u8]);

impl Captured<'_> {
    /// Takes a column that names itself; returns false if it is another one.
    fn take(&mut self, column: Column, text: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(text) else { return false };
        let number = |name: &str| text.strip_prefix(name)?.strip_prefix(':')?.parse::<i64>().ok();
        match column {
            Column::Timestamp => {
                let time_ms = number("CreateTime").or_else(|| number("LogAppendTime"));
                self.timestamp_ms = time_ms.filter(|time_ms| *time_ms != -1);
                time_ms.is_some() || text == "NO_TIMESTAMP" || text == "NoTimestampType:-1"
            }
            Column::Partition => {
                self.partition = number("Partition").and_then(|number| i32::try_from(number).ok()).filter(|number| *number >= 0);
                self.partition.is_some()
            }
            Column::Offset => {
                self.offset = number("Offset").filter(|number| *number >= 0);
                self.offset.is_some()
            }
            Column::Delivery => number("Delivery").is_some() || text == "Delivery:NOT_PRESENT" || text == "Delivery:NONE",
            Column::Epoch => number("Epoch").is_some() || text == "Epoch:NOT_PRESENT" || text == "Epoch:NONE",
            Column::Headers | Column::Key => false,
        }
    }
}

fn name_of(column: Column) -> &'static str {
    match column {
        Column::Timestamp => "timestamp",
        Column::Partition => "partition",
        Column::Offset => "offset",
        Column::Delivery => "delivery",
        Column::Epoch => "epoch",
        Column::Headers => "headers",
        Column::Key => "key",
    }
}

fn split_tab(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'\t', text)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Returns where the value begins: at the start, or behind a tab. `None` if no JSON object is there.
fn value_at(text: &[u8], parser: &mut Parser) -> Option<usize> {
    let places = std::iter::once(0).chain(memchr::memchr_iter(b'\t', text).map(|tab| tab + 1));
    let is_likely = |at: &usize| {
        let value = text.get(*at..).map(without_registry_prefix);
        value.is_some_and(|value| value.trim_ascii_start().first() == Some(&b'{'))
    };
    let mut likely = places.filter(is_likely).take(VALUES_TRIED_MAX);
    likely.find(|at| text.get(*at..).is_some_and(|value| object(value, parser).is_some()))
}

fn object<'d>(value: &'d [u8], parser: &'d mut Parser) -> Option<Value<'d>> {
    parser.parse(without_registry_prefix(value), EVENT_DEPTH_MAX).ok().filter(Value::is_object)
}

/// Returns the columns that the user named.
fn named_columns<'l>(rest: &'l [u8], value_at: Option<usize>, columns: &[Column]) -> Result<Columns<'l>, LineFault> {
    let missing = |field| LineFault::new("columns_differ", field, "no such column", "name the columns that were printed: --columns");
    let (has_headers, has_key) = (columns.contains(&Column::Headers), columns.contains(&Column::Key));
    if !has_headers && !has_key {
        return Ok((None, None, rest));
    }
    let found = value_at.filter(|at| *at > 0).and_then(|at| Some((rest.get(..at - 1)?, rest.get(at..)?)));
    if has_headers && has_key {
        let (before, value) = match found {
            Some(found) => found,
            // Of a value that is no JSON, no more is known than that two tabs come before it.
            None => {
                let (_, behind) = split_tab(rest).ok_or_else(|| missing("key"))?;
                let (_, value) = split_tab(behind).ok_or_else(|| missing("value"))?;
                (rest.get(..rest.len() - value.len() - 1).unwrap_or_default(), value)
            }
        };
        // Headers hold any bytes, tabs too, and keys hardly ever.
        let tab = memchr::memrchr(b'\t', before).ok_or_else(|| missing("headers"))?;
        return Ok((before.get(..tab), before.get(tab + 1..), value));
    }
    let (before, value) = found.or_else(|| split_tab(rest)).ok_or_else(|| missing(if has_key { "key" } else { "headers" }))?;
    Ok(if has_key { (None, Some(before), value) } else { (Some(before), None, value) })
}

/// Returns the columns that a line itself tells.
fn evident_columns<'l>(rest: &'l [u8], value_at: Option<usize>, parser: &mut Parser) -> Result<Columns<'l>, LineFault> {
    let end = |at: usize| Some((rest.get(..at.checked_sub(1)?)?, rest.get(at..)?));
    let (before, value) = match value_at {
        Some(0) => return Ok((None, None, rest)),
        Some(at) => end(at).unwrap_or((rest, &[])),
        None => match before_other_value(rest) {
            Some(found) => found,
            None => return Ok((None, None, rest)),
        },
    };
    let names_thread = |column: &[u8], parser: &mut Parser| object(value, parser).is_some_and(|event| names(event, column));
    if !may_be_headers(before) || names_thread(before, parser) {
        return Ok((None, Some(before), value));
    }
    match memchr::memrchr(b'\t', before) {
        Some(tab) => Ok((before.get(..tab), before.get(tab + 1..), value)),
        None => {
            let found = "a column that may be the key or the headers";
            Err(LineFault::new("columns_unclear", "key", found, "say which: --columns key, or --columns headers, with those before them"))
        }
    }
}

/// Returns what stands before a value that is no JSON object, and the value: null, nothing, or anything behind headers and key.
fn before_other_value(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let last = memchr::memrchr(b'\t', rest)?;
    let (before, value) = (rest.get(..last)?, rest.get(last + 1..)?);
    if value.is_empty() || value == NULL {
        return Some((before, value));
    }
    let (first, behind) = split_tab(rest)?;
    match split_tab(behind).filter(|_| may_be_headers(first)) {
        Some((_, value)) => Some((rest.get(..rest.len() - value.len() - 1)?, value)),
        None => Some((first, behind)),
    }
}

/// Returns whether a text can be what the tool prints for headers.
fn may_be_headers(text: &[u8]) -> bool {
    let first = text.split(|byte| *byte == b',').next().unwrap_or_default();
    let first = first.split(|byte| *byte == b'\t').next().unwrap_or_default();
    first == NO_HEADERS || memchr::memchr(b':', first).is_some()
}

/// Returns whether an event itself says that it belongs to this thread.
fn names(event: Value<'_>, thread: &[u8]) -> bool {
    let is_thread = |value: Option<Value<'_>>| value.and_then(|value| value.as_text()).is_some_and(|text| text.as_bytes() == thread);
    is_thread(event.get("thread_id"))
        || is_thread(event.get("subject"))
        || is_thread(event.get("data").and_then(|data| data.get("thread_id")))
}

/// Reads the headers of a line. A part without a colon belongs to the value before it, which holds a comma.
fn read_headers(text: &[u8]) -> Vec<CapturedHeader<'_>> {
    let mut headers: Vec<(&[u8], Vec<u8>)> = Vec::new();
    if text == NO_HEADERS {
        return Vec::new();
    }
    for part in text.split(|byte| *byte == b',') {
        match (memchr::memchr(b':', part), headers.last_mut()) {
            (Some(colon), _) => {
                let (name, value) = part.split_at(colon);
                headers.push((name, value.get(1..).unwrap_or_default().to_vec()));
            }
            (None, Some((_, value))) => value.extend([b",", part].concat()),
            (None, None) => headers.push((part, Vec::new())),
        }
    }
    let value = |value: Vec<u8>| (value != NULL).then_some(Cow::Owned(value));
    headers.into_iter().map(|(name, bytes)| (Cow::Borrowed(name), value(bytes))).collect()
}
