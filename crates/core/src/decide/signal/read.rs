//! Reading records of the signals topic.

use std::borrow::Cow;

use serde::Deserialize;
use tollgate_json::digest::Digest;

use crate::event::record::{Offset, Partition};

use super::{KeyKind, Point, PointKind, SubjectKey, VERSION, Volume, VolumeKind};

/// The time of a partition of the events topic: no event before an offset is later than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// The partition of the events topic.
    pub source: Partition,
    /// The offset behind the last event that the time includes.
    pub next: Offset,
    /// The time, in milliseconds since the epoch.
    pub time_ms: i64,
    /// Whether the partition was read from its beginning without any state, so that its offsets may have begun again.
    pub has_begun: bool,
}

/// What an operator asks the abuse stage for, as part of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Forget what a subject has done, and end its suspensions.
    Pardon(SubjectKey),
    /// Let a rule enforce again that stopped doing so.
    Resume(String),
}

/// One record of the signals topic.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Signals<'d> {
    /// Facts, in the order of their events within each source.
    pub points: Vec<Point<'d>>,
    /// Amounts.
    pub volumes: Vec<Volume>,
    /// The times of sources.
    pub clocks: Vec<Clock>,
    /// How many sources there are: the partitions of the events topic. `None` if the record tells no times, or an older version wrote it.
    pub sources: Option<u32>,
    /// Sources that are caught up and have no time to tell, since no event of theirs was decided.
    pub idle: Vec<Partition>,
    /// What an operator asks for.
    pub request: Option<Request>,
}

/// Why a record of the signals topic cannot be read. The record is counted and changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignalRejection {
    /// A newer version wrote it.
    #[error(
        "the record is of version {found}, and this tollgate reads version {VERSION}: run the newer tollgate that wrote it, or a later one"
    )]
    Newer {
        /// The record's version.
        found: u64,
    },
    /// Something other than Tollgate wrote it.
    #[error("the record is none of Tollgate's ({0}): keep other writers off the topic")]
    Foreign(&'static str),
}

impl SignalRejection {
    /// Returns the rejection as labels write it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Newer { .. } => "newer",
            Self::Foreign(_) => "foreign",
        }
    }
}

/// Reads the value of a record.
///
/// # Errors
/// [`SignalRejection`] for a record of a newer version, and for one that Tollgate has not written.
pub fn read(value: Option<&[u8]>) -> Result<Signals<'_>, SignalRejection> {
    let value = value.ok_or(SignalRejection::Foreign("a null value"))?;
    // What is of another version may have other fields, so that its version is looked at by itself.
    let raw = match serde_json::from_slice::<RawSignals<'_>>(value) {
        Ok(raw) if raw.version == VERSION => raw,
        _ => return Err(refusal(value)),
    };
    let pardon = raw.pardon.map(|pardon| subject(&pardon.subject).map(Request::Pardon)).transpose()?;
    Ok(Signals {
        points: raw.signals.into_iter().map(RawPoint::into_point).collect::<Result<_, _>>()?,
        volumes: volumes(raw.volumes)?,
        clocks: raw.clocks.into_iter().map(RawClock::into_clock).collect(),
        sources: raw.sources,
        idle: raw.idle.into_iter().map(Partition).collect(),
        request: pardon.or_else(|| raw.resume.map(|resume| Request::Resume(resume.rule.into_owned()))),
    })
}

/// Returns why a record is not one of this version.
fn refusal(value: &[u8]) -> SignalRejection {
    match serde_json::from_slice(value) {
        Ok(Versioned { version: VERSION }) => SignalRejection::Foreign("fields of other types"),
        Ok(Versioned { version: found }) if found > VERSION => SignalRejection::Newer { found },
        Ok(_) => SignalRejection::Foreign("a version that no Tollgate writes"),
        Err(_) => SignalRejection::Foreign("no JSON object with a version"),
    }
}

#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

#[derive(Deserialize)]
struct RawSignals<'d> {
    version: u64,
    #[serde(borrow, default)]
    signals: Vec<RawPoint<'d>>,
    #[serde(borrow, default)]
    volumes: Vec<RawSums<'d>>,
    #[serde(default)]
    clocks: Vec<RawClock>,
    #[serde(default)]
    sources: Option<u32>,
    #[serde(default)]
    idle: Vec<i32>,
    #[serde(borrow, default)]
    pardon: Option<RawPardon<'d>>,
    #[serde(borrow, default)]
    resume: Option<RawResume<'d>>,
}

