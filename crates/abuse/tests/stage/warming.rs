//! Rules that are new to a partition: a fold of their own is shown the log while the others go on, and is taken in.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use tollgate_abuse::{Abuse, AbuseRules, AbuseState, Correlation, Detection, Firing, Folded, Ladder, Mode, Rule, Step as Rung, WarmUp};
use tollgate_core::decide::signal::{PointKind, SubjectKey};
use tollgate_core::engine::processor::PartitionProcessor;
use tollgate_core::engine::stage::{Progress, Stage};
use tollgate_core::event::record::Offset;
use tollgate_json::digest::Digest;

use super::crashes::{all_rules, log};
use super::fixture::*;

/// Records of the log: the timestamp and the value of each.
type Log = Vec<(i64, Vec<u8>)>;

/// All subjects are taken in with one record.
const ALL: NonZeroUsize = NonZeroUsize::MAX;

/// A clock, and then a stop of a user in each of five records.
fn five_stops() -> Log {
    let first = (LOG, value_of(&[clock(0, 0, START)]));
    std::iter::once(first).chain((0..5).map(stop_in_record)).collect()
}

fn stop_in_record(n: i64) -> (i64, Vec<u8>) {
    (LOG, value_of(&[part(stop("a", n, START + n)), clock(0, n + 1, START + n)]))
}

fn five() -> Rule {
    Rule { correlation: Correlation::EventCount { gte: 5 }, mode: Mode::Alert, ..rule("five") }
}

fn fold(stage: &mut Abuse, offset: usize, (timestamp_ms, value): &(i64, Vec<u8>)) -> Folded {
    let Progress::Done(folded) = stage.apply(&record(offset as i64, *timestamp_ms, value), &mut ()) else { panic!("it never asks") };
    folded
}

fn show(warm_up: &mut WarmUp, log: &Log, offset: usize) {
    let (timestamp_ms, value) = &log[offset];
    warm_up.fold(&record(offset as i64, *timestamp_ms, value));
}

/// Returns what a stage with rules has written behind some records.
fn written_by(rules_then: &Arc<AbuseRules>, log: &[(i64, Vec<u8>)]) -> Written {
    let (mut before, mut written) = (Abuse::new(Arc::clone(rules_then), AbuseState::default()), Written::default());
    log.iter().enumerate().for_each(|(offset, entry)| drop(fold(&mut before, offset, entry)));
    written.write(&mut before);
    written
}

/// Returns a stage with rules, whose state is that of another one behind some records.
fn taken_over_by(rules_now: &Arc<AbuseRules>, rules_then: &Arc<AbuseRules>, log: &[(i64, Vec<u8>)]) -> Abuse {
    Abuse::new(Arc::clone(rules_now), written_by(rules_then, log).state())
}

/// Returns a stage for which one of two rules is new, behind so many records.
fn with_five(log: &Log, records: usize) -> Abuse {
    taken_over_by(&rules(vec![rule("three"), five()]), &rules(vec![rule("three")]), &log[..records])
}

