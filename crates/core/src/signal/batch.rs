//! Batches: the signals of several events for one partition of the signals topic, as one record.

use std::io::Write as _;

use rustc_hash::FxHashMap;

use crate::digest::Digest;
use crate::json::ObjectWriter;
use crate::record::{Offset, Partition};

use super::{Clock, Point, SubjectKey, VERSION, VolumeKind};

/// A record of the signals topic in the making.
#[derive(Debug, Default)]
pub struct Batch {
    /// The first subject, which gives the record its key.
    first: Option<SubjectKey>,
    points: Vec<u8>,
    volumes: Vec<VolumeSum>,
    /// The place of each sum among the volumes. A batch may hold thousands of subjects.
    places: FxHashMap<(VolumeKind, SubjectKey, Partition, i64), usize>,
    clocks: Vec<Clock>,
}

/// The amounts of one subject and second so far.
#[derive(Debug)]
struct VolumeSum {
    kind: VolumeKind,
    subject: SubjectKey,
    source: Partition,
    second: i64,
    amounts: Vec<(Offset, u64)>,
}

impl Batch {
    /// Returns whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.volumes.is_empty() && self.clocks.is_empty()
    }

    /// Returns about how many bytes the record has so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let amounts: usize = self.volumes.iter().map(|volume| 160 + 16 * volume.amounts.len()).sum();
        64 + self.points.len() + amounts + 64 * self.clocks.len()
    }

    /// Adds a point.
    pub fn point(&mut self, point: &Point<'_>) {
        self.first.get_or_insert(point.subject);
        if !self.points.is_empty() {
            self.points.push(b',');
        }
        write_point(point, &mut self.points);
    }

    /// Adds an amount of a subject. `time_ms` is the event's time in milliseconds since the epoch. Offsets of a source ascend.
    pub fn volume(&mut self, kind: VolumeKind, subject: SubjectKey, source: (Partition, Offset), time_ms: i64, amount: u64) {
        self.first.get_or_insert(subject);
        let ((source, offset), second) = (source, time_ms.div_euclid(1_000));
        let place = *self.places.entry((kind, subject, source, second)).or_insert(self.volumes.len());
        match self.volumes.get_mut(place) {
            Some(sum) => sum.amounts.push((offset, amount)),
            None => self.volumes.push(VolumeSum { kind, subject, source, second, amounts: vec![(offset, amount)] }),
        }
    }

    /// Adds the clock of a source.
    pub fn clock(&mut self, clock: Clock) {
        self.clocks.push(clock);
    }

    /// Returns the subject that gives the record its key; `None` for a batch of clocks alone.
    #[must_use]
    pub fn key(&self) -> Option<SubjectKey> {
        self.first
    }

    /// Appends the record's value, and empties the batch.
    pub fn take(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!(r#"{{"version":{VERSION}"#).as_bytes());
        if !self.points.is_empty() {
            out.extend_from_slice(br#","signals":["#);
            out.append(&mut self.points);
            out.push(b']');
        }
        list(out, "volumes", std::mem::take(&mut self.volumes), |volume, out| {
            let VolumeSum { kind, subject, source, second, amounts } = volume;
            put(
                out,
                format_args!(r#"{{"volume":"{}","subject":"{subject}","partition":{source},"second":{second},"amounts":["#, kind.as_str()),
            );
            for (at, (offset, amount)) in amounts.into_iter().enumerate() {
                put(out, format_args!("{}[{offset},{amount}]", if at > 0 { "," } else { "" }));
            }
            out.extend_from_slice(b"]}");
        });
        list(out, "clocks", std::mem::take(&mut self.clocks), |clock, out| {
            put(out, format_args!(r#"{{"partition":{},"next":{},"time_ms":{}"#, clock.source, clock.next, clock.time_ms));
            out.extend_from_slice(if clock.has_begun { br#","began":true}"# } else { b"}" });
        });
        out.push(b'}');
        self.first = None;
        self.places.clear();
    }
}

fn list<T>(out: &mut Vec<u8>, name: &str, items: Vec<T>, write: impl Fn(T, &mut Vec<u8>)) {
    if items.is_empty() {
        return;
    }
    put(out, format_args!(r#","{name}":["#));
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn write_point(point: &Point<'_>, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::begin(out);
    object.plain("signal", &[point.kind.as_str().as_bytes()]);
    object.plain("subject", &[point.subject.kind.as_str().as_bytes(), b"/", &point.subject.hash.hex()]);
    whole(&mut object, "partition", point.source.0.into());
    whole(&mut object, "offset", point.offset.0);
    whole(&mut object, "time_ms", point.time_ms);
    text(&mut object, "thread_id", Some(&point.thread_id));
    text(&mut object, "event_id", Some(&point.event_id));
    hash(&mut object, "user", point.user);
    hash(&mut object, "tenant", point.tenant);
    hash(&mut object, "agent", point.agent);
    hash(&mut object, "thread", point.thread);
    text(&mut object, "tool", point.tool.as_deref());
    text(&mut object, "code", point.code.as_deref());
    hash(&mut object, "args_hash", point.args_hash);
    text(&mut object, "category", point.category.as_deref());
    text(&mut object, "stage", point.stage.as_deref());
    text(&mut object, "provider", point.provider.as_deref());
    text(&mut object, "detector", point.detector.as_deref());
    object.end();
}

fn whole(object: &mut ObjectWriter<'_>, name: &'static str, number: i64) {
    object.member(name).extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn hash(object: &mut ObjectWriter<'_>, name: &'static str, digest: Option<Digest>) {
    if let Some(digest) = digest {
        object.plain(name, &[&digest.hex()]);
    }
}

fn text(object: &mut ObjectWriter<'_>, name: &'static str, text: Option<&str>) {
    if let Some(text) = text {
        object.text(name, text);
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _infallible = out.write_fmt(text);
}
