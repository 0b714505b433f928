//! One partition gives the same alerts and controls, to the byte, however its records are cut into batches, and however often its workers
//! die and others go on from a checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tollgate_abuse::{
    Abuse, AbuseRules, AbuseState, AlertRecord, Baseline, ControlRecord, Correlation, Detection, GroupBy, Mode, Ratio, Rule,
};
use tollgate_core::decide::signal::{Clock, Dimension, KeyKind, Point, PointKind, Request, SignalKind, VolumeKind};
use tollgate_core::engine::checkpoint::{Checkpoint, Restore, Restored};
use tollgate_core::engine::processor::{Applied, PartitionProcessor};
use tollgate_core::engine::stage::Progress;
use tollgate_core::event::record::{Offset, Partition};
use tollgate_json::digest::Digest;

use super::fixture::*;

const OWNER: &str = "tollgate-abuse/tollgate.signals";
const USERS: usize = 12;

/// Rules of every type, so short that much happens within a few hundred signals, and memory for fewer subjects than there are.
pub fn all_rules() -> Arc<AbuseRules> {
    let by = |kind| GroupBy { kind, dimensions: Vec::new() };
    let short = Rule { timespan_ms: 20 * MINUTE, suppress_ms: 10 * MINUTE, ..rule("often") };
    let short = Rule { ladder: tollgate_abuse::Ladder { decay_ms: 30 * MINUTE, ..short.ladder.clone() }, ..short };
    let calls = Detection { signal: SignalKind::Volume(VolumeKind::Call), fields: Vec::new() };
    let quiet = Rule { mode: Mode::Alert, detection: calls.clone(), ..short.clone() };
    let over = SignalKind::Volume(VolumeKind::Call);
    let ratio = Correlation::Ratio(Ratio { over, gte: 0.1, min: 20, for_ms: MINUTE });
    let baseline = Baseline { factor: 2.0, floor: 30, history_ms: 4 * HOUR, warmup_ms: 20 * MINUTE, for_ms: 0 };
    let distinct = Correlation::ValueCount { field: Dimension::Tool, gte: 3 };
    let denials = Detection { signal: point_kind(PointKind::Denial), fields: Vec::new() };
    let by_tool = GroupBy { kind: KeyKind::User, dimensions: vec![Dimension::Tool] };
    let list = vec![
        short.clone(),
        Rule { id: "probing".to_owned(), detection: denials.clone(), correlation: distinct, ..short.clone() },
        Rule { id: "one-tool".to_owned(), detection: denials, group_by: by_tool, ..short.clone() },
        Rule { id: "sum".to_owned(), correlation: Correlation::ValueSum { gte: 60 }, group_by: by(KeyKind::User), ..quiet.clone() },
        Rule { id: "runaway".to_owned(), correlation: Correlation::Baseline(baseline), ..quiet },
        Rule { id: "share".to_owned(), correlation: ratio, ..short },
    ];
    Arc::new(AbuseRules { rules: list, lateness_ms: 5 * MINUTE, subjects_max: USERS / 2 })
}

/// Returns the tenant of a user; some have none.
fn tenant_of(id: usize) -> Option<Digest> {
    (!id.is_multiple_of(3)).then(|| subject(KeyKind::Tenant, &(id % 3).to_string()).hash)
}

