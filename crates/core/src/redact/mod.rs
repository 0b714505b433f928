//! Redaction: an event without its contents, on which every decision is the same.
//!
//! ```text
//! record ─▶ roles (what is each member?) ─▶ stand-ins at their places ─▶ check (the same event?) ─▶ redacted record
//! ```
//!
//! What is known to be needed and harmless stays: names of fields, ids, tools, times, flags, and the words that detectors and the
//! classification of failures look for. Everything else is replaced by a stand-in of as many bytes, under a key: equal things by equal
//! ones, and different things by different ones. So calls and results are equal after it where they were equal before.

mod alphabet;
mod check;
mod headers;
mod number;
mod permutation;
mod roles;
mod text;
mod unreadable;
mod value;
mod words;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use crate::decide::safety::ReasonSet;
use crate::event::decode::{EVENT_DEPTH_MAX, is_structured, skip_schema_registry_prefix, with_data};
use crate::event::record::{Header, Record};
use tollgate_json::{Parser, Value};

use permutation::Permutation;
use roles::Role;

/// A record that may leave the company: its parts, with stand-ins in the place of contents. Topic, partition, offset and timestamp stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactedRecord {
    /// The key, which stays: it is the thread's id.
    pub key: Option<Vec<u8>>,
    /// The value, in as many bytes as before.
    pub value: Option<Vec<u8>>,
    /// The headers in order. Unknown names are replaced too.
    pub headers: RedactedHeaders,
}

/// Headers by name, in order; a value may be null.
pub type RedactedHeaders = Vec<(String, Option<Vec<u8>>)>;

/// A record that cannot be redacted. It has to be left out: nothing of its contents is in this error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record at {place} cannot be redacted: {why}; leave it out")]
pub struct NotRedacted {
    /// The record's place, as `<topic>/<partition>/<offset>`.
    pub place: String,
    /// The reason.
    pub why: Unkept,
}

/// What could not be kept by a stand-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unkept {
    /// No text was found that may stand in for one of its texts.
    #[error("a text for which no stand-in of its length was found")]
    Text,
    /// No digits were found that may stand in for those of one of its numbers.
    #[error("a number for which no stand-in of its magnitude was found")]
    Number,
    /// A stand-in has another length than what it stands for.
    #[error("a stand-in of another length")]
    Length,
    /// The redacted record would be decided otherwise. The text names what differs.
    #[error("the redacted record would differ in {0}")]
    Differs(&'static str),
}

/// Redacts records under one key. The same key gives the same stand-ins, in any process.
#[derive(Debug)]
pub struct Redactor {
    keys: Keys,
    parser: Parser,
}

impl Redactor {
    /// Returns a redactor under a key of any length. Whoever has the key can undo short stand-ins by trying, so it must not leave with
    /// the records. A key of 32 random bytes that is thrown away afterwards is the best one.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        Self::with_reasons(key, [""; 0])
    }

    /// Returns a redactor that also keeps these reasons why responses end: those that a configuration gives to its safety detectors.
    #[must_use]
    pub fn with_reasons<S: AsRef<str>>(key: &[u8], reasons: impl IntoIterator<Item = S>) -> Self {
        Self { keys: Keys::new(key, words::reasons(reasons)), parser: Parser::new() }
    }

    /// Returns a record without its contents, on which every decision is the same.
    ///
    /// # Errors
    /// [`NotRedacted`] if that could not be done, or if the result does not read as the same event. The record has to be left out then.
    pub fn redact(&mut self, record: &Record<'_>) -> Result<RedactedRecord, NotRedacted> {
        self.redacted(record).map_err(|why| NotRedacted { place: record.coordinates(), why })
    }

    fn redacted(&mut self, record: &Record<'_>) -> Result<RedactedRecord, Unkept> {
        let Self { keys, parser } = self;
        let value = record.value.map(|value| redact_value(keys, parser, record, value)).transpose()?;
        let headers = headers::redact(keys, record)?;
        let redacted = RedactedRecord { key: record.key.map(<[u8]>::to_vec), value, headers };
        let borrowed: Vec<_> = redacted.headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect();
        check::same_event(keys, record, &Record { value: redacted.value.as_deref(), headers: &borrowed, ..*record })?;
        Ok(redacted)
    }
}

fn redact_value(keys: &Keys, parser: &mut Parser, record: &Record<'_>, value: &[u8]) -> Result<Vec<u8>, Unkept> {
    let own = skip_schema_registry_prefix(value);
    // What is in `data_base64` is redacted as what it is.
    let text = &with_data(own).map_or(Cow::Borrowed(own), Cow::Owned);
    let is_text = std::str::from_utf8(text).is_ok();
    let mut redacted = match parser.parse(text, EVENT_DEPTH_MAX) {
        Ok(root) if is_text => value::redact(keys, text, root, role_of(record, root))?,
        Ok(_) => unreadable::stand_in(text, None),
        Err(error) => unreadable::stand_in(text, is_text.then_some(error)),
    };
    // Data takes fewer bytes than its base64.
    redacted.resize(own.len(), b' ');
    let prefix = value.len() - own.len();
    Ok([value.get(..prefix).unwrap_or_default(), &redacted].concat())
}

fn role_of(record: &Record<'_>, root: Value<'_>) -> Role {
    if !root.is_object() {
        return Role::Data;
    }
    if is_structured(record, root) { Role::CloudEvent } else { Role::Event }
}

/// The permutations of a redactor, each for one kind of content: that a user's id stands in a text is not seen.
#[derive(Debug)]
struct Keys {
    texts: Permutation,
    results: Permutation,
    names: Permutation,
    numbers: Permutation,
    users: Permutation,
    reasons: ReasonSet,
    /// Stand-ins of names in arguments, of which few are new.
    known_names: RefCell<StandIns>,
}

/// Stand-ins by what they stand for.
type StandIns = HashMap<Box<[u8]>, Box<[u8]>>;

/// How many names are remembered, and how long they are at most, in bytes: 512 KiB for both sides.
const NAMES_MAX: usize = 4_096;
const NAME_BYTES_MAX: usize = 64;

impl Keys {
    fn new(key: &[u8], reasons: ReasonSet) -> Self {
        let of = |purpose| Permutation::new(key, purpose);
        Self {
            texts: of("text"),
            results: of("result"),
            names: of("name"),
            numbers: of("number"),
            users: of("user"),
            reasons,
            known_names: RefCell::default(),
        }
    }

    /// Returns the stand-in of a member's name. Where any name may stand in for it (`is_free`), it is remembered.
    fn name(&self, name: &[u8], is_free: bool, may_be: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, Unkept> {
        if let Some(known) = self.known_names.borrow().get(name).filter(|_| is_free) {
            return Ok(known.to_vec());
        }
        let standing_in = text::stand_in(&self.names, name, text::none, may_be)?;
        let mut known = self.known_names.borrow_mut();
        if is_free && name.len() <= NAME_BYTES_MAX && known.len() < NAMES_MAX {
            known.insert(name.into(), standing_in.as_slice().into());
        }
        Ok(standing_in)
    }
}
