//! Records in JSON: the lines of `kcat -J`, and the envelope of a capture.
//!
//! Both are an object with the record's place, time, key, headers and value. kcat writes bytes as they are into its strings, UTF-8 or not.
//! A capture writes bytes that are UTF-8 as a string, and others as `{"base64": "…"}`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tollgate_json::{Parser, Shape, SyntaxError, Value};

use super::{Captured, CapturedHeader, LineFault};

/// How many containers a record nests: the record, its headers, a header, its bytes.
const DEPTH_MAX: usize = 8;
const FIX_OBJECT: &str = "write one record a line, as a JSON object";

/// What the formats call the parts of a record.
#[derive(Debug)]
pub(super) struct Names {
    timestamp: &'static str,
    value: &'static str,
    /// How bytes that are not UTF-8 are written: as base64, or as they are.
    has_base64: bool,
    /// How headers are written: pairs in a list, or names and values in turn.
    has_pairs: bool,
}

pub(super) const KCAT: Names = Names { timestamp: "ts", value: "payload", has_base64: false, has_pairs: false };
pub(super) const ENVELOPE: Names = Names { timestamp: "timestamp", value: "value", has_base64: true, has_pairs: true };

/// Reads the record of a line.
pub(super) fn read<'l>(line: &'l [u8], names: &Names, parser: &'l mut Parser) -> Result<Captured<'l>, LineFault> {
    read_root(parser.parse(line, DEPTH_MAX).map_err(|error| not_json(line, &error))?, names)
}

/// Reads the record of a line that was parsed already.
pub(super) fn read_root<'l>(root: Value<'l>, names: &Names) -> Result<Captured<'l>, LineFault> {
    if !root.is_object() {
        return Err(LineFault::new("record_not_an_object", "record", root.shape().to_string(), FIX_OBJECT));
    }
    if root.repeats_a_key() {
        return Err(LineFault::new("record_invalid", "record", "a member more than once", "write each member once"));
    }
    let topic = required(root, "topic").and_then(|topic| topic.as_text()?.into_str());
    let topic = topic.ok_or_else(|| wrong(root, "topic", "write the name of the topic as a string"))?;
    let partition = i32::try_from(number(root, "partition")?).map_err(|_| wrong(root, "partition", "write a number below 2147483648"))?;
    Ok(Captured {
        topic: Some(topic),
        partition: Some(partition),
        offset: Some(number(root, "offset")?),
        timestamp_ms: time(root, names.timestamp)?,
        key: bytes_of(root, "key", names)?,
        value: bytes_of(root, names.value, names)?,
        is_redacted: names.has_base64 && root.get("redacted").is_some_and(|redacted| redacted.as_bool() == Some(true)),
        headers: headers(root, names)?,
    })
}

/// Returns the fault of a line that is no JSON.
pub(super) fn not_json(line: &[u8], error: &SyntaxError) -> LineFault {
    LineFault::new("record_not_json", "record", format!("{} bytes, {error}", line.len()), FIX_OBJECT)
}

