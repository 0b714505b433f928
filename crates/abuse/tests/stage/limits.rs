//! What bounds the stage: memory, the blast radius, and how many alerts a minute has.

use std::collections::HashSet;
use std::sync::Arc;

use tollgate_abuse::{Abuse, AbuseRules, Action, Correlation, Detection, GroupBy, Mode, Rule};
use tollgate_core::decide::signal::{Dimension, KeyKind, Point, PointKind, Request, SignalKind};

use super::fixture::*;

fn bounded(subjects_max: usize) -> Arc<AbuseRules> {
    let lateness_ms = 5 * MINUTE;
    Arc::new(AbuseRules { rules: vec![Rule { mode: Mode::Alert, ..rule("three") }], lateness_ms, subjects_max })
}

/// Or else somebody who is watched could have their own counter dropped.
#[test]
fn a_flood_of_fresh_ids_makes_nobody_forgotten_who_is_closer_to_the_threshold() {
    let mut bench = Bench::started(bounded(100));
    bench.stop("offender", 0, START);
    bench.stop("offender", 1, START);
    let mut dropped = 0;
    for n in 0..5_000 {
        bench.stop(&format!("fresh-{n}"), 10 + n, START);
        dropped += bench.last.counts.subjects_dropped;
    }
    assert_eq!((bench.stage.subjects(), dropped), (100, 4_901));
    assert_eq!(shown(&bench.stop("offender", 9_000, START + 1), &["rule", "count"]), ["three 3"]);
}

#[test]
fn among_equals_who_was_heard_of_longest_ago_goes_first() {
    let mut bench = Bench::new(bounded(3));
    (0..3).for_each(|n| drop(bench.stop(&n.to_string(), n, START)));
    bench.stop("3", 3, START);
    // 0 is gone, 1 is the next; it has two signals when it comes again, so 2 is the next.
    bench.stop("1", 4, START);
    bench.stop("4", 5, START);
    assert_eq!(bench.stop("1", 6, START).len(), 1);
    let alerts: usize = (7..9).map(|offset| bench.stop("2", offset, START).len()).sum();
    assert_eq!(alerts, 0, "2 was forgotten");
}

#[test]
fn nobody_on_a_ladder_is_forgotten_and_the_limit_is_told_once_an_hour() {
    let mut bench = Bench::started(bounded(2));
    for (id, offset) in [("a", 0), ("b", 10)] {
        bench.offend(id, offset, START);
    }
    (0..50).for_each(|n| drop(bench.stop(&format!("fresh-{n}"), 100 + n, START)));
    assert_eq!(bench.stage.subjects(), 3, "and the one who came last");
    bench.clock(START + HOUR);
    bench.stop("more", 200, START + HOUR);
    let limit: Vec<_> = bench.alerts.iter().filter(|alert| alert["action"] == "memory_limit").collect();
    assert_eq!(limit.len(), 2);
    let again = bench.offend("a", 300, START + HOUR);
    assert_eq!(shown(&again, &["status", "step"]), ["escalated 2"]);
}

fn suspended(bench: &Bench) -> usize {
    bench.controls.len()
}

/// Makes somebody active, and then an offender who is suspended by the second firing.
fn offend(bench: &mut Bench, id: usize, offset: i64) {
    (0..6).for_each(|n| drop(bench.stop(&id.to_string(), offset + n, START)));
}

#[test]
fn a_rule_that_would_suspend_too_many_stops_until_it_is_told_to_go_on() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    (0..2_000).for_each(|n| drop(bench.fold(&[part(point(PointKind::ThreadStart, user(&n.to_string()), 0, n, START))])));
    (0..200).for_each(|n| offend(&mut bench, n as usize, 10_000 + 10 * n));
    assert_eq!(suspended(&bench), 40, "2 % of 2,000");
    let paused: Vec<_> = bench.alerts.iter().filter(|alert| alert["action"] == "enforcement_paused").collect();
    assert_eq!((paused.len(), &paused[0]["rule"], &paused[0]["level"]), (1, &"three".into(), &"critical".into()));
    assert_eq!(bench.stage.paused().collect::<Vec<_>>(), ["three"]);
    assert!(bench.last.counts.rules[0].paused > 0 && bench.last.counts.rules[0].suspensions == 0);
    let id = paused[0]["alert_id"].clone();
    let told = bench.request(&Request::Resume("three".to_owned()));
    assert_eq!(shown(&told, &["rule", "status", "action"]), ["three ended enforcement_resumed"]);
    assert_eq!((bench.stage.paused().count(), &told[0]["alert_id"]), (0, &id), "one episode");
    assert!(bench.request(&Request::Resume("three".to_owned())).is_empty(), "it is not paused any more");
    offend(&mut bench, 5_000, 90_000);
    assert_eq!(suspended(&bench), 41);
}