#[derive(Deserialize)]
struct RawPoint<'d> {
    #[serde(borrow)]
    signal: Cow<'d, str>,
    #[serde(borrow)]
    subject: Cow<'d, str>,
    partition: i32,
    offset: i64,
    time_ms: i64,
    #[serde(borrow)]
    thread_id: Cow<'d, str>,
    #[serde(borrow)]
    event_id: Cow<'d, str>,
    #[serde(borrow, default)]
    user: Option<&'d str>,
    #[serde(borrow, default)]
    tenant: Option<&'d str>,
    #[serde(borrow, default)]
    agent: Option<&'d str>,
    #[serde(borrow, default)]
    thread: Option<&'d str>,
    #[serde(borrow, default)]
    args_hash: Option<&'d str>,
    #[serde(borrow, default)]
    tool: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    code: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    category: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    stage: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    provider: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    detector: Option<Cow<'d, str>>,
}

/// The amounts of a subject in a second, by what was measured. A record with another kind of amounts is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSums<'d> {
    #[serde(borrow)]
    subject: Cow<'d, str>,
    partition: i32,
    second: i64,
    #[serde(default)]
    call: Vec<(i64, u64)>,
    #[serde(default)]
    response: Vec<(i64, u64)>,
    #[serde(default)]
    tokens: Vec<(i64, u64)>,
    #[serde(default)]
    cached_tokens: Vec<(i64, u64)>,
    #[serde(default)]
    reasoning_tokens: Vec<(i64, u64)>,
    #[serde(default)]
    audio_tokens: Vec<(i64, u64)>,
}

#[derive(Deserialize)]
struct RawClock {
    partition: i32,
    next: i64,
    time_ms: i64,
    #[serde(default)]
    began: bool,
}

#[derive(Deserialize)]
struct RawPardon<'d> {
    #[serde(borrow)]
    subject: Cow<'d, str>,
}

#[derive(Deserialize)]
struct RawResume<'d> {
    #[serde(borrow)]
    rule: Cow<'d, str>,
}

impl<'d> RawPoint<'d> {
    fn into_point(self) -> Result<Point<'d>, SignalRejection> {
        let subject = subject(&self.subject)?;
        let hash =
            |text: Option<&str>| text.map(|text| Digest::parse(text).ok_or(SignalRejection::Foreign("a hash that is none"))).transpose();
        // That of the subject itself is written once.
        let hash_of = |kind, text| if subject.kind == kind { Ok(Some(subject.hash)) } else { hash(text) };
        Ok(Point {
            kind: PointKind::from_name(&self.signal).ok_or(SignalRejection::Foreign("an unknown signal"))?,
            subject,
            source: Partition(self.partition),
            offset: Offset(self.offset),
            time_ms: self.time_ms,
            thread_id: self.thread_id,
            event_id: self.event_id,
            user: hash_of(KeyKind::User, self.user)?,
            tenant: hash_of(KeyKind::Tenant, self.tenant)?,
            agent: hash_of(KeyKind::Agent, self.agent)?,
            thread: hash_of(KeyKind::Thread, self.thread)?,
            args_hash: hash(self.args_hash)?,
            tool: self.tool,
            code: self.code,
            category: self.category,
            stage: self.stage,
            provider: self.provider,
            detector: self.detector,
        })
    }
}

/// Returns the amounts, those of each kind on their own.
fn volumes(sums: Vec<RawSums<'_>>) -> Result<Vec<Volume>, SignalRejection> {
    let mut volumes = Vec::with_capacity(sums.len());
    for RawSums { subject: name, partition, second, call, response, tokens, cached_tokens, reasoning_tokens, audio_tokens } in sums {
        let (subject, source) = (subject(&name)?, Partition(partition));
        // In the order of the kinds.
        let of_kinds = [call, response, tokens, cached_tokens, reasoning_tokens, audio_tokens];
        for (kind, amounts) in VolumeKind::ALL.iter().copied().zip(of_kinds) {
            if !amounts.is_empty() {
                let amounts = amounts.into_iter().map(|(offset, amount)| (Offset(offset), amount)).collect();
                volumes.push(Volume { kind, subject, source, second, amounts });
            }
        }
    }
    Ok(volumes)
}

impl RawClock {
    fn into_clock(self) -> Clock {
        Clock { source: Partition(self.partition), next: Offset(self.next), time_ms: self.time_ms, has_begun: self.began }
    }
}

fn subject(text: &str) -> Result<SubjectKey, SignalRejection> {
    SubjectKey::parse(text).ok_or(SignalRejection::Foreign("a subject that is none"))
}