/// Returns the values of the records of a log, in which sources may begin again.
pub fn log(has_resets: bool) -> impl Strategy<Value = Vec<(i64, Vec<u8>)>> {
    let someone = (0..USERS).prop_map(|id| if id < 4 { 0 } else { id });
    let kind = prop_oneof![4 => Just(0), 3 => Just(1), 4 => Just(2), 1 => Just(3), 1 => Just(4)];
    let entry = (0..2_usize, someone, kind, 0..5_usize, -2 * MINUTE..3 * MINUTE, 0..4_i64, 1..9_usize);
    vec(entry, 1..250).prop_map(move |entries| {
        let (mut log, mut parts) = (Vec::new(), vec![clock(0, 0, START), clock(1, 0, START), clock(2, 0, START)]);
        let (mut offsets, mut time_ms) = ([0, 0], START);
        for (source, id, kind, tool, step_ms, gap, cut) in entries {
            time_ms += step_ms;
            // Some events are written twice, and then their offsets do not go on.
            offsets[source] += gap;
            let (number, offset, who) = (source as i32, offsets[source], user(&id.to_string()));
            match kind {
                0 => parts.push(part(Point { tenant: tenant_of(id), ..point(PointKind::SafetyStop, who, number, offset, time_ms) })),
                1 => {
                    let mut point = Point { tenant: tenant_of(id), ..point(PointKind::Denial, who, number, offset, time_ms) };
                    point.tool = Some(["bash", "curl", "ls", "rm", "a-tool-with-a-long-name"][tool].into());
                    parts.push(part(point));
                }
                2 => parts.push(Part::Volume(VolumeKind::Call, who, number, offset, time_ms, 7)),
                3 => log.push((time_ms, [Request::Pardon(who), Request::Resume("often".to_owned())][tool % 2].to_value())),
                _ => {
                    let has_begun = has_resets && tool == 0;
                    parts.push(Part::Clock(Clock { source: Partition(number), next: Offset(offset), time_ms, has_begun }));
                }
            }
            if cut < 4 {
                parts.push(clock(number, offset + 1, time_ms));
                log.push((time_ms, value_of(&std::mem::take(&mut parts))));
            }
        }
        log.push((time_ms, value_of(&[clock(0, 0, time_ms + DAY), clock(1, 0, time_ms + DAY)])));
        log
    })
}

#[derive(Debug, Clone)]
enum Step {
    Poll(usize),
    Acknowledge,
    Freeze,
    Write { is_written: bool },
    Crash { is_written: bool },
}

fn schedule() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1..20_usize).prop_map(Step::Poll),
        5 => Just(Step::Acknowledge),
        5 => Just(Step::Freeze),
        5 => any::<bool>().prop_map(|is_written| Step::Write { is_written }),
        3 => any::<bool>().prop_map(|is_written| Step::Crash { is_written }),
    ];
    vec(step, 0..60)
}

type Published = (Vec<AlertRecord>, Vec<ControlRecord>);

fn processor(restored: Option<Restored<AbuseState>>) -> PartitionProcessor<Abuse> {
    match restored {
        Some(Restored { next, state }) => {
            let stage = Abuse::new(all_rules(), state);
            assert_eq!(stage.warming().count(), 0);
            PartitionProcessor::restored(PARTITION, stage, next)
        }
        None => PartitionProcessor::new(PARTITION, Abuse::new(all_rules(), AbuseState::default())),
    }
}

fn apply(processor: &mut PartitionProcessor<Abuse>, offset: usize, (timestamp_ms, value): &(i64, Vec<u8>)) -> Option<Published> {
    match processor.apply(&record(offset as i64, *timestamp_ms, value), &mut ()).unwrap() {
        Applied::Taken(Progress::Done(folded)) => Some((folded.alerts, folded.controls)),
        Applied::Taken(_) => panic!("it never asks"),
        Applied::Redelivered => None,
    }
}

/// A worker over what outlives it.
struct World<'l> {
    log: &'l [(i64, Vec<u8>)],
    truth: Vec<Published>,
    state: BTreeMap<String, Option<Vec<u8>>>,
    processor: PartitionProcessor<Abuse>,
    at: usize,
    unacknowledged: Vec<i64>,
    writing: Option<Arc<Checkpoint>>,
    crashes: usize,
    repeated: usize,
    /// Whether a checkpoint was refused since one was written: then the last written ones are written once more.
    is_refused: bool,
}

