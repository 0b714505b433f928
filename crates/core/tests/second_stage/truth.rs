//! Makes random logs of one partition, and folds them plainly, without processor or stage.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::event::record::{Offset, Partition, Record, StreamClock};
use tollgate_fixtures::sample_stage::{IDLE_MS_MAX, Outcome, Request, Subject, Subjects, THRESHOLD, is_asked_about, key_of};

pub const PARTITION: Partition = Partition(3);

/// One record of the log: a user's call of a tool.
#[derive(Debug, Clone)]
pub struct Logged {
    pub offset: Offset,
    pub time_ms: i64,
    pub user: &'static str,
    pub tool: &'static str,
    /// Whether its reader can read it.
    pub is_readable: bool,
}

impl Logged {
    pub fn record(&self) -> Record<'_> {
        let (key, value) = (Some(self.user.as_bytes()), Some(self.tool.as_bytes()));
        Record { topic: "calls", partition: PARTITION, offset: self.offset, timestamp_ms: Some(self.time_ms), key, value, headers: &[] }
    }
}

/// Returns what is answered: always the same to the same question.
pub fn answer_to(request: &Request) -> u64 {
    match (request.tool.as_str(), request.round) {
        ("ask_twice", 1) => 0,
        ("ask_twice", _) => 2,
        _ => 3,
    }
}

/// The outcome of a record, what is published of it, and in how many places.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    pub outcome: Outcome,
    pub text: String,
}

impl Published {
    pub fn due(&self) -> u32 {
        match self.outcome {
            Outcome::Counted | Outcome::Forgotten => 0,
            Outcome::Rejected => 1,
            Outcome::Alert(_) => 2,
        }
    }
}

/// The whole state of a partition.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub clock: StreamClock,
    pub entries: BTreeMap<Box<str>, Subject>,
}

impl Snapshot {
    pub fn of(clock: StreamClock, state: &Subjects) -> Self {
        Self { clock, entries: state.entries.clone() }
    }

    pub fn without(mut self, is_left_out: impl Fn(&str) -> bool) -> Self {
        self.entries.retain(|key, _| !is_left_out(key));
        self
    }
}

/// The log and its outcomes.
#[derive(Debug)]
pub struct Truth {
    pub log: Vec<Logged>,
    pub published: Vec<Published>,
    /// The state before each record, and behind the last one.
    snapshots: Vec<Snapshot>,
}

impl Truth {
    pub fn of(log: Vec<Logged>) -> Self {
        let mut now = Snapshot { clock: StreamClock::default(), entries: BTreeMap::new() };
        let (mut published, mut snapshots) = (Vec::new(), vec![now.clone()]);
        for logged in &log {
            published.push(if logged.is_readable {
                fold(&mut now, logged)
            } else {
                Published { outcome: Outcome::Rejected, text: String::new() }
            });
            snapshots.push(now.clone());
        }
        Self { log, published, snapshots }
    }

    /// Returns the first record at an offset or behind it.
    pub fn index_of(&self, offset: Offset) -> usize {
        self.log.partition_point(|logged| logged.offset < offset)
    }

    /// Returns the state as of an offset.
    pub fn snapshot(&self, next: Offset) -> Snapshot {
        self.snapshots[self.index_of(next)].clone()
    }
}

fn fold(now: &mut Snapshot, logged: &Logged) -> Published {
    now.clock.advance(logged.time_ms, IDLE_MS_MAX);
    let key = key_of(logged.user);
    let silent = |outcome| Published { outcome, text: String::new() };
    if logged.tool == "forget" {
        now.entries.remove(&key);
        return silent(Outcome::Forgotten);
    }
    let weight = match logged.tool {
        "ask_twice" => 2,
        tool if is_asked_about(tool) => 3,
        _ => 1,
    };
    let before = now.entries.get(&key).map_or(0, |subject| subject.count);
    let count = before + weight;
    now.entries.insert(key.clone(), Subject { count, applied: logged.offset });
    if before / THRESHOLD == count / THRESHOLD {
        return silent(Outcome::Counted);
    }
    Published { outcome: Outcome::Alert(count), text: format!("{key}: {count}") }
}

/// Returns logs of few users, whose offsets have gaps.
pub fn log() -> impl Strategy<Value = Vec<Logged>> {
    let tool = prop_oneof![8 => Just("bash"), 3 => Just("ask"), 2 => Just("ask_twice"), 1 => Just("forget")];
    let gap = prop_oneof![6 => Just(1_i64), 1 => 2..5_i64];
    let entry = (select(vec!["ada", "bob", "cy", "dee"]), tool, proptest::bool::weighted(0.95), gap, -300..3_000_i64);
    (0..30_i64, vec(entry, 1..80)).prop_map(|(start, entries)| {
        let (mut offset, mut time_ms) = (start, 1_000_000);
        let next = |(user, tool, is_readable, gap, pause_ms): (&'static str, &'static str, bool, i64, i64)| {
            let logged = Logged { offset: Offset(offset), time_ms, user, tool, is_readable };
            (offset, time_ms) = (offset + gap, time_ms + pause_ms);
            logged
        };
        entries.into_iter().map(next).collect()
    })
}