#[test]
fn a_new_rule_warms_up_where_there_is_state_and_not_where_there_is_none() {
    let fresh = Abuse::new(rules(vec![five()]), AbuseState::default());
    assert!(fresh.warming().next().is_none() && fresh.warm_up().is_none());
    let stage = with_five(&five_stops(), 5);
    assert_eq!(stage.warming().collect::<Vec<_>>(), ["five"]);
    let warm_up = stage.warm_up().unwrap();
    assert_eq!((warm_up.from_ms(), warm_up.next()), (Some(START + 3 - HOUR - 15 * MINUTE), Offset(0)));
    let warming = |rules_now: Vec<Rule>| {
        let stage = taken_over_by(&rules(rules_now), &rules(vec![rule("three")]), &five_stops()[..5]);
        stage.warming().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(warming(vec![rule("three")]).is_empty(), "it is known");
    assert!(warming(vec![]).is_empty());
    assert_eq!(warming(vec![Rule { version: Digest::of(b"another"), ..rule("three") }]), ["three"], "it is another one now");
}

#[test]
fn taken_in_it_knows_what_it_would_know_and_is_in_force_behind_a_checkpoint() {
    let log = five_stops();
    let mut stage = with_five(&log, 5);
    let mut warm_up = stage.warm_up().unwrap();
    (0..5).for_each(|offset| show(&mut warm_up, &log, offset));
    stage.offer(warm_up, ALL);
    assert_eq!(stage.warming().count(), 1, "before the next record");
    assert_eq!(fold(&mut stage, 5, &log[5]).firings.len(), 0, "the fifth, and it is quiet");
    assert!(stage.take_back().is_none() && stage.warm_up().is_none());
    stage.checkpoint_written(Offset(5));
    assert_eq!(stage.warming().count(), 1, "that checkpoint does not have it");
    let alerts: Vec<usize> = (5..9).map(|n| fold(&mut stage, 1 + n, &stop_in_record(n as i64)).alerts.len()).collect();
    assert_eq!(alerts, [1, 0, 0, 1], "of the other rule");
    stage.checkpoint_written(Offset(9));
    assert_eq!(stage.warming().count(), 0);
    let folded = fold(&mut stage, 10, &stop_in_record(9));
    assert_eq!(folded.firings.iter().map(|firing| firing.rule).collect::<Vec<_>>(), [1], "the tenth: the quiet firing has used up five");
}

/// Whoever takes the partition over finds the rule in force if the checkpoint has it, and else begins anew and counts nothing twice.
#[test]
fn a_warm_up_that_no_checkpoint_has_begins_anew() {
    let log = five_stops();
    let now = rules(vec![rule("three"), five()]);
    for (is_taken_in, alerts) in [(false, 0), (true, 1)] {
        let mut written = written_by(&rules(vec![rule("three")]), &log[..4]);
        let mut stage = Abuse::new(Arc::clone(&now), written.state());
        let mut warm_up = stage.warm_up().unwrap();
        (0..4).for_each(|offset| show(&mut warm_up, &log, offset));
        if is_taken_in {
            stage.offer(warm_up, ALL);
        }
        fold(&mut stage, 4, &log[4]);
        let mut next = Abuse::new(Arc::clone(&now), written.write(&mut stage).state());
        assert_eq!(next.warming().count(), usize::from(!is_taken_in));
        assert_eq!(fold(&mut next, 5, &log[5]).alerts.len(), alerts, "the fifth");
    }
}

/// Or else a partition that is always a little ahead would never be reached.
#[test]
fn a_warm_up_that_is_never_quicker_is_taken_in_all_the_same() {
    let log = five_stops();
    let mut stage = with_five(&log, 2);
    let mut warm_up = stage.warm_up().unwrap();
    let mut rounds = 0;
    let mut next = 2;
    while stage.warm_up().is_some() {
        let from = warm_up.next().0 as usize;
        (from..next).for_each(|offset| show(&mut warm_up, &log, offset.min(5)));
        fold(&mut stage, next, &log[next.min(5)]);
        stage.offer(warm_up, ALL);
        let Some(back) = stage.take_back() else { break };
        (warm_up, next, rounds) = (back, next + 1, rounds + 1);
    }
    assert_eq!(rounds, 1, "a record comes whenever it has read the last one");
}

/// A log has no record at some offsets, and none at all where all of it was deleted.
#[test]
fn offsets_without_a_record_keep_nobody_apart() {
    let log = five_stops();
    for (begin, first) in [(7, 9), (9, 9), (5, 7)] {
        let mut stage = with_five(&log, 5);
        let mut warm_up = stage.warm_up().unwrap();
        warm_up.begin_at(Offset(begin));
        stage.offer(warm_up, ALL);
        fold(&mut stage, first, &log[5]);
        assert!(stage.warm_up().is_none(), "{begin} {first}");
    }
}

/// Shows a warm-up all records of a log, has the stage take it in behind them, and writes a checkpoint.
fn warm(stage: &mut Abuse, log: &Log) -> Folded {
    let mut warm_up = stage.warm_up().unwrap();
    (0..log.len()).for_each(|offset| show(&mut warm_up, log, offset));
    stage.offer(warm_up, ALL);
    let folded = fold(stage, log.len(), &(LOG, value_of(&[clock(0, 900, START + 6)])));
    stage.checkpoint_written(Offset(log.len() as i64 + 1));
    assert_eq!(stage.warming().count(), 0);
    folded
}

fn values(folded: &Folded) -> Vec<Value> {
    folded.alerts.iter().map(|alert| serde_json::from_slice(&alert.value).unwrap()).collect()
}

/// Whoever is on the ladder of a rule that has changed stays there, with what the log says of the signals.
#[test]
fn a_changed_rule_knows_the_log_of_those_on_its_ladder() {
    let log = five_stops();
    let changed = Rule { version: Digest::of(b"another"), ..rule("three") };
    let mut stage = taken_over_by(&rules(vec![changed]), &rules(vec![rule("three")]), &log);
    warm(&mut stage, &log);
    let folded = fold(&mut stage, 7, &stop_in_record(9));
    assert_eq!(shown(&values(&folded), &["status", "step", "count"]), ["escalated 2 3"], "three of the five stops are used up");
    assert_eq!((folded.controls.len(), stage.subjects()), (1, 1));
}

#[test]
fn an_alert_shows_what_the_log_had() {
    let log = five_stops();
    let mut stage = with_five(&log[..5].to_vec(), 5);
    warm(&mut stage, &log[..5].to_vec());
    let alerts = values(&fold(&mut stage, 6, &stop_in_record(9)));
    let events: Vec<&str> = alerts[0]["evidence"].as_array().unwrap().iter().map(|seen| seen["event_id"].as_str().unwrap()).collect();
    assert_eq!((alerts[0]["rule"].as_str(), alerts.len()), (Some("five"), 1));
    assert_eq!(events, ["event-0-0", "event-0-1", "event-0-2", "event-0-3", "event-0-9"]);
}

/// Memory is bounded, and what was forgotten is counted.
#[test]
fn who_is_forgotten_is_counted() {
    let denials = Detection { signal: point_kind(PointKind::Denial), fields: Vec::new() };
    let of = |list: Vec<Rule>| Arc::new(AbuseRules { subjects_max: 6, ..AbuseRules::clone(&rules(list)) });
    let mut log = Log::new();
    for n in 0..8 {
        let kind = if n < 4 { PointKind::SafetyStop } else { PointKind::Denial };
        log.push((LOG, value_of(&[part(point(kind, user(&n.to_string()), 0, n, START)), clock(0, n + 1, START)])));
    }
    let three = Rule { mode: Mode::Alert, ..rule("three") };
    let now = of(vec![three.clone(), Rule { detection: denials, ..five() }]);
    let mut stage = taken_over_by(&now, &of(vec![three]), &log);
    assert_eq!(stage.subjects(), 4);
    let folded = warm(&mut stage, &log);
    assert_eq!((folded.counts.subjects_dropped, stage.subjects()), (2, 6), "of those that were there and those that come");
    assert_eq!(shown(&values(&folded), &["action"]), ["memory_limit"]);
}

/// Or else a rule that comes to enforce would be paused: it would seem that hardly anybody is active.
#[test]
fn who_was_active_before_counts_for_the_blast_radius() {
    let mut log: Log = (0..1_100).map(|n| (LOG, value_of(&[part(stop(&format!("u{n}"), n, START)), clock(0, n + 1, START)]))).collect();
    log.push((LOG, value_of(&[clock(0, 1_101, START + 1)])));
    let alert = Rule { mode: Mode::Alert, ..rule("three") };
    let enforce =
        Rule { version: Digest::of(b"enforced"), ladder: Ladder { steps: vec![Rung::Suspend(DAY)], decay_ms: DAY }, ..rule("three") };
    let detection = Detection { signal: point_kind(PointKind::LoopStop), fields: Vec::new() };
    let other = Rule { detection, ..rule("other") };
    for others in [vec![], vec![other]] {
        check_radius(&log, &[vec![alert.clone()], others.clone()].concat(), [vec![enforce.clone()], others].concat());
    }
}

fn check_radius(log: &Log, then: &[Rule], now: Vec<Rule>) {
    let mut stage = taken_over_by(&rules(now), &rules(then.to_vec()), log);
    let mut warm_up = stage.warm_up().unwrap();
    (0..log.len()).for_each(|offset| show(&mut warm_up, log, offset));
    stage.offer(warm_up, NonZeroUsize::MIN);
    // Meanwhile all of them are heard of once more, in what the rule does not count.
    for n in 0..1_100 {
        let denial = point(PointKind::Denial, user(&format!("u{n}")), 0, 1_200 + n, START + 1);
        fold(&mut stage, log.len() + n as usize, &(LOG, value_of(&[part(denial)])));
    }
    stage.checkpoint_written(Offset(3_000));
    assert_eq!(stage.warming().count(), 0);
    for n in 0..25 {
        let stops = (0..2).map(|again| part(stop(&format!("u{n}"), 4_000 + 2 * n + again, START + 1))).collect::<Vec<_>>();
        fold(&mut stage, 3_000 + n as usize, &(LOG, value_of(&stops)));
        assert_eq!(stage.paused().count(), usize::from(n >= 22), "22 of 1,100 are 2 %: {n}");
    }
}

/// How far the partition's fold goes, and how far the warm-up, before it is offered again; and whether a checkpoint is written then.
fn steps() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
    vec((0..12_usize, 0..30_usize, any::<bool>()), 0..40)
}

