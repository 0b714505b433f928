//! The envelope of a captured record: one line of JSON from which the record can be made again byte for byte.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tollgate_core::event::record::{Header, Record};

/// Appends a record's line, with its line end.
///
/// Bytes that are UTF-8 are a string, others are `{"base64":"…"}`, and null is null. A record without its contents says so.
pub fn write_envelope(record: &Record<'_>, is_redacted: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"topic":"#);
    string(record.topic, out);
    out.extend_from_slice(format!(r#","partition":{},"offset":{},"timestamp":"#, record.partition, record.offset).as_bytes());
    match record.timestamp_ms {
        Some(time_ms) => out.extend_from_slice(time_ms.to_string().as_bytes()),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(br#","key":"#);
    bytes(record.key, out);
    out.extend_from_slice(br#","headers":["#);
    for (index, Header { name, value }) in record.headers.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b"[" } else { b",[" });
        string(name, out);
        out.push(b',');
        bytes(*value, out);
        out.push(b']');
    }
    out.extend_from_slice(br#"],"value":"#);
    bytes(record.value, out);
    out.extend_from_slice(if is_redacted { REDACTED_END } else { b"}" });
    out.push(b'\n');
}

/// How the line of a record without its contents ends.
const REDACTED_END: &[u8] = br#","redacted":true}"#;

/// Returns whether a line is that of a record without its contents.
pub fn is_redacted(line: &[u8]) -> bool {
    line.ends_with(REDACTED_END)
}

fn bytes(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    match bytes.map(|bytes| std::str::from_utf8(bytes).map_err(|_| bytes)) {
        None => out.extend_from_slice(b"null"),
        Some(Ok(text)) => string(text, out),
        Some(Err(bytes)) => {
            out.extend_from_slice(br#"{"base64":""#);
            out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            out.extend_from_slice(br#""}"#);
        }
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail, and every text can be written.
    let _infallible = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Reader};
    use super::*;
    use proptest::prelude::*;
    use tollgate_core::event::record::{Offset, OwnedRecord, Partition};

    fn bytes_or_null() -> impl Strategy<Value = Option<Vec<u8>>> {
        prop_oneof![
            Just(None),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(Some),
            "\\PC{0,20}".prop_map(|text| Some(text.into_bytes())),
            "[\\x00-\\x1f\"\\\\\u{2028}\u{7f}😀]{0,12}".prop_map(|text| Some(text.into_bytes())),
        ]
    }

    proptest! {
        #[test]
        fn every_record_comes_back_byte_for_byte(
            place in ("[a-zA-Z0-9._-]{1,20}", 0..i32::MAX, 0..i64::MAX),
            timestamp_ms in proptest::option::of(0..i64::MAX),
            key in bytes_or_null(),
            value in bytes_or_null(),
            headers in proptest::collection::vec(("\\PC{0,8}", bytes_or_null()), 0..4),
            redacted in any::<bool>(),
        ) {
            let headers: Vec<_> = headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
            let record = Record {
                topic: &place.0,
                partition: Partition(place.1),
                offset: Offset(place.2),
                timestamp_ms,
                key: key.as_deref(),
                value: value.as_deref(),
                headers: &headers,
            };
            let mut line = Vec::new();
            write_envelope(&record, redacted, &mut line);
            prop_assert_eq!(line.pop(), Some(b'\n'));
            prop_assert!(!line.contains(&b'\n'));
            prop_assert_eq!(is_redacted(&line), redacted);
            for format in [Format::Envelope, Format::Auto] {
                let mut reader = Reader::new(format);
                let captured = reader.read(&line).unwrap();
                captured.with_record("other", 7, |read, is_readable| {
                    assert!(is_readable);
                    assert_eq!(OwnedRecord::of(read), OwnedRecord::of(&record));
                });
            }
        }
    }
}