#[test]
fn a_few_may_be_suspended_however_few_there_are() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    (0..30).for_each(|n| offend(&mut bench, n, 10 * n as i64));
    assert_eq!(suspended(&bench), 20);
}

/// Or else somebody who tries many tools could have the rule stop.
#[test]
fn a_subject_that_is_found_in_many_groups_counts_once() {
    let group_by = GroupBy { kind: KeyKind::User, dimensions: vec![Dimension::Tool] };
    let detection = Detection { signal: SignalKind::Point(PointKind::Denial), fields: Vec::new() };
    let by_tool = Rule { group_by, detection, ..rule("three") };
    let mut bench = Bench::started(rules(vec![by_tool.clone()]));
    let denied = |bench: &mut Bench, id: &str, tool: &str, offset: i64, time_ms: i64| {
        let denial = Point { tool: Some(tool.to_owned().into()), ..point(PointKind::Denial, user(id), 0, offset, time_ms) };
        bench.fold(&[part(denial)])
    };
    for tool in 0..60 {
        (0..6).for_each(|n| drop(denied(&mut bench, "eve", &format!("t{tool}"), 10 * tool + n, START)));
    }
    assert_eq!((bench.stage.paused().count(), suspended(&bench)), (0, 1));
    let fires = |bench: &mut Bench, id: usize, offset: i64| {
        (0..6).for_each(|n| drop(denied(bench, &id.to_string(), "t", offset + n, START)));
    };
    (1..20).for_each(|id| fires(&mut bench, id, 1_000 * id as i64));
    assert_eq!((bench.stage.paused().count(), suspended(&bench)), (0, 20), "twenty in all");
    // The same is counted where the state is taken over, and when she is pardoned.
    bench.stage = Abuse::new(rules(vec![by_tool]), Written::default().write(&mut bench.stage).state());
    bench.request(&Request::Pardon(user("eve")));
    fires(&mut bench, 20, 50_000);
    assert_eq!((bench.stage.paused().count(), suspended(&bench)), (0, 20));
    fires(&mut bench, 21, 60_000);
    assert_eq!((bench.stage.paused().count(), suspended(&bench)), (1, 20));
}

/// What no alert tells one by one is among the firings, with what was done.
#[test]
fn every_firing_is_told_whatever_alert_it_has() {
    let mut bench = Bench::started(rules(vec![Rule { mode: Mode::Alert, ..rule("three") }, Rule { mode: Mode::Shadow, ..rule("shadow") }]));
    let mut firings = Vec::new();
    for id in 0..50 {
        for n in 0..3 {
            bench.stop(&id.to_string(), 10 * id + n, START);
            firings.extend(bench.last.firings.iter().copied());
        }
    }
    let of =
        |rule, action| firings.iter().filter(move |firing| firing.rule == rule && firing.action == action).map(|firing| firing.subject);
    assert_eq!((firings.len(), bench.alerts.len()), (100, 20));
    assert_eq!(of(0, Some(Action::Warned)).collect::<HashSet<_>>().len(), 50);
    assert_eq!(of(1, None).collect::<HashSet<_>>().len(), 50);
}

/// Detection is never muted: what is not told one by one is told as a number.
#[test]
fn beyond_twenty_alerts_a_minute_the_rest_are_told_in_one() {
    let mut bench = Bench::started(rules(vec![Rule { mode: Mode::Alert, ..rule("three") }]));
    for id in 0..50 {
        bench.offend(&id.to_string(), 10 * id, START);
    }
    assert_eq!(bench.alerts.len(), 20);
    assert!(bench.clock(START + MINUTE - 1).is_empty());
    let alerts = bench.clock(START + MINUTE);
    assert_eq!(shown(&alerts, &["status", "count", "subject", "rule"]), ["grouped 30 null three"]);
    assert_eq!(bench.last.alerts[0].key, "rule/three");
    bench.offend("next", 1_000, START + MINUTE);
    assert_eq!(bench.alerts.len(), 22, "the next minute begins anew");
}