impl Request {
    /// Returns the value of the record that asks for it.
    #[must_use]
    pub fn to_value(&self) -> Vec<u8> {
        let request = match self {
            Self::Pardon(subject) => serde_json::json!({"version": VERSION, "pardon": {"subject": subject.to_string()}}),
            Self::Resume(rule) => serde_json::json!({"version": VERSION, "resume": {"rule": rule}}),
        };
        request.to_string().into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::signal::Batch;

    fn digest(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    fn point(offset: i64) -> Point<'static> {
        let subject = SubjectKey { kind: KeyKind::User, hash: digest("u") };
        Point {
            kind: PointKind::Denial,
            subject,
            source: Partition(3),
            offset: Offset(offset),
            time_ms: 1_760_000_000_000,
            thread_id: "t \"1\"".into(),
            event_id: "e".into(),
            user: Some(subject.hash),
            tenant: None,
            agent: None,
            thread: Some(digest("t")),
            args_hash: Some(digest("{}")),
            tool: Some("bash".into()),
            code: Some("oap.tool_not_allowed".into()),
            category: None,
            stage: None,
            provider: None,
            detector: None,
        }
    }

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let (mut batch, mut value) = (Batch::default(), Vec::new());
        let subject = SubjectKey { kind: KeyKind::Tenant, hash: digest("a") };
        batch.point(&point(5));
        batch.point(&point(6));
        batch.volume(VolumeKind::Tokens, subject, (Partition(3), Offset(5)), 1_999, 7);
        batch.volume(VolumeKind::Tokens, subject, (Partition(3), Offset(6)), 1_000, 8);
        batch.volume(VolumeKind::Call, subject, (Partition(3), Offset(7)), 1_000, 1);
        batch.volume(VolumeKind::Tokens, subject, (Partition(3), Offset(7)), -1, 9);
        let clocks = [true, false].map(|has_begun| Clock { source: Partition(3), next: Offset(8), time_ms: 2_000, has_begun });
        clocks.into_iter().for_each(|clock| batch.clock(clock));
        assert_eq!(batch.key(), Some(point(5).subject));
        batch.take(&mut value);
        assert!(batch.is_empty() && batch.key().is_none());
        let read = read(Some(&value)).unwrap();
        assert_eq!(read.points, [point(5), point(6)]);
        let volume = |kind, second, amounts: &[(i64, u64)]| Volume {
            kind,
            subject,
            source: Partition(3),
            second,
            amounts: amounts.iter().map(|(offset, amount)| (Offset(*offset), *amount)).collect(),
        };
        let (call, tokens) = (VolumeKind::Call, VolumeKind::Tokens);
        assert_eq!(read.volumes, [volume(call, 1, &[(7, 1)]), volume(tokens, 1, &[(5, 7), (6, 8)]), volume(tokens, -1, &[(7, 9)])]);
        assert_eq!(read.volumes.get(1).map(|volume| (volume.sum_behind(None), volume.sum_behind(Some(Offset(5))))), Some((15, 8)));
        assert_eq!((read.clocks.as_slice(), read.request), (clocks.as_slice(), None));
    }

    fn each_kind(subjects: [SubjectKey; 2]) -> impl Iterator<Item = (SubjectKey, VolumeKind)> {
        subjects.into_iter().flat_map(|subject| VolumeKind::ALL.iter().map(move |kind| (subject, *kind)))
    }

    #[test]
    fn amounts_of_every_kind_and_of_several_subjects_are_read_as_they_were_written() {
        let mut batch = Batch::default();
        let subjects = ["a", "b"].map(|name| SubjectKey { kind: KeyKind::Agent, hash: digest(name) });
        for round in 0..2 {
            for offset in 0..5 {
                for (subject, kind) in each_kind(subjects) {
                    batch.volume(kind, subject, (Partition(3), Offset(offset)), 1_000, offset.unsigned_abs() + round);
                }
            }
            let mut value = Vec::new();
            batch.take(&mut value);
            let amounts: Vec<_> = (0..5).map(|offset| (Offset(offset), offset.unsigned_abs() + round)).collect();
            let expected = each_kind(subjects);
            let expected =
                expected.map(|(subject, kind)| Volume { kind, subject, source: Partition(3), second: 1, amounts: amounts.clone() });
            assert_eq!(read(Some(&value)).unwrap().volumes, expected.collect::<Vec<_>>());
            let known = String::from_utf8(value).unwrap();
            let unknown = known.replacen("\"second\"", "\"parrots\":[],\"second\"", 1);
            assert!(matches!(read(Some(unknown.as_bytes())), Err(SignalRejection::Foreign(_))));
        }
    }

    #[test]
    fn requests_are_read_as_they_were_written() {
        for request in [Request::Pardon(point(1).subject), Request::Resume("safety-stop-user".to_owned())] {
            assert_eq!(read(Some(&request.to_value())).unwrap().request, Some(request));
        }
    }

    #[test]
    fn what_is_none_of_ours_is_refused() {
        for newer in [r#"{"version":2}"#, r#"{"version":2,"signals":7}"#] {
            assert_eq!(read(Some(newer.as_bytes())), Err(SignalRejection::Newer { found: 2 }));
        }
        let foreign: [Option<&[u8]>; 6] = [
            None,
            Some(b"\xff"),
            Some(b"{}"),
            Some(br#"{"version":0}"#),
            Some(br#"{"version":1,"signals":[{}]}"#),
            Some(br#"{"version":1,"pardon":{"subject":"user/1"}}"#),
        ];
        for value in foreign {
            assert!(matches!(read(value), Err(SignalRejection::Foreign(_))), "{value:?}");
        }
    }
}
