//! Rules, signals and a stage to fold them with.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tollgate_abuse::{Abuse, AbuseRules, AbuseState, Correlation, Detection, Folded, GroupBy, Ladder, Level, Mode, Rule, Step};
use tollgate_core::decide::signal::{Batch, Clock, KeyKind, Point, PointKind, Request, SignalKind, SubjectKey, VolumeKind};
use tollgate_core::engine::checkpoint::KeyedState;
use tollgate_core::engine::stage::{Progress, Stage};
use tollgate_core::event::record::{Offset, Partition, Record, StreamClock};
use tollgate_json::digest::Digest;

pub const SECOND: i64 = 1_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;
/// A Sunday in October 2025.
pub const START: i64 = 1_760_000_400_000;

/// The timestamp of records where it does not matter: behind all that happens, as where a log is read again.
pub const LOG: i64 = START + 400 * DAY;

pub const TOPIC: &str = "tollgate.signals";
pub const PARTITION: Partition = Partition(2);

pub fn point_kind(kind: PointKind) -> SignalKind {
    SignalKind::Point(kind)
}

pub fn subject(kind: KeyKind, id: &str) -> SubjectKey {
    SubjectKey { kind, hash: Digest::of_parts(&[kind.as_str().as_bytes(), id.as_bytes()]) }
}

pub fn user(id: &str) -> SubjectKey {
    subject(KeyKind::User, id)
}

/// Returns a rule that counts safety stops by user: 3 within an hour, two steps, all of them enforced.
pub fn rule(id: &str) -> Rule {
    Rule {
        id: id.to_owned(),
        version: Digest::of(id.as_bytes()),
        level: Level::High,
        mode: Mode::Enforce,
        detection: Detection { signal: point_kind(PointKind::SafetyStop), fields: Vec::new() },
        correlation: Correlation::EventCount { gte: 3 },
        group_by: GroupBy { kind: KeyKind::User, dimensions: Vec::new() },
        timespan_ms: HOUR,
        ladder: Ladder { steps: vec![Step::Warn, Step::Suspend(15 * MINUTE), Step::Suspend(2 * HOUR)], decay_ms: DAY },
        exceptions: Vec::new(),
        suppress_ms: HOUR,
    }
}

pub fn rules(rules: Vec<Rule>) -> Arc<AbuseRules> {
    Arc::new(AbuseRules { rules, lateness_ms: 5 * MINUTE, subjects_max: 1_000_000 })
}

pub fn point(kind: PointKind, subject: SubjectKey, source: i32, offset: i64, time_ms: i64) -> Point<'static> {
    Point {
        kind,
        subject,
        source: Partition(source),
        offset: Offset(offset),
        time_ms,
        thread_id: Cow::Owned(format!("thread-{source}")),
        event_id: Cow::Owned(format!("event-{source}-{offset}")),
        user: (subject.kind == KeyKind::User).then_some(subject.hash),
        tenant: (subject.kind == KeyKind::Tenant).then_some(subject.hash),
        agent: None,
        thread: None,
        args_hash: None,
        tool: None,
        code: None,
        category: None,
        stage: None,
        provider: None,
        detector: None,
    }
}

pub fn stop(id: &str, offset: i64, time_ms: i64) -> Point<'static> {
    point(PointKind::SafetyStop, user(id), 0, offset, time_ms)
}

/// Part of a record of the signals topic.
#[derive(Debug, Clone)]
pub enum Part {
    Point(Box<Point<'static>>),
    /// An amount of a subject, from an offset of a source, at a time.
    Volume(VolumeKind, SubjectKey, i32, i64, i64, u64),
    Clock(Clock),
}

/// Returns a point as part of a record.
pub fn part(point: Point<'static>) -> Part {
    Part::Point(Box::new(point))
}

pub fn clock(source: i32, next: i64, time_ms: i64) -> Part {
    Part::Clock(Clock { source: Partition(source), next: Offset(next), time_ms, has_begun: false })
}

/// Returns the value of a record.
pub fn value_of(parts: &[Part]) -> Vec<u8> {
    let (mut batch, mut value) = (Batch::default(), Vec::new());
    for part in parts {
        match part {
            Part::Point(point) => batch.point(point),
            Part::Volume(kind, subject, source, offset, time_ms, amount) => {
                batch.volume(*kind, *subject, (Partition(*source), Offset(*offset)), *time_ms, *amount);
            }
            Part::Clock(clock) => batch.clock(*clock),
        }
    }
    batch.take(&mut value);
    value
}

/// Returns a record with a value.
pub fn record(offset: i64, timestamp_ms: i64, value: &[u8]) -> Record<'_> {
    let (partition, offset) = (PARTITION, Offset(offset));
    Record { topic: TOPIC, partition, offset, timestamp_ms: Some(timestamp_ms), key: None, value: Some(value), headers: &[] }
}