/// The last record before a checkpoint may leave no trace in it, and the warm-up has to be shown it all the same.
#[test]
fn a_stage_knows_how_far_its_state_is() {
    let log = five_stops();
    let processor = PartitionProcessor::restored(PARTITION, with_five(&log, 5), Offset(6));
    let mut stage = with_five(&log, 5);
    assert_eq!((stage.applied(), processor.stage().applied()), (Offset(4), Offset(5)));
    let mut warm_up = stage.warm_up().unwrap();
    warm_up.begin_at(Offset(5));
    stage.restored(Offset(6));
    stage.offer(warm_up, ALL);
    assert_eq!(stage.take_back().map(|warm_up| warm_up.next()), Some(Offset(5)), "record 5 is missing");
}

/// What a worker comes to while rules of its partition warm up.
#[derive(Debug, Clone)]
enum Step {
    Poll(usize),
    /// The warm-up is shown so many records, and offered.
    Show(usize),
    /// A checkpoint is written, and the worker learns of it or not.
    Write {
        is_noticed: bool,
    },
    Crash,
}

fn schedule() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..12_usize).prop_map(Step::Poll),
        4 => (0..40_usize).prop_map(Step::Show),
        2 => any::<bool>().prop_map(|is_noticed| Step::Write { is_noticed }),
        1 => Just(Step::Crash),
    ];
    vec(step, 0..60)
}