/// Returns the partition of a line that begins with `{"topic":"…","partition":…,`, as captures and kcat write it.
pub(super) fn leading_partition(line: &[u8]) -> Option<i32> {
    let topic = line.strip_prefix(br#"{"topic":""#)?;
    let end = memchr::memchr2(b'"', b'\\', topic)?;
    let digits = topic.get(end..)?.strip_prefix(br#"","partition":"#)?;
    let digits = digits.get(..memchr::memchr(b',', digits)?)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn required<'d>(root: Value<'d>, name: &str) -> Option<Value<'d>> {
    root.get(name).filter(|value| !value.is_null())
}

fn wrong(root: Value<'_>, name: &'static str, fix: &'static str) -> LineFault {
    let found = root.get(name).map_or_else(|| "nothing".to_owned(), |value| value.shape().to_string());
    LineFault::new("record_invalid", name, found, fix)
}

/// Returns a whole number of 0 or more.
fn number(root: Value<'_>, name: &'static str) -> Result<i64, LineFault> {
    let number = required(root, name).and_then(whole).filter(|number| *number >= 0);
    number.ok_or_else(|| wrong(root, name, "write a whole number of 0 or more"))
}

fn whole(value: Value<'_>) -> Option<i64> {
    if value.as_text().is_some() {
        return None;
    }
    std::str::from_utf8(value.source()).ok()?.parse().ok()
}

/// Returns a time in milliseconds. Kafka's clients have -1 for none.
fn time(root: Value<'_>, name: &'static str) -> Result<Option<i64>, LineFault> {
    let Some(value) = required(root, name) else { return Ok(None) };
    let time_ms = whole(value).ok_or_else(|| wrong(root, name, "write milliseconds since 1970, or null"))?;
    Ok((time_ms != -1).then_some(time_ms))
}

/// Returns the bytes under a name that has to be there; null is Kafka's null.
fn bytes_of<'l>(root: Value<'l>, name: &'static str, names: &Names) -> Result<Option<Cow<'l, [u8]>>, LineFault> {
    let value = root.get(name).ok_or_else(|| wrong(root, name, bytes_fix(names)))?;
    bytes(value, name, names)
}

fn bytes_fix(names: &Names) -> &'static str {
    if names.has_base64 { "write a string, {\"base64\": \"…\"} or null" } else { "write a string or null, as kcat -J does without -s" }
}

fn bytes<'l>(value: Value<'l>, name: &'static str, names: &Names) -> Result<Option<Cow<'l, [u8]>>, LineFault> {
    if value.is_null() {
        return Ok(None);
    }
    let fault = |found: String| LineFault::new("record_invalid", name, found, bytes_fix(names));
    if let Some(text) = value.as_text() {
        return Ok(Some(text.into_bytes()));
    }
    let coded = value.get("base64").filter(|_| names.has_base64 && value.members().count() == 1).and_then(|coded| coded.as_text());
    let Some(coded) = coded else { return Err(fault(value.shape().to_string())) };
    STANDARD.decode(coded.as_bytes()).map(|bytes| Some(bytes.into())).map_err(|_| fault("a string that is not base64".to_owned()))
}

fn headers<'l>(root: Value<'l>, names: &Names) -> Result<Vec<CapturedHeader<'l>>, LineFault> {
    let Some(value) = required(root, "headers") else { return Ok(Vec::new()) };
    match value.shape() {
        Shape::Array if names.has_pairs => value.items().map(|pair| header_pair(pair, names)).collect(),
        Shape::Array => {
            let items: Vec<_> = value.items().collect();
            items.chunks(2).map(|pair| header(pair, names)).collect()
        }
        // kcat writes this form if it is asked for a map: a list of values under each name.
        Shape::Object if !names.has_pairs => {
            let named = value.members().flat_map(|(name, values)| values.items().map(move |value| [name, value]));
            named.map(|pair| header(&pair, names)).collect()
        }
        shape => Err(headers_fault(shape.to_string(), names)),
    }
}

fn header_pair<'l>(pair: Value<'l>, names: &Names) -> Result<CapturedHeader<'l>, LineFault> {
    header(&pair.items().collect::<Vec<_>>(), names)
}

fn header<'l>(pair: &[Value<'l>], names: &Names) -> Result<CapturedHeader<'l>, LineFault> {
    let [name, value] = pair else { return Err(headers_fault("a name without a value".to_owned(), names)) };
    let found = name.shape().to_string();
    let name = if name.is_null() { None } else { bytes(*name, "headers", names)? };
    let name = name.ok_or_else(|| headers_fault(format!("{found} in place of a name"), names))?;
    Ok((name, bytes(*value, "headers", names)?))
}

fn headers_fault(found: String, names: &Names) -> LineFault {
    let fix = if names.has_pairs {
        "write a list of pairs: [[\"name\", \"value\"], …]"
    } else {
        "write them as kcat -J does: [\"name\", \"value\", …]"
    };
    LineFault::new("record_invalid", "headers", found, fix)
}
