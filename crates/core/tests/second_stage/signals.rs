//! A second stage, the smallest that does all that a stage may. It counts the tool calls of each user, and raises an alert at every so
//! many. For some tools it asks elsewhere how much a call weighs, and for a few it asks twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tollgate_core::checkpoint::{KeyedState, Malformed, StateError};
use tollgate_core::decode::Rejection;
use tollgate_core::digest::Digest;
use tollgate_core::record::{Offset, OwnedRecord, Record, StreamClock};
use tollgate_core::stage::{Progress, Resumed, Stage, Waiting};

/// An alert is raised whenever the count of a user reaches or passes a multiple of this.
pub const THRESHOLD: u64 = 5;
/// The longest step of time, in milliseconds, times 256.
pub const IDLE_MS_MAX: i64 = 256_000;

/// The outcome of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was counted.
    Counted,
    /// It was counted, and the count has reached this; the alert is in the output.
    Alert(u64),
    /// The count of its user was dropped.
    Forgotten,
    /// It could not be read.
    Rejected,
}

/// A request that asks how much a tool weighs, for the first or the second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub tool: String,
    pub round: u8,
}

/// What is remembered of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    pub count: u64,
    pub applied: Offset,
}

/// Returns the key of a user, a hash, so that the name is not in the topic.
pub fn key_of(user: &str) -> Box<str> {
    Digest::of(user.as_bytes()).to_string().into()
}

/// The users of a partition.
#[derive(Debug, Default)]
pub struct Subjects {
    pub entries: BTreeMap<Box<str>, Subject>,
    clock: StreamClock,
    changed: BTreeSet<Box<str>>,
    /// Keys that a checkpoint has seen: these leave a tombstone.
    known: BTreeSet<Box<str>>,
}

impl KeyedState for Subjects {
    const KIND: &'static str = "subject";
    type Entry = Subject;
    type Limits = ();

    fn encode(entry: &Subject, out: &mut Vec<u8>) {
        out.push(1);
        out.extend_from_slice(&entry.count.to_be_bytes());
        out.extend_from_slice(&entry.applied.0.to_be_bytes());
    }

    fn decode(value: &[u8]) -> Result<Subject, StateError> {
        match value {
            [1, rest @ ..] => {
                let (count, rest) = rest.split_first_chunk().ok_or(Malformed::Truncated)?;
                let (applied, rest) = rest.split_first_chunk().ok_or(Malformed::Truncated)?;
                let subject = Subject { count: u64::from_be_bytes(*count), applied: Offset(i64::from_be_bytes(*applied)) };
                if rest.is_empty() { Ok(subject) } else { Err(Malformed::Trailing(rest.len()).into()) }
            }
            [found, ..] => Err(StateError::Newer { found: *found }),
            [] => Err(Malformed::Truncated.into()),
        }
    }

    fn applied(entry: &Subject) -> Offset {
        entry.applied
    }

    fn restored((): (), clock: StreamClock, entries: impl IntoIterator<Item = (Box<str>, Subject)>) -> Self {
        let entries: BTreeMap<_, _> = entries.into_iter().collect();
        Self { known: entries.keys().cloned().collect(), entries, clock, changed: BTreeSet::new() }
    }

    fn clock(&self) -> StreamClock {
        self.clock
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn bytes(&self) -> usize {
        self.entries.keys().map(|key| key.len() + size_of::<Subject>()).sum()
    }

    fn take_changes(&mut self, mut show: impl FnMut(&str, Option<&Subject>)) {
        let (there, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.changed).into_iter().partition(|key| self.entries.contains_key(key));
        gone.iter().filter(|key| self.known.contains(*key)).for_each(|key| show(key, None));
        there.iter().for_each(|key| show(key, self.entries.get(key)));
        self.known.extend(there);
    }

    fn take_change(&mut self, key: &str) -> Option<&Subject> {
        self.changed.remove(key);
        self.known.insert(key.into());
        self.entries.get(key)
    }

    fn mark_changed(&mut self, key: &str) {
        self.changed.insert(key.into());
    }
}

/// A record that waits, with the question about it that was asked and answered last.
#[derive(Debug)]
struct Waiter {
    record: OwnedRecord,
    asked: Option<u8>,
    weight: Option<u64>,
}

/// The stage.
#[derive(Debug, Default)]
pub struct Signals {
    state: Subjects,
    queues: BTreeMap<Box<str>, VecDeque<Waiter>>,
    asked: BTreeMap<Offset, Box<str>>,
    ready: VecDeque<Box<str>>,
}

impl Signals {
    pub fn with_state(state: Subjects) -> Self {
        Self { state, ..Self::default() }
    }