/// Has workers with rules that suspend take over from one without, and returns for each control that is in force in the end what it says, and
/// what the state says.
fn suspended_and_known(log: &Log, schedule: Vec<Step>) -> Vec<(Value, Option<String>)> {
    let mut now = AbuseRules { subjects_max: 1_000_000, ..AbuseRules::clone(&all_rules()) };
    for rule in &mut now.rules {
        (rule.mode, rule.ladder) = (Mode::Enforce, Ladder { steps: vec![Rung::Suspend(7 * DAY)], decay_ms: 7 * DAY });
    }
    let now = Arc::new(now);
    let (then, first) = (rules(vec![]), log.len() / 4 + 1);
    let mut written = written_by(&then, &log[..first.min(log.len())]);
    let mut stage = Abuse::new(Arc::clone(&now), written.state());
    let (mut warm_up, mut next, mut written_next) = (stage.warm_up(), first, first);
    let mut controls = BTreeMap::new();
    for step in schedule.into_iter().chain([Step::Poll(usize::MAX)]) {
        match step {
            Step::Poll(records) => {
                let end = log.len().min(next.saturating_add(records));
                for (offset, entry) in log.iter().enumerate().take(end).skip(next) {
                    fold(&mut stage, offset, entry)
                        .controls
                        .into_iter()
                        .for_each(|control| drop(controls.insert(control.key, control.value)));
                }
                next = end.max(next);
            }
            Step::Show(records) => {
                if let Some(mut warm_up) = warm_up.take() {
                    let from = warm_up.next().0 as usize;
                    (from..log.len().min(from + records)).for_each(|offset| show(&mut warm_up, log, offset));
                    stage.offer(warm_up, NonZeroUsize::MIN);
                }
                warm_up = stage.take_back();
            }
            Step::Write { is_noticed } => {
                written.write(&mut stage);
                written_next = next;
                if is_noticed {
                    stage.checkpoint_written(Offset(next as i64));
                }
            }
            Step::Crash => {
                stage = Abuse::new(Arc::clone(&now), written.state());
                (warm_up, next) = (stage.warm_up(), written_next);
            }
        }
    }
    let known = |control: &Value| stage.view(&user_of(control)).and_then(|view| view.until);
    let controls = controls.into_values().flatten().map(|value| serde_json::from_slice::<Value>(&value).unwrap());
    controls.map(|control| (control["until"].clone(), known(&control))).collect()
}

/// Returns the user that a control is about.
fn user_of(control: &Value) -> SubjectKey {
    (0..100).map(|id| user(&id.to_string())).find(|user| user.to_string() == format!("user/{}", control["hash"].as_str().unwrap())).unwrap()
}