/// Or else whoever fills the memory with subjects that are closer to a threshold would have nobody new counted.
#[test]
fn who_is_new_is_counted_though_everybody_else_is_closer() {
    let mut bench = Bench::started(bounded(10));
    (0..20).for_each(|n| drop(bench.stop(&format!("filler-{}", n / 2), n, START)));
    let alerts = bench.offend("new", 100, START);
    assert_eq!(shown(&alerts, &["action", "count"]), ["memory_limit 0", "warned 3"]);
    assert_eq!(bench.stage.subjects(), 10);
}

#[test]
fn who_is_suspended_is_told_of_however_many_alerts_there_were() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    (0..40).for_each(|id| drop(bench.offend(&id.to_string(), 10 * id, START)));
    assert_eq!(bench.alerts.len(), 20, "the others are grouped");
    let alerts = bench.offend("39", 1_000, START);
    assert_eq!(shown(&alerts, &["status", "action"]), ["escalated suspended"]);
    assert_eq!(alerts[0]["evidence"].as_array().map(Vec::len), Some(3));
}

/// A rule that counts by dimensions which anybody can make up takes no room of another rule.
#[test]
fn made_up_dimensions_disarm_no_other_rule() {
    let by_tool = |mode| {
        let group_by = GroupBy { kind: KeyKind::User, dimensions: vec![Dimension::Tool] };
        let detection = Detection { signal: point_kind(PointKind::Denial), fields: Vec::new() };
        Rule { mode, group_by, detection, correlation: Correlation::EventCount { gte: 2 }, ..rule("by-tool") }
    };
    for mode in [Mode::Shadow, Mode::Alert] {
        let mut bench = Bench::started(rules(vec![by_tool(mode), rule("three")]));
        let mut offset = 0;
        let mut deny = |bench: &mut Bench, tool: usize| {
            offset += 1;
            let denial = point(PointKind::Denial, user("a"), 1, offset, START);
            bench.fold(&[part(Point { tool: Some(format!("tool-{tool}").into()), ..denial })]);
            bench.last.counts.counters_dropped
        };
        let mut dropped = 0;
        (0..200).for_each(|n| dropped += deny(&mut bench, if mode == Mode::Shadow { n } else { n / 2 }));
        assert!(dropped > 0, "there are more than fit");
        let mut stops = Vec::new();
        for n in 0..3 {
            deny(&mut bench, 500 + n as usize);
            stops.extend(bench.stop("a", n, START));
        }
        assert_eq!(shown(&stops, &["rule", "count"]), ["three 3"], "{mode:?}");
    }
}

/// Two rules of one signal, when there is no room: the counter that has just fired is not taken for the other rule.
#[test]
fn a_counter_that_fires_is_not_taken_for_another_rule() {
    let by = |id: &str, gte, dimension| {
        let group_by = GroupBy { kind: KeyKind::User, dimensions: vec![dimension] };
        let detection = Detection { signal: point_kind(PointKind::Denial), fields: Vec::new() };
        Rule { mode: Mode::Alert, group_by, detection, correlation: Correlation::EventCount { gte }, ..rule(id) }
    };
    let mut bench = Bench::started(rules(vec![by("each-tool", 1, Dimension::Tool), by("each-code", 2, Dimension::Code)]));
    for n in 0..100 {
        // Or else the alerts of a minute would be grouped.
        let now = START + n * MINUTE;
        bench.clock(now);
        let denial = point(PointKind::Denial, user("a"), 1, n, now);
        let denial = Point { tool: Some(format!("tool-{n}").into()), code: Some(format!("code-{n}").into()), ..denial };
        let alerts = bench.fold(&[part(denial)]);
        let group = serde_json::json!({"tool": format!("tool-{n}")});
        assert_eq!(
            alerts.iter().map(|alert| (&alert["rule"], &alert["group"])).collect::<Vec<_>>(),
            [(&"each-tool".into(), &group)],
            "{n}"
        );
    }
}