/// A stage that is fed by hand.
pub struct Bench {
    pub stage: Abuse,
    next: i64,
    /// Every alert so far.
    pub alerts: Vec<Value>,
    /// What the controls are.
    pub controls: BTreeMap<String, Value>,
    pub last: Folded,
}

impl Bench {
    pub fn new(rules: Arc<AbuseRules>) -> Self {
        let stage = Abuse::new(rules, AbuseState::default());
        Self { stage, next: 0, alerts: Vec::new(), controls: BTreeMap::new(), last: Folded::default() }
    }

    /// Returns a bench whose clock is at [`START`].
    pub fn started(rules: Arc<AbuseRules>) -> Self {
        let mut bench = Self::new(rules);
        bench.clock(START);
        bench
    }

    /// Folds a record, and returns the alerts that came of it.
    pub fn fold_at(&mut self, timestamp_ms: i64, value: &[u8]) -> Vec<Value> {
        let Progress::Done(folded) = self.stage.apply(&record(self.next, timestamp_ms, value), &mut ()) else { panic!("it never asks") };
        self.next += 1;
        let alerts: Vec<Value> = folded.alerts.iter().map(|alert| serde_json::from_slice(&alert.value).unwrap()).collect();
        for control in &folded.controls {
            match &control.value {
                Some(value) => drop(self.controls.insert(control.key.clone(), serde_json::from_slice(value).unwrap())),
                None => drop(self.controls.remove(&control.key)),
            }
        }
        self.alerts.extend(alerts.iter().cloned());
        self.last = folded;
        alerts
    }

    pub fn fold(&mut self, parts: &[Part]) -> Vec<Value> {
        self.fold_at(LOG, &value_of(parts))
    }

    pub fn stop(&mut self, id: &str, offset: i64, time_ms: i64) -> Vec<Value> {
        self.fold(&[part(stop(id, offset, time_ms))])
    }

    /// Lets somebody reach the threshold of three.
    pub fn offend(&mut self, id: &str, offset: i64, time_ms: i64) -> Vec<Value> {
        (0..3).flat_map(|n| self.stop(id, offset + n, time_ms)).collect()
    }

    /// Moves the clock of source 0.
    pub fn clock(&mut self, time_ms: i64) -> Vec<Value> {
        self.fold(&[clock(0, i64::MAX, time_ms)])
    }

    pub fn request(&mut self, request: &Request) -> Vec<Value> {
        self.fold_at(LOG, &request.to_value())
    }

    pub fn suspended_until(&self, id: &str) -> Option<&str> {
        self.controls.get(&format!("subject/{}/abuse", user(id))).map(|control| control["until"].as_str().unwrap())
    }
}

/// The records of checkpoints, as they stay.
#[derive(Default)]
pub struct Written(BTreeMap<Box<str>, Vec<u8>>);

impl Written {
    /// Writes what has changed in a stage.
    pub fn write(&mut self, stage: &mut Abuse) -> &Self {
        stage.state_mut().take_changes(|key, entry| match entry {
            Some(entry) => {
                let mut value = Vec::new();
                AbuseState::encode(entry, &mut value);
                self.0.insert(key.into(), value);
            }
            None => drop(self.0.remove(key)),
        });
        self
    }

    /// Returns the state that is found there.
    pub fn state(&self) -> AbuseState {
        let entries = self.0.iter().map(|(key, value)| (key.clone(), AbuseState::decode(value).unwrap()));
        AbuseState::restored((), StreamClock::default(), entries)
    }
}

/// Returns some members of alerts, as text.
pub fn shown(alerts: &[Value], members: &[&str]) -> Vec<String> {
    let member = |alert: &Value, name: &str| match &alert[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    alerts.iter().map(|alert| members.iter().map(|name| member(alert, name)).collect::<Vec<_>>().join(" ")).collect()
}
