//! The entries of the abuse stage's state, and their encoding.
//!
//! ```text
//! subject/<kind>/<hash>   counters, places on ladders, evidence, the control in force
//! source/<partition>      the offset that was applied, how far it is in time
//! rule/<id>               its number and version, whether it is warming or paused, its alerts of the minute
//! partition               the time up to which everything due is done
//! ```

use tollgate_core::decide::signal::SubjectKey;
use tollgate_core::engine::checkpoint::{Malformed, StateError};
use tollgate_core::engine::wire::{Input, Wire, layout};
use tollgate_core::event::record::{Offset, Partition};

use super::rule_states::RuleState;
use super::sources::Source;
use crate::subjects::Subject;

/// The version of the format that is written. It is the first byte of every value.
const VERSION: u8 = 1;

const SUBJECT: u8 = 0;
const SOURCE: u8 = 1;
const RULE: u8 = 2;
const PARTITION: u8 = 3;

/// What is remembered under one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry(pub(crate) Content);

/// What an entry is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// A subject, as the bytes that it is kept as.
    Subject(Box<[u8]>),
    /// A source, as of the offset of a record.
    Source(Offset, Source),
    /// A rule, as of the offset of a record.
    Rule(Offset, RuleState),
    /// The partition itself, as of the offset of a record.
    Own(Offset, Own),
}

/// What is remembered of the partition itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// The second since the epoch up to which everything that was due is done.
    pub done_s: u32,
    /// The number of the next rule that is new.
    pub next_rule: u32,
    /// When the last alert about the memory limit was raised, in milliseconds since the epoch.
    pub limit_alerted_ms: Option<i64>,
}

layout! {
    Own { done_s, next_rule, limit_alerted_ms }
}

/// The key of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EntryKey<'k> {
    /// `subject/<kind>/<hash>`
    Subject(SubjectKey),
    /// `source/<partition>`
    Source(Partition),
    /// `rule/<id>`
    Rule(&'k str),
    /// `partition`
    Own,
}

impl<'k> EntryKey<'k> {
    /// Reads a key; `None` if no version writes such a key.
    pub(crate) fn read(key: &'k str) -> Option<Self> {
        match key.split_once('/') {
            Some(("subject", subject)) => SubjectKey::parse(subject).map(Self::Subject),
            Some(("source", source)) => source.parse().ok().map(|source| Self::Source(Partition(source))),
            Some(("rule", id)) => Some(Self::Rule(id)),
            None if key == "partition" => Some(Self::Own),
            _ => None,
        }
    }
}

impl std::fmt::Display for EntryKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Subject(key) => write!(f, "subject/{key}"),
            Self::Source(source) => write!(f, "source/{source}"),
            Self::Rule(id) => write!(f, "rule/{id}"),
            Self::Own => f.write_str("partition"),
        }
    }
}

impl Content {
    /// Returns the offset of the last record that was applied to it.
    pub(crate) fn applied(&self) -> Offset {
        match self {
            // It was read whole when it came from a checkpoint.
            Self::Subject(bytes) => Subject::read(bytes).map_or(Offset(i64::MAX), |subject| subject.applied),
            Self::Source(applied, _) | Self::Rule(applied, _) | Self::Own(applied, _) => *applied,
        }
    }

    /// Appends the entry.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Subject(bytes) => {
                out.extend_from_slice(&[VERSION, SUBJECT]);
                out.extend_from_slice(bytes);
            }
            Self::Source(applied, source) => encode(SOURCE, *applied, source, out),
            Self::Rule(applied, rule) => encode(RULE, *applied, rule, out),
            Self::Own(applied, own) => encode(PARTITION, *applied, own, out),
        }
    }

    /// Reads an entry.
    pub(crate) fn decode(value: &[u8]) -> Result<Self, StateError> {
        let (version, bytes) = value.split_first().ok_or(Malformed::Truncated)?;
        match *version {
            VERSION => {}
            0 => return Err(Malformed::Invalid("the version").into()),
            found => return Err(StateError::Newer { found }),
        }
        let (about, bytes) = bytes.split_first().ok_or(Malformed::Truncated)?;
        match *about {
            SUBJECT => {
                Subject::read(bytes)?.check()?;
                Ok(Self::Subject(bytes.into()))
            }
            SOURCE => decode(bytes).map(|(applied, source)| Self::Source(applied, source)),
            RULE => decode(bytes).map(|(applied, rule)| Self::Rule(applied, rule)),
            PARTITION => decode(bytes).map(|(applied, own)| Self::Own(applied, own)),
            _ => Err(Malformed::Invalid("what the entry is about").into()),
        }
    }
}

fn encode(about: u8, applied: Offset, value: &impl Wire, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION, about]);
    applied.0.write(out);
    value.write(out);
}

fn decode<T: Wire>(bytes: &[u8]) -> Result<(Offset, T), StateError> {
    let (applied, value): (i64, T) = Input::new(VERSION.into(), bytes).whole()?;
    Ok((Offset(applied), value))
}

#[cfg(test)]
mod tests {
    use super::super::rule_states::{Grouping, Pauses};
    use super::*;
    use tollgate_core::decide::signal::KeyKind;
    use tollgate_json::digest::Digest;

    #[test]
    fn keys_are_read_as_they_were_written() {
        let subject = SubjectKey { kind: KeyKind::Call, hash: Digest::of(b"x") };
        for key in [EntryKey::Subject(subject), EntryKey::Source(Partition(12)), EntryKey::Rule("a/b"), EntryKey::Own] {
            assert_eq!(EntryKey::read(&key.to_string()), Some(key));
        }
        for key in ["", "subject", "subject/user/1", "source/x", "source", "thread/t"] {
            assert_eq!(EntryKey::read(key), None, "{key}");
        }
    }

    #[test]
    fn entries_are_read_as_they_were_written_and_nothing_else_is() {
        let rule = RuleState {
            number: 3,
            version: Digest::of(b"v"),
            is_warming: true,
            pauses: Pauses::default(),
            forgiven_ms: Some(-3),
            grouping: Grouping::default(),
        };
        let own = Own { done_s: 6, next_rule: 7, limit_alerted_ms: None };
        for content in [Content::Rule(Offset(4), rule), Content::Own(Offset(5), own), Content::Source(Offset(6), Source::default())] {
            let mut bytes = Vec::new();
            content.encode(&mut bytes);
            assert_eq!(Content::decode(&bytes).unwrap(), content);
            assert_eq!(Content::decode(&bytes[..bytes.len() - 1]), Err(Malformed::Truncated.into()));
            bytes.push(0);
            assert_eq!(Content::decode(&bytes), Err(Malformed::Trailing(1).into()));
        }
        assert_eq!(Content::decode(&[VERSION + 1, 0]), Err(StateError::Newer { found: VERSION + 1 }));
        assert_eq!(Content::decode(&[VERSION, 9]), Err(Malformed::Invalid("what the entry is about").into()));
        assert_eq!(Content::decode(&[VERSION, SUBJECT, 0]), Err(Malformed::Truncated.into()));
    }
}
