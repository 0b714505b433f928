//! Batches: the signals of several events for one partition of the signals topic, as one record.

use rustc_hash::FxHashMap;

use crate::event::record::{Offset, Partition};
use tollgate_json::ObjectWriter;
use tollgate_json::digest::Digest;

use super::{Clock, KeyKind, Point, SubjectKey, VERSION, VolumeKind};

/// About how many bytes a subject and second take besides their amounts, an amount, and a clock.
const SUMS_BYTES: usize = 150;
const AMOUNT_BYTES: usize = 16;
const CLOCK_BYTES: usize = 64;

/// A record of the signals topic in the making.
#[derive(Debug, Default)]
pub struct Batch {
    /// The first subject, which gives the record its key.
    first: Option<SubjectKey>,
    points: Vec<u8>,
    sums: Vec<Sums>,
    /// The amounts of all sums. Those of one kind in one sum are a chain, so that nothing is allocated for each.
    amounts: Vec<Amount>,
    /// The place of each subject's sums. A batch may hold thousands of subjects.
    places: FxHashMap<SumsKey, usize>,
    clocks: Vec<Clock>,
    /// How many sources there are, if that is told.
    sources: Option<u32>,
    /// Sources that are caught up and have no time to tell.
    idle: Vec<Partition>,
    /// About how many bytes the sums and the clocks will take.
    other_bytes: usize,
}

/// Whose sums, of which source, in which second.
type SumsKey = (SubjectKey, Partition, i64);

/// The amounts of one subject, source and second so far, for each kind of volume: an event often has several.
#[derive(Debug)]
struct Sums {
    key: SumsKey,
    chains: [Option<Chain>; VolumeKind::ALL.len()],
}

/// The places of the first and the last amount.
#[derive(Debug, Clone, Copy)]
struct Chain {
    first: usize,
    last: usize,
}

/// An amount, and the place of the next one of its chain.
#[derive(Debug)]
struct Amount {
    offset: Offset,
    amount: u64,
    next: Option<usize>,
}

impl Batch {
    /// Returns whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.sums.is_empty() && self.clocks.is_empty() && self.idle.is_empty()
    }

    /// Returns about how many bytes the record has so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        64 + self.points.len() + self.other_bytes
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
        let key = (subject, source.0, time_ms.div_euclid(1_000));
        let place = match self.sums.last() {
            Some(last) if last.key == key => self.sums.len() - 1,
            _ => *self.places.entry(key).or_insert(self.sums.len()),
        };
        if place == self.sums.len() {
            self.sums.push(Sums { key, chains: Default::default() });
            self.other_bytes += SUMS_BYTES;
        }
        let Some(chain) = self.sums.get_mut(place).and_then(|sums| sums.chains.get_mut(kind as usize)) else { return };
        let at = self.amounts.len();
        match chain {
            None => *chain = Some(Chain { first: at, last: at }),
            Some(Chain { last, .. }) => {
                self.amounts.get_mut(*last).into_iter().for_each(|before| before.next = Some(at));
                *last = at;
            }
        }
        self.amounts.push(Amount { offset: source.1, amount, next: None });
        self.other_bytes += AMOUNT_BYTES;
    }

    /// Adds the clock of a source.
    pub fn clock(&mut self, clock: Clock) {
        self.other_bytes += CLOCK_BYTES;
        self.clocks.push(clock);
    }

    /// Tells how many sources there are, with the clocks.
    pub fn sources(&mut self, count: u32) {
        self.sources = Some(count);
    }

    /// Tells that a source is caught up and has no time to tell, since no event of it was decided.
    pub fn idle(&mut self, source: Partition) {
        self.other_bytes += AMOUNT_BYTES;
        self.idle.push(source);
    }

    /// Returns the subject that gives the record its key; `None` for a batch of clocks alone.
    #[must_use]
    pub fn key(&self) -> Option<SubjectKey> {
        self.first
    }

    /// Appends the record's value, and empties the batch.
    pub fn take(&mut self, out: &mut Vec<u8>) {
        let mut record = ObjectWriter::begin(out);
        whole(&mut record, "version", VERSION);
        if !self.points.is_empty() {
            let list = record.member("signals");
            list.push(b'[');
            list.append(&mut self.points);
            list.push(b']');
        }
        if !self.sums.is_empty() {
            write_list(record.member("volumes"), &self.sums, |sums, out| write_sums(sums, &self.amounts, out));
        }
        if !self.clocks.is_empty() {
            write_list(record.member("clocks"), &self.clocks, write_clock);
        }
        if !self.idle.is_empty() {
            write_list(record.member("idle"), &self.idle, |source, out| out.extend_from_slice(source.to_string().as_bytes()));
        }
        if let Some(sources) = self.sources {
            whole(&mut record, "sources", sources);
        }
        record.end();
        (self.first, self.other_bytes) = (None, 0);
        self.places.clear();
        self.sums.clear();
        self.amounts.clear();
        self.clocks.clear();
        (self.sources, self.idle) = (None, Vec::new());
    }
}

