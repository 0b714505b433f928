//! Ladders, suspensions and what is said of them.

use tollgate_abuse::{Mode, Rule};
use tollgate_core::decide::signal::PointKind;

use super::fixture::*;

/// How late a signal may come.
const LATE: i64 = 5 * MINUTE;

const SHOWN: [&str; 5] = ["status", "step", "action", "until", "suppressed"];

#[test]
fn each_firing_takes_a_subject_a_step_up_and_suspends_it_for_longer() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    assert_eq!(shown(&bench.offend("a", 0, START), &SHOWN), ["firing 1 warned null 0"]);
    assert_eq!(bench.suspended_until("a"), None);
    let alerts = bench.offend("a", 10, START + MINUTE);
    assert_eq!(shown(&alerts, &SHOWN), ["escalated 2 suspended 2025-10-09T09:16:00.000Z 0"], "a higher step passes the suppression");
    assert!(bench.last.alerts[0].awaits_control && bench.last.controls.len() == 1);
    let control = bench.controls.values().next().unwrap();
    assert_eq!((&control["rule"], &control["step"], &control["alert_id"]), (&"three".into(), &2.into(), &bench.alerts[0]["alert_id"]));
    let alerts = bench.offend("a", 20, START + 2 * MINUTE);
    assert_eq!(shown(&alerts, &SHOWN), ["escalated 3 suspended 2025-10-09T11:02:00.000Z 0"]);
    let ids: std::collections::BTreeSet<String> = shown(&bench.alerts, &["alert_id"]).into_iter().collect();
    assert_eq!(ids.len(), 1, "an episode has one id");
}

#[test]
fn the_control_is_these_bytes_and_a_tombstone_when_it_is_over() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    (0..2).for_each(|n| drop(bench.offend("a", 10 * n, START)));
    let control = &bench.last.controls[0];
    let alert_id = bench.alerts[0]["alert_id"].as_str().unwrap();
    let expected = format!(
        r#"{{"type":"subject","kind":"user","hash":"{}","state":"suspended","until":"2025-10-09T09:15:00.000Z","rule":"three","step":2,"alert_id":"{alert_id}"}}"#,
        user("a").hash
    );
    assert_eq!(control.key, format!("subject/{}/abuse", user("a")));
    assert_eq!(std::str::from_utf8(control.value.as_ref().unwrap()), Ok(expected.as_str()));
    bench.clock(START + 15 * MINUTE - 1);
    assert_eq!(bench.last.controls, []);
    bench.clock(START + 15 * MINUTE);
    assert_eq!((bench.last.controls.len(), bench.last.controls[0].value.as_deref()), (1, None));
}

/// It does not go on for ever, and no false positive makes the threshold lower.
#[test]
fn a_subject_comes_down_a_step_for_each_while_without_offence() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    (0..3).for_each(|n| drop(bench.offend("a", 10 * n, START)));
    let quiet = START + 2 * HOUR;
    assert!(bench.clock(quiet + 2 * DAY + LATE).is_empty(), "two steps down, one to go");
    let alerts = bench.offend("a", 100, quiet + 2 * DAY);
    assert_eq!(shown(&alerts, &["status", "step", "threshold"]), ["escalated 2 3"]);
    let quiet = quiet + 2 * DAY + 15 * MINUTE;
    // A signal that comes late may still keep it where it is.
    assert!(bench.clock(quiet + 2 * DAY + LATE - 1).is_empty());
    assert_eq!(shown(&bench.clock(quiet + 2 * DAY + LATE), &SHOWN), ["ended 0 none null 0"]);
    let alerts = bench.offend("a", 200, quiet + 2 * DAY + LATE);
    assert_eq!(shown(&alerts, &SHOWN), ["firing 1 warned null 0"], "a new episode");
    assert_ne!(alerts[0]["alert_id"], bench.alerts[0]["alert_id"]);
}

/// Past the threshold not every signal alerts: a firing uses up its signals, and repeats are counted.
#[test]
fn a_flood_of_signals_gives_few_alerts_that_count_the_rest() {
    let mut bench = Bench::started(rules(vec![Rule { mode: Mode::Alert, ..rule("three") }]));
    let alerts: Vec<_> = (0..300).flat_map(|n| bench.stop("a", n, START + n)).collect();
    assert_eq!(shown(&alerts, &["step", "action"]), ["1 warned", "2 would_suspend", "3 would_suspend"]);
    let later = (300..303).flat_map(|n| bench.stop("a", n, START + HOUR + n)).collect::<Vec<_>>();
    assert_eq!(shown(&later, &SHOWN), ["firing 3 would_suspend null 97"]);
    assert!(bench.controls.is_empty(), "the rule does not enforce");
}

#[test]
fn a_shadow_rule_is_counted_and_nothing_else() {
    let mut bench = Bench::new(rules(vec![Rule { mode: Mode::Shadow, ..rule("three") }]));
    let mut firings = 0;
    for n in 0..9 {
        assert!(bench.stop("a", n, START).is_empty());
        firings += bench.last.counts.rules.iter().map(|counts| counts.firings).sum::<u64>();
    }
    assert_eq!((firings, bench.stage.subjects()), (3, 0));
}

/// What a suspension blocks comes as signals of its own, which prolong nothing.
#[test]
fn blocked_calls_do_not_prolong_the_suspension_that_blocks_them() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    (0..2).for_each(|n| drop(bench.offend("a", 10 * n, START)));
    let until = bench.suspended_until("a").map(str::to_owned);
    for n in 0..100 {
        let blocked = point(PointKind::SuspendedCall, user("a"), 0, 100 + n, START + n);
        assert!(bench.fold(&[part(blocked)]).is_empty());
    }
    assert_eq!((bench.suspended_until("a").map(str::to_owned), until.is_some()), (until, true));
}

#[test]
fn a_suspension_that_is_over_already_is_not_written() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    bench.offend("a", 0, START);
    bench.fold(&[part(stop("a", 10, START)), part(stop("a", 11, START)), clock(0, 12, START + 4 * MINUTE)]);
    let mut short = rule("three");
    short.ladder.steps[1] = tollgate_abuse::Step::Suspend(MINUTE);
    let mut other = Bench::started(rules(vec![short]));
    other.offend("a", 0, START);
    other.clock(START + 4 * MINUTE);
    let alerts = other.offend("a", 10, START);
    assert_eq!(shown(&alerts, &SHOWN), ["escalated 2 lapsed null 0"]);
    assert!(other.controls.is_empty());
}