/// Returns rules of every type. The first half is there from the beginning; the others are in shadow mode, so that nothing of them is heard.
fn half(with_others: bool) -> (Arc<AbuseRules>, usize) {
    let mut rules = AbuseRules { subjects_max: 1_000_000, ..AbuseRules::clone(&all_rules()) };
    let half = rules.rules.len() / 2;
    rules.rules.iter_mut().skip(half).for_each(|rule| rule.mode = Mode::Shadow);
    rules.rules.truncate(if with_others { usize::MAX } else { half });
    (Arc::new(rules), half)
}

/// Adds rules behind some records of a log, goes by these steps, and compares with a fold that had the rules from the beginning. Returns how
/// often a rule that was shown the log has fired once it was in force.
fn compare(log: &Log, added: f64, steps: Vec<(usize, usize, bool)>, per_record: NonZeroUsize) -> Result<usize, TestCaseError> {
    let ((now, half), (then, _)) = (half(true), half(false));
    let mut there = Abuse::new(Arc::clone(&now), AbuseState::default());
    let expected: Vec<Folded> = log.iter().enumerate().map(|(offset, entry)| fold(&mut there, offset, entry)).collect();
    let mut next = ((log.len() as f64 * added) as usize).clamp(1, log.len());
    let mut stage = taken_over_by(&now, &then, &log[..next]);
    let (mut warm_up, mut is_in_force, mut fired) = (stage.warm_up(), false, 0);
    let of = |folded: &Folded, is_new: bool| -> Vec<Firing> {
        folded.firings.iter().filter(|firing| (firing.rule >= half) == is_new).copied().collect()
    };
    for (records, shown, is_written) in steps {
        if let Some(mut warm_up) = warm_up.take() {
            let from = warm_up.next().0 as usize;
            (from..log.len().min(from + shown)).for_each(|offset| show(&mut warm_up, log, offset));
            stage.offer(warm_up, per_record);
        }
        let end = log.len().min(next + records);
        for offset in next..end {
            let (folded, expected) = (fold(&mut stage, offset, &log[offset]), &expected[offset]);
            prop_assert_eq!(of(&folded, false), of(expected, false));
            prop_assert_eq!((&folded.alerts, &folded.controls), (&expected.alerts, &expected.controls));
            prop_assert_eq!(of(&folded, true), if is_in_force { of(expected, true) } else { Vec::new() });
            fired += of(&folded, true).len();
        }
        next = end.max(next);
        warm_up = stage.take_back();
        if is_written {
            stage.checkpoint_written(Offset(next as i64));
        }
        is_in_force = stage.warming().next().is_none();
    }
    Ok(fired)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(debug_assertions) { 128 } else { 512 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Once it is in force, a rule that was shown the log fires on whom it would fire on if it had been there, whichever of both folds was
    /// ahead, and the others do what they would do without it.
    #[test]
    fn a_rule_that_was_shown_the_log_is_as_one_that_was_there(
        log in log(false), added in 0.0..0.8_f64, steps in steps(), per_record in 1..6_usize,
    ) {
        compare(&log, added, steps, NonZeroUsize::new(per_record).unwrap())?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(debug_assertions) { 256 } else { 1_024 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Or else nobody would ever lift the suspension.
    #[test]
    fn whoever_dies_nobody_is_suspended_whom_the_state_does_not_know(log in log(true), schedule in schedule()) {
        for (until, known) in suspended_and_known(&log, schedule) {
            prop_assert_eq!(until.as_str(), known.as_deref());
        }
    }
}

/// The properties say something only if such rules fire.
#[test]
fn rules_that_were_shown_the_log_do_fire() {
    let mut runner = TestRunner::deterministic();
    let fired: usize = (0..60)
        .map(|_| {
            let (log, steps) = (log(false), steps()).new_tree(&mut runner).unwrap().current();
            compare(&log, 0.2, steps, NonZeroUsize::new(4).unwrap()).unwrap()
        })
        .sum();
    assert!(fired > 20, "{fired}");
    let suspended: usize = (0..60)
        .map(|_| {
            let (log, schedule) = (log(true), schedule()).new_tree(&mut runner).unwrap().current();
            suspended_and_known(&log, schedule).len()
        })
        .sum();
    assert!(suspended >= 5, "{suspended}");
}