fn write_list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, write: impl Fn(T, &mut Vec<u8>)) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn write_sums(sums: &Sums, amounts: &[Amount], out: &mut Vec<u8>) {
    let (subject, source, second) = sums.key;
    let mut object = ObjectWriter::begin(out);
    key(&mut object, subject);
    whole(&mut object, "partition", source.0);
    whole(&mut object, "second", second);
    for (kind, chain) in VolumeKind::ALL.iter().zip(&sums.chains) {
        let Some(chain) = chain else { continue };
        let of_chain = std::iter::successors(amounts.get(chain.first), |amount| amounts.get(amount.next?));
        write_list(object.member(kind.as_str()), of_chain, |Amount { offset, amount, .. }, out| {
            out.push(b'[');
            out.extend_from_slice(itoa::Buffer::new().format(offset.0).as_bytes());
            out.push(b',');
            out.extend_from_slice(itoa::Buffer::new().format(*amount).as_bytes());
            out.push(b']');
        });
    }
    object.end();
}

fn write_clock(clock: &Clock, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::begin(out);
    whole(&mut object, "partition", clock.source.0);
    whole(&mut object, "next", clock.next.0);
    whole(&mut object, "time_ms", clock.time_ms);
    if clock.has_begun {
        object.flag("began", true);
    }
    object.end();
}

fn write_point(point: &Point<'_>, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::begin(out);
    object.plain("signal", &[point.kind.as_str().as_bytes()]);
    key(&mut object, point.subject);
    whole(&mut object, "partition", point.source.0);
    whole(&mut object, "offset", point.offset.0);
    whole(&mut object, "time_ms", point.time_ms);
    text(&mut object, "thread_id", Some(&point.thread_id));
    text(&mut object, "event_id", Some(&point.event_id));
    // The subject itself stands there already.
    let others = [("user", KeyKind::User, point.user), ("tenant", KeyKind::Tenant, point.tenant), ("agent", KeyKind::Agent, point.agent)];
    let others = others.into_iter().chain([("thread", KeyKind::Thread, point.thread)]);
    others.filter(|(_, kind, _)| *kind != point.subject.kind).for_each(|(name, _, digest)| hash(&mut object, name, digest));
    text(&mut object, "tool", point.tool.as_deref());
    text(&mut object, "code", point.code.as_deref());
    hash(&mut object, "args_hash", point.args_hash);
    text(&mut object, "category", point.category.as_deref());
    text(&mut object, "stage", point.stage.as_deref());
    text(&mut object, "provider", point.provider.as_deref());
    text(&mut object, "detector", point.detector.as_deref());
    object.end();
}

fn key(object: &mut ObjectWriter<'_>, subject: SubjectKey) {
    object.plain("subject", &[subject.kind.as_str().as_bytes(), b"/", &subject.hash.hex()]);
}

fn whole(object: &mut ObjectWriter<'_>, name: &'static str, number: impl itoa::Integer) {
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