impl<'l> World<'l> {
    fn new(log: &'l [(i64, Vec<u8>)]) -> Self {
        let mut straight = processor(None);
        let truth = log.iter().enumerate().map(|(offset, logged)| apply(&mut straight, offset, logged).unwrap()).collect();
        let (state, unacknowledged) = (BTreeMap::new(), Vec::new());
        Self {
            log,
            truth,
            state,
            processor: processor(None),
            at: 0,
            unacknowledged,
            writing: None,
            crashes: 0,
            repeated: 0,
            is_refused: false,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Poll(count) => {
                for (offset, logged) in self.log.iter().enumerate().skip(self.at).take(*count) {
                    self.at = offset + 1;
                    let Some(published) = apply(&mut self.processor, offset, logged) else { continue };
                    prop_assert_eq!(&published, &self.truth[offset], "at {}", offset);
                    let due = published.0.len() + published.1.len();
                    self.processor.published(Offset(offset as i64), due as u32).unwrap();
                    self.unacknowledged.extend((0..due).map(|_| offset as i64));
                }
            }
            Step::Acknowledge => {
                std::mem::take(&mut self.unacknowledged).into_iter().for_each(|offset| self.processor.acknowledge(Offset(offset)).unwrap())
            }
            Step::Freeze => self.processor.freeze(OWNER),
            Step::Write { is_written } => {
                self.writing = self.writing.take().or_else(|| self.processor.take_checkpoint());
                let Some(checkpoint) = self.writing.take() else { return Ok(()) };
                if *is_written {
                    self.write(&checkpoint)?;
                    self.processor.checkpoint_written();
                    self.is_refused = false;
                } else {
                    self.processor.checkpoint_refused();
                    self.is_refused = true;
                }
            }
            Step::Crash { is_written } => {
                self.crashes += 1;
                if let Some(checkpoint) = self.processor.take_checkpoint().filter(|_| *is_written) {
                    self.write(&checkpoint)?;
                }
                let mut restore = Restore::<AbuseState>::default();
                for ((key, value), offset) in self.state.iter().zip(0..) {
                    restore.take(Offset(offset), Some(key.as_bytes()), value.as_deref());
                }
                let restored = restore.finish(OWNER, ()).map_err(|(_, error)| TestCaseError::fail(error.to_string()))?;
                let next = restored.as_ref().map_or(0, |restored| restored.next.0 as usize);
                self.repeated += self.at.saturating_sub(next);
                // It reads a few records once more that the state knows.
                (self.processor, self.at, self.unacknowledged) = (processor(restored), next.saturating_sub(3), Vec::new());
            }
        }
        Ok(())
    }

    fn write(&mut self, checkpoint: &Checkpoint) -> Result<(), TestCaseError> {
        for record in &checkpoint.records {
            if record.key != "partition" {
                let is_new = self.state.get(&record.key).is_none_or(|before| *before != record.value);
                // A source, a rule and the partition carry the offset that they are as of.
                let is_repeated = self.crashes > 0 || self.is_refused;
                prop_assert!(is_new || record.value.is_none() || is_repeated, "{} is written though it has not changed", record.key);
            }
            self.state.insert(record.key.clone(), record.value.clone());
        }
        Ok(())
    }
}

fn follow(log: &[(i64, Vec<u8>)], schedule: &[Step]) -> Result<BTreeMap<String, usize>, TestCaseError> {
    let mut world = World::new(log);
    schedule.iter().try_for_each(|step| world.step(step))?;
    world.step(&Step::Poll(usize::MAX))?;
    let mut seen = BTreeMap::from([("crash".to_owned(), world.crashes), ("repeated".to_owned(), world.repeated)]);
    for (alerts, controls) in &world.truth {
        for alert in alerts {
            let alert: serde_json::Value = serde_json::from_slice(&alert.value).unwrap();
            for name in ["rule", "status", "action"] {
                *seen.entry(format!("{name} {}", alert[name].as_str().unwrap_or_default())).or_default() += 1;
            }
        }
        for control in controls {
            *seen.entry(if control.value.is_some() { "control" } else { "tombstone" }.to_owned()).or_default() += 1;
        }
    }
    Ok(seen)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_dies_the_bytes_are_the_same(log in log(true), schedule in schedule()) {
        follow(&log, &schedule)?;
    }
}

/// In the random logs and schedules everything does come about.
#[test]
fn the_schedules_hold_every_kind_of_alert_and_trouble() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeMap::<String, usize>::new();
    for _ in 0..60 {
        let (log, schedule) = (log(true), schedule()).new_tree(&mut runner).unwrap().current();
        follow(&log, &schedule).unwrap().into_iter().for_each(|(what, count)| *seen.entry(what).or_default() += count);
    }
    let rules = ["often", "probing", "one-tool", "sum", "runaway", "share"].map(|id| format!("rule {id}"));
    let statuses = ["firing", "escalated", "ended"].map(|status| format!("status {status}"));
    let actions =
        ["warned", "suspended", "pardoned", "memory_limit", "source_reset", "source_silent"].map(|action| format!("action {action}"));
    let others = ["crash", "repeated", "control", "tombstone"].map(str::to_owned);
    for what in rules.iter().chain(&statuses).chain(&actions).chain(&others) {
        assert!(seen.get(what).is_some_and(|count| *count > 3), "{what} hardly ever came about: {seen:?}");
    }
}
