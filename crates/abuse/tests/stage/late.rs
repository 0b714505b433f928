//! Signals that come late, from a partition of the events topic that is behind: steps and suspensions are those of the order of time.

use tollgate_abuse::{Correlation, Detection, Ladder, Rule, Step};
use tollgate_core::decide::signal::{KeyKind, Point, PointKind};
use tollgate_json::time::rfc_3339;

use super::fixture::*;

fn ladder(steps: &[Step], decay_ms: i64) -> Ladder {
    Ladder { steps: steps.to_vec(), decay_ms }
}

/// Returns a bench whose partition waits for source 1.
fn bench(list: Vec<Rule>) -> Bench {
    let mut bench = Bench::new(rules(list));
    bench.fold(&[clock(0, 0, START), clock(1, 0, START)]);
    bench
}

fn stop_of(source: i32, offset: i64, time_ms: i64) -> Part {
    part(point(PointKind::SafetyStop, user("a"), source, offset, time_ms))
}

#[test]
fn the_last_to_come_is_not_when_the_rule_fires() {
    let five = Rule { correlation: Correlation::EventCount { gte: 5 }, ladder: ladder(&[Step::Suspend(15 * MINUTE)], DAY), ..rule("five") };
    let minutes = [5, 20, 40, 50, 59];
    for late in 0..minutes.len() {
        let mut bench = bench(vec![five.clone()]);
        let others = minutes.iter().enumerate().filter(|(at, _)| *at != late);
        others.for_each(|(at, minute)| drop(bench.fold(&[stop_of(0, at as i64, START + minute * MINUTE)])));
        bench.fold(&[stop_of(1, 1, START + minutes[late] * MINUTE)]);
        assert_eq!(bench.suspended_until("a"), rfc_3339(START + 74 * MINUTE).as_deref(), "{late}");
    }
}

#[test]
fn the_step_of_a_firing_is_the_same_however_far_another_partition_is_behind() {
    let steps = [Step::Suspend(15 * MINUTE), Step::Suspend(2 * HOUR)];
    let again = START + 30 * HOUR;
    for behind in [0, MINUTE, 6 * HOUR, 30 * HOUR] {
        let mut bench = bench(vec![Rule { ladder: ladder(&steps, 12 * HOUR), ..rule("three") }]);
        bench.fold(&[1, 2, 3].map(|offset| stop_of(0, offset, START)));
        bench.fold(&[clock(0, 4, again), clock(1, 1, again - behind)]);
        bench.fold(&[5, 6, 7].map(|offset| stop_of(0, offset, again)));
        assert_eq!(bench.suspended_until("a"), rfc_3339(again + 15 * MINUTE).as_deref(), "{behind}");
    }
}

/// The control follows, and alerts are not repeated.
#[test]
fn a_signal_before_a_firing_moves_the_end_of_the_suspension() {
    let steps = [Step::Suspend(15 * MINUTE), Step::Suspend(2 * HOUR)];
    let mut bench = bench(vec![Rule { ladder: ladder(&steps, DAY), ..rule("three") }]);
    let alerts: Vec<_> = [10, 20, 40].into_iter().flat_map(|minute| bench.fold(&[stop_of(0, minute, START + minute * MINUTE)])).collect();
    assert_eq!(shown(&alerts, &["step", "until"]), [format!("1 {}", rfc_3339(START + 55 * MINUTE).unwrap())]);
    assert!(bench.fold(&[stop_of(1, 1, START + 30 * MINUTE)]).is_empty());
    assert_eq!(bench.suspended_until("a"), rfc_3339(START + 45 * MINUTE).as_deref());
    // With two more there is a second firing, which is on the signal of minute 40.
    bench.fold(&[stop_of(1, 2, START + 31 * MINUTE)]);
    let alerts = bench.fold(&[stop_of(1, 3, START + 32 * MINUTE)]);
    assert_eq!(shown(&alerts, &["status", "step", "until"]), [format!("escalated 2 {}", rfc_3339(START + 160 * MINUTE).unwrap())]);
    assert_eq!(bench.suspended_until("a"), rfc_3339(START + 160 * MINUTE).as_deref());
}

/// Who is suspended by a signal that comes late counts against the rule like anybody else.
#[test]
fn suspensions_by_late_signals_are_within_the_blast_radius() {
    let mut bench = bench(vec![Rule { ladder: ladder(&[Step::Warn, Step::Suspend(DAY)], HOUR), ..rule("three") }]);
    let of = |id: i64, source: i32, n: i64, minute: i64| {
        part(point(PointKind::SafetyStop, user(&id.to_string()), source, id * 10 + n, START + minute * MINUTE))
    };
    // The second firing is a minute behind the step down, and another stop takes it before that.
    let warned = |id| [0, 0, 0, 50, 55, 61].into_iter().zip(0..).map(move |(minute, n)| of(id, 0, n, minute)).collect::<Vec<_>>();
    (0..30).for_each(|id| drop(bench.fold(&warned(id))));
    assert!(bench.controls.is_empty());
    (0..30).for_each(|id| drop(bench.fold(&[of(id, 1, 0, 59)])));
    assert_eq!((bench.controls.len(), bench.stage.paused().collect::<Vec<_>>()), (20, vec!["three"]));
    assert_eq!(bench.alerts.iter().filter(|alert| alert["action"] == "enforcement_paused").count(), 1);
}

/// Of two suspensions that end at one time the control says the one of the first rule, whichever came first.
#[test]
fn what_the_control_says_depends_on_no_order() {
    let ladder = ladder(&[Step::Suspend(HOUR)], DAY);
    let at_once = Rule { correlation: Correlation::EventCount { gte: 1 }, ladder, ..rule("stops") };
    let denials = Detection { signal: point_kind(PointKind::Denial), fields: Vec::new() };
    let list = vec![at_once.clone(), Rule { id: "denials".to_owned(), detection: denials, ..at_once }];
    for kinds in [[PointKind::SafetyStop, PointKind::Denial], [PointKind::Denial, PointKind::SafetyStop]] {
        let mut bench = bench(list.clone());
        for (kind, offset) in kinds.into_iter().zip(1..) {
            bench.fold(&[part(Point { kind, ..point(kind, user("a"), 0, offset, START) })]);
        }
        let control = &bench.controls[&format!("subject/{}/abuse", user("a"))];
        assert_eq!((&control["rule"], &control["step"]), (&"stops".into(), &1.into()), "{kinds:?}");
        assert_eq!(bench.stage.view(&subject(KeyKind::User, "a")).unwrap().counters.len(), 2);
    }
}
