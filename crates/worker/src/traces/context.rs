//! The trace context in a record's headers, as the W3C's recommendation Trace Context has it.

use tollgate_core::event::record::Record;

/// The length of a `traceparent` of version 00.
const LENGTH: usize = 55;
/// The longest `tracestate` that is passed on, in bytes. The recommendation asks for no less.
const STATE_BYTES_MAX: usize = 512;
/// The flag of a context whose span is recorded.
const SAMPLED: u8 = 1;

/// The span that an event was sent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceContext {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) flags: u8,
}

impl TraceContext {
    /// Returns the context of a record; `None` if it has none, or one that is not valid.
    pub(super) fn of(record: &Record<'_>) -> Option<Self> {
        Self::read(record.header("traceparent")?)
    }

    /// Reads a `traceparent`. Of later versions than 00 only the part that every version has is read.
    fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (known, rest) = text.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace_id = hex(parts.next()?, 32)?;
        let span_id = u64::try_from(hex(parts.next()?, 16)?).ok()?;
        let flags = u8::try_from(hex(parts.next()?, 2)?).ok()?;
        let ends_here = parts.next().is_none() && if version == 0 { rest.is_empty() } else { rest.is_empty() || rest.starts_with('-') };
        (version != 0xff && trace_id != 0 && span_id != 0 && ends_here).then_some(Self { trace_id, span_id, flags })
    }

    /// Returns whether the span of the event is recorded.
    pub(super) fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// Returns a record's `tracestate`, if it has one that can be passed on.
pub(super) fn trace_state(record: &Record<'_>) -> Option<Box<str>> {
    let text = record.header("tracestate").filter(|text| !text.is_empty() && text.len() <= STATE_BYTES_MAX)?;
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    text.iter().all(is_plain).then(|| std::str::from_utf8(text).ok().map(Box::from))?
}

/// Reads a number of this many hexadecimal digits, in lower case.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_number = text.len() == digits && text.bytes().all(is_digit);
    is_number.then(|| u128::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::event::record::{Header, Offset, Partition};

    const PLAIN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(text: &str) -> Option<TraceContext> {
        TraceContext::read(text.as_bytes())
    }

    #[test]
    fn a_context_is_read() {
        let context = read(PLAIN).unwrap();
        assert_eq!((context.trace_id, context.span_id), (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7));
        assert!(context.is_sampled());
        assert!(!read(&PLAIN.replace("-01", "-00")).unwrap().is_sampled());
        assert!(!read(&PLAIN.replace("-01", "-fe")).unwrap().is_sampled(), "the other flags say nothing about that");
        assert!(read(&PLAIN.replace("-01", "-ff")).unwrap().is_sampled());
    }

    #[test]
    fn a_later_version_may_be_longer() {
        let later = PLAIN.replacen("00", "cc", 1);
        assert!(read(&later).is_some());
        assert!(read(&format!("{later}-what-comes-then")).is_some());
        assert_eq!(read(&format!("{later}.")), None);
    }

    #[test]
    fn what_is_no_context_is_none() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
            "0é-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(TraceContext::read(&[0xff; LENGTH]), None);
    }

    fn record<'a>(headers: &'a [Header<'a>]) -> Record<'a> {
        Record { topic: "t", partition: Partition(0), offset: Offset(0), timestamp_ms: None, key: None, value: None, headers }
    }

    #[test]
    fn a_state_is_passed_on_if_it_is_short_and_plain() {
        let long = [b'a'; STATE_BYTES_MAX + 1];
        let cases: [(&[u8], Option<&str>); 5] =
            [(b"vendor=1,b=2", Some("vendor=1,b=2")), (b"", None), (b"a\nb", None), (b"\xff", None), (&long, None)];
        for (value, expected) in cases {
            let headers = [Header { name: "tracestate", value: Some(value) }];
            assert_eq!(trace_state(&record(&headers)).as_deref(), expected);
        }
        assert_eq!(trace_state(&record(&[])), None);
    }
}
