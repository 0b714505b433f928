//! A dead letter: where its record came from, why it was refused, and the record's own headers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rdkafka::message::{BorrowedHeaders, BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use serde::Serialize;
use tollgate_core::event::decode::RejectionCode;

/// What the headers about the refusal begin with. They stand behind the record's own.
const ERRORS: &str = "__connect.errors.";
/// The first of them.
const TOPIC: &str = "__connect.errors.topic";
/// The header of a letter that was published without the record's value, which was too large.
const VALUE_OMITTED: &str = "tollgate.value.omitted";
/// The header that counts how often a record was sent back to its topic.
pub(super) const REDRIVEN: &str = "tollgate.redriven";

/// What is known of a dead letter. It holds nothing of the record's key and value but their sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Letter {
    /// The letter's own place.
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) timestamp_ms: Option<i64>,
    pub(super) reason: String,
    pub(super) stage: String,
    /// What is wrong, as a sentence.
    pub(super) message: String,
    /// Where the record came from.
    pub(super) topic: String,
    pub(super) source_partition: Option<i32>,
    pub(super) source_offset: Option<i64>,
    pub(super) key_bytes: Option<usize>,
    pub(super) value_bytes: Option<usize>,
    pub(super) value_omitted: bool,
    /// How often the record was sent back to its topic before.
    pub(super) redriven: u32,
    /// Whether the record's own headers can be read, and so be sent again.
    #[serde(skip)]
    pub(super) has_readable_headers: bool,
}

impl Letter {
    /// Reads a record of the topic of dead letters. Returns `None` if it is no dead letter.
    pub(super) fn read(message: &BorrowedMessage<'_>) -> Option<Self> {
        let headers = message.headers()?;
        let own = own_count(headers)?;
        let text = |name: &str| text(headers, own, name).unwrap_or_default();
        let reason = text("__connect.errors.class.name");
        // rdkafka panics on the name of such a header, and would say so.
        let own_headers = if reason == RejectionCode::HeaderInvalid.as_str() { None } else { read_own(headers, own) };
        let redriven = own_headers.as_ref().map_or(0, |own| {
            own.iter()
                .filter(|header| header.key == REDRIVEN)
                .filter_map(|header| std::str::from_utf8(header.value?).ok()?.parse().ok())
                .max()
                .unwrap_or(0)
        });
        Some(Self {
            partition: message.partition(),
            offset: message.offset(),
            timestamp_ms: message.timestamp().to_millis(),
            stage: text("__connect.errors.stage"),
            message: text("__connect.errors.exception.message"),
            topic: text(TOPIC),
            source_partition: text("__connect.errors.partition").parse().ok(),
            source_offset: text("__connect.errors.offset").parse().ok(),
            key_bytes: message.key().map(<[u8]>::len),
            value_bytes: message.payload().map(<[u8]>::len),
            value_omitted: text(VALUE_OMITTED) == "true",
            redriven,
            has_readable_headers: own_headers.is_some(),
            reason,
        })
    }

    /// Returns the letter's place, as options take it.
    pub(super) fn place(&self) -> String {
        format!("{}@{}", self.partition, self.offset)
    }
}

/// Returns the record's own headers as it had them, and behind them how often it has been sent back with this time. They can be read.
pub(super) fn redriven_headers(message: &BorrowedMessage<'_>, times: u32) -> OwnedHeaders {
    let own = message.headers().and_then(|headers| read_own(headers, own_count(headers)?)).unwrap_or_default();
    let headers = OwnedHeaders::new_with_capacity(own.len() + 1);
    let headers = own.into_iter().filter(|header| header.key != REDRIVEN).fold(headers, OwnedHeaders::insert);
    headers.insert(Header { key: REDRIVEN, value: Some(&times.to_string()) })
}

/// Returns how many headers stand before those about the refusal; `None` if there are none of these. A record may have come with such
/// headers of its own, from an earlier refusal: the last ones count.
fn own_count(headers: &BorrowedHeaders) -> Option<usize> {
    let is_ours = |name: &str| name.starts_with(ERRORS) || name == VALUE_OMITTED;
    // It goes by index, from the end, since the record's own headers may have names that cannot be read.
    for at in (0..headers.count()).rev() {
        let header = headers.try_get(at)?;
        if header.key == TOPIC {
            return Some(at);
        }
        if !is_ours(header.key) {
            return None;
        }
    }
    None
}

/// Returns the text of a header about the refusal.
fn text(headers: &BorrowedHeaders, from: usize, name: &str) -> Option<String> {
    let found = (from..headers.count()).filter_map(|at| headers.try_get(at)).find(|header| header.key == name)?;
    Some(String::from_utf8_lossy(found.value?).into_owned())
}

/// Returns the record's own headers, or `None` if the name of one is not UTF-8: rdkafka panics on it.
fn read_own(headers: &BorrowedHeaders, count: usize) -> Option<Vec<Header<'_, &[u8]>>> {
    catch_unwind(AssertUnwindSafe(|| (0..count).filter_map(|at| headers.try_get(at)).collect())).ok()
}