    fn fold(&mut self, key: &str, record: &Record<'_>, weight: u64, out: &mut String) -> Outcome {
        self.state.changed.insert(key.into());
        if tool_of(record) == "forget" {
            self.state.entries.remove(key);
            return Outcome::Forgotten;
        }
        let subject = self.state.entries.entry(key.into()).or_insert(Subject { count: 0, applied: record.offset });
        let before = subject.count / THRESHOLD;
        *subject = Subject { count: subject.count + weight, applied: record.offset };
        if subject.count / THRESHOLD == before {
            return Outcome::Counted;
        }
        *out = format!("{key}: {}", subject.count);
        Outcome::Alert(subject.count)
    }

    fn ask(&mut self, key: &str, round: u8, weight: Option<u64>, record: OwnedRecord) -> Request {
        let (offset, tool) = record.with_borrowed(|record| (record.offset, tool_of(record).to_owned()));
        self.asked.insert(offset, key.into());
        self.queues.entry(key.into()).or_default().push_front(Waiter { record, asked: Some(round), weight });
        Request { tool, round }
    }
}

fn tool_of<'r>(record: &Record<'r>) -> &'r str {
    std::str::from_utf8(record.value.unwrap_or_default()).unwrap()
}

fn key_of_record(record: &Record<'_>) -> Box<str> {
    key_of(std::str::from_utf8(record.key.unwrap()).unwrap())
}

/// Returns whether tools of this name are asked about.
pub fn is_asked_about(tool: &str) -> bool {
    tool.starts_with("ask")
}

impl Stage for Signals {
    type Outcome = Outcome;
    type Request = Request;
    type Response = u64;
    type Output = String;
    type State = Subjects;

    fn apply(&mut self, record: &Record<'_>, out: &mut String) -> Progress<Outcome, Request> {
        if let Some(time_ms) = record.timestamp_ms {
            self.state.clock.advance(time_ms, IDLE_MS_MAX);
        }
        let key = key_of_record(record);
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.push_back(Waiter { record: OwnedRecord::of(record), asked: None, weight: None });
            return Progress::Waits;
        }
        if is_asked_about(tool_of(record)) {
            return Progress::Asks(self.ask(&key, 1, None, OwnedRecord::of(record)));
        }
        Progress::Done(self.fold(&key, record, 1, out))
    }

    fn reject(&mut self, _: &Record<'_>, _: Rejection, _: &mut String) -> Outcome {
        Outcome::Rejected
    }

    fn answer(&mut self, offset: Offset, response: u64) {
        let Some(key) = self.asked.remove(&offset) else { return };
        let head = self.queues.get_mut(&key).and_then(VecDeque::front_mut).unwrap();
        head.weight = Some(response);
        self.ready.push_back(key);
    }

    fn resume(&mut self, out: &mut String) -> Option<Resumed<Outcome, Request>> {
        let key = self.ready.pop_front()?;
        let Waiter { record, asked, weight } = self.queues.get_mut(&key).and_then(VecDeque::pop_front).unwrap();
        let (offset, must_ask) = record.with_borrowed(|record| (record.offset, is_asked_about(tool_of(record))));
        // A tool that weighs nothing is asked about once more.
        let round = match (must_ask, asked, weight) {
            (true, None, _) => Some(1),
            (true, Some(1), Some(0)) => Some(2),
            _ => None,
        };
        if let Some(round) = round {
            return Some(Resumed::Asks(offset, self.ask(&key, round, None, record)));
        }
        let outcome = record.with_borrowed(|record| self.fold(&key, record, weight.unwrap_or(1), out));
        let next = self.queues.get(&key).and_then(VecDeque::front).map(|waiter| waiter.record.offset());
        match next {
            Some(_) => self.ready.push_front(key.clone()),
            None => drop(self.queues.remove(&key)),
        }
        Some(Resumed::Done { record, outcome, key, next })
    }

    fn waiting(&self) -> Waiting {
        let records = || self.queues.values().flatten();
        Waiting { records: records().count(), bytes: records().map(|waiter| waiter.record.bytes()).sum() }
    }

    fn waiting_keys(&self) -> impl Iterator<Item = &str> {
        self.queues.keys().map(|key| &**key)
    }

    fn state(&self) -> &Subjects {
        &self.state
    }

    fn state_mut(&mut self) -> &mut Subjects {
        &mut self.state
    }
}
