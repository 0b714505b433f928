//! Who is at the threshold is caught at exactly that signal, and who is one below it never.

use serde_json::Value;
use tollgate_abuse::{Baseline, Correlation, Detection, Exception, FieldTest, GroupBy, Mode, Operator, Ratio, Rule};
use tollgate_core::decide::signal::{Dimension, KeyKind, Point, PointKind, SignalKind, SubjectKey, VolumeKind};
use tollgate_core::engine::stage::Stage;
use tollgate_core::event::record::Record;
use tollgate_json::digest::Digest;

use super::fixture::*;

#[test]
fn the_signal_at_the_threshold_fires_and_none_before() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    assert!(bench.stop("a", 1, START).is_empty() && bench.stop("a", 2, START + HOUR - 2).is_empty());
    let alerts = bench.stop("a", 3, START + HOUR - 1);
    assert_eq!(shown(&alerts, &["rule", "status", "count", "threshold", "step", "action"]), ["three firing 3 3 1 warned"]);
    let expected = [("event-0-1", START), ("event-0-2", START + HOUR - 2), ("event-0-3", START + HOUR - 1)];
    let evidence = alerts[0]["evidence"].as_array().unwrap();
    assert_eq!(evidence.len(), expected.len());
    for (witness, (event, _)) in evidence.iter().zip(expected) {
        assert_eq!((witness["event_id"].as_str(), witness["thread_id"].as_str()), (Some(event), Some("thread-0")));
    }
    assert_eq!(alerts[0]["window"]["from"], "2025-10-09T09:00:00.000Z");
    assert_eq!(alerts[0]["subject"], user("a").to_string());
}

#[test]
fn the_alert_is_these_bytes() {
    let mut bench = Bench::new(rules(vec![rule("three")]));
    (1..3).for_each(|offset| drop(bench.stop("a", offset, START + offset)));
    bench.stop("a", 3, START + 3);
    let alert = String::from_utf8(bench.last.alerts[0].value.clone()).unwrap();
    let witness = |n| {
        format!(r#"{{"thread_id":"thread-0","event_id":"event-0-{n}","signal":"safety_stop","timestamp":"2025-10-09T09:00:00.00{n}Z"}}"#)
    };
    let head = format!(
        r#""rule":"three","rule_version":"sha256:{}","level":"high","status":"firing","mode":"enforce","subject":"{}","group":{{}},"#,
        Digest::of(b"three"),
        user("a")
    );
    let window = r#""window":{"from":"2025-10-09T09:00:00.001Z","to":"2025-10-09T09:00:00.003Z"},"count":3,"threshold":3,"step":1,"#;
    let tail = format!(
        r#""action":"warned","until":null,"evidence":[{},{},{}],"suppressed":0,"message":"at least 3 safety_stop within 1h by one user: a warning"}}"#,
        witness(1),
        witness(2),
        witness(3)
    );
    assert_eq!(alert.split_once(',').unwrap().1, format!("{head}{window}{tail}"));
    assert_eq!((&bench.last.alerts[0].key, bench.last.alerts[0].awaits_control), (&user("a").to_string(), false));
}

#[test]
fn what_comes_twice_counts_once_and_what_comes_too_late_not_at_all() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    for _ in 0..5 {
        assert!(bench.stop("a", 7, START).is_empty());
    }
    assert_eq!(bench.last.counts.repeated, 1);
    assert!(bench.stop("a", 8, START - 5 * MINUTE - 1).is_empty());
    assert_eq!((bench.last.counts.late, bench.last.counts.applied), (1, 0));
    bench.stop("a", 9, START - 5 * MINUTE);
    assert_eq!((bench.last.counts.late, bench.last.counts.applied), (0, 1));
    assert_eq!(bench.stop("a", 10, START).len(), 1);
}

#[test]
fn a_rule_counts_each_combination_of_its_dimensions_apart() {
    let denial = Detection { signal: point_kind(PointKind::Denial), fields: Vec::new() };
    let by_tool = GroupBy { kind: KeyKind::User, dimensions: vec![Dimension::Tool] };
    let mut bench = Bench::new(rules(vec![Rule { detection: denial, group_by: by_tool, ..rule("tools") }]));
    let mut denied = |offset, tool: Option<&'static str>| {
        let mut point = point(PointKind::Denial, user("a"), 0, offset, START);
        point.tool = tool.map(Into::into);
        bench.fold(&[part(point)])
    };
    for (offset, tool) in [Some("bash"), Some("curl"), None, Some("bash"), Some("curl"), None, None].into_iter().enumerate() {
        assert!(denied(offset as i64, tool).is_empty());
    }
    let alerts = denied(20, Some("bash"));
    assert_eq!(alerts[0]["group"], serde_json::json!({"tool": "bash"}));
    assert_eq!(alerts[0]["evidence"].as_array().unwrap().len(), 3);
}

/// Only what a rule names is counted by it, and a rule never takes a signal from another one.
#[test]
fn rules_share_no_counters_and_look_at_fields() {
    let fields = |operator, values: &[&str]| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        vec![FieldTest { dimension: Dimension::Provider, operator, values }]
    };
    let with = |id: &str, fields| Rule { detection: Detection { signal: point_kind(PointKind::SafetyStop), fields }, ..rule(id) };
    let all = vec![
        with("azure", fields(Operator::StartsWith, &["azure"])),
        with("either", fields(Operator::Equals, &["azure_openai", "glm"])),
        with("other", fields(Operator::Equals, &["other"])),
        rule("every"),
    ];
    let mut bench = Bench::new(rules(all));
    for (offset, provider) in ["azure_openai", "azure_openai", "glm", "azure_ai"].into_iter().enumerate() {
        let mut point = stop("a", offset as i64, START);
        point.provider = Some(provider.into());
        bench.fold(&[part(point)]);
    }
    let mut fired = shown(&bench.alerts, &["rule", "count"]);
    fired.sort();
    assert_eq!(fired, ["azure 3", "either 3", "every 3"]);
}

#[test]
fn exceptions_leave_out_whom_they_name_until_they_end() {
    let tenant = subject(KeyKind::Tenant, "red-team").hash;
    let until_ms = Some(START + MINUTE);
    let exception = Exception { fields: vec![(Dimension::Tenant, vec![tenant.to_string()])], until_ms, reason: "ordered".to_owned() };
    let mut bench = Bench::new(rules(vec![Rule { exceptions: vec![exception], ..rule("three") }]));
    let mut by_tenant = |offset, time_ms| {
        let mut point = stop("a", offset, time_ms);
        point.tenant = Some(tenant);
        let alerts = bench.fold(&[part(point)]).len();
        (alerts, bench.last.counts.rules.first().map_or(0, |counts| counts.exempt))
    };
    (0..9).for_each(|offset| assert_eq!(by_tenant(offset, START + offset), (0, 1)));
    assert_eq!([by_tenant(10, START + MINUTE), by_tenant(11, START + MINUTE), by_tenant(12, START + MINUTE)], [(0, 0), (0, 0), (1, 0)]);
}

const TOKENS: SignalKind = SignalKind::Volume(VolumeKind::Tokens);

fn by_tenant(id: &str, signal: SignalKind, correlation: Correlation) -> Rule {
    let detection = Detection { signal, fields: Vec::new() };
    Rule { detection, correlation, mode: Mode::Alert, group_by: GroupBy { kind: KeyKind::Tenant, dimensions: Vec::new() }, ..rule(id) }
}

fn tokens(tenant: SubjectKey, offset: i64, time_ms: i64, amount: u64) -> Part {
    Part::Volume(VolumeKind::Tokens, tenant, 0, offset, time_ms, amount)
}

#[test]
fn a_sum_fires_on_the_amount_that_reaches_it() {
    let mut bench = Bench::new(rules(vec![by_tenant("sum", TOKENS, Correlation::ValueSum { gte: 1_000 })]));
    let tenant = subject(KeyKind::Tenant, "acme");
    assert!(bench.fold(&[tokens(tenant, 1, START, 500), tokens(tenant, 2, START, 499)]).is_empty());
    assert!(bench.fold(&[tokens(tenant, 2, START, 499)]).is_empty(), "it is counted already");
    let alerts = bench.fold(&[tokens(tenant, 3, START + HOUR - SECOND, 1)]);
    assert_eq!(shown(&alerts, &["count", "threshold", "evidence"]), ["1000 1000 []"]);
}

/// A later signal could still change a share, so it waits until no source can bring one.
#[test]
fn a_share_waits_for_the_clock() {
    let over = SignalKind::Volume(VolumeKind::Response);
    let ratio = Correlation::Ratio(Ratio { over, gte: 0.05, min: 200, for_ms: 0 });
    let mut bench = Bench::new(rules(vec![by_tenant("share", point_kind(PointKind::SafetyStop), ratio)]));
    let tenant = subject(KeyKind::Tenant, "acme");
    bench.clock(START);
    let mut offset = 0;
    let mut more = |bench: &mut Bench, stops: i64, responses: u64| {
        let stops = (0..stops).map(|n| part(point(PointKind::SafetyStop, tenant, 0, offset + n, START + MINUTE)));
        let mut parts: Vec<Part> = stops.collect();
        parts.push(Part::Volume(VolumeKind::Response, tenant, 0, offset + 100, START + MINUTE, responses));
        offset += 200;
        assert!(bench.fold(&parts).is_empty());
    };
    more(&mut bench, 9, 200);
    assert!(bench.clock(START + 4 * MINUTE).is_empty(), "one below");
    more(&mut bench, 1, 0);
    assert!(bench.clock(START + 5 * MINUTE - 1).is_empty(), "the bucket is not over");
    let alerts = bench.clock(START + 5 * MINUTE);
    assert_eq!(shown(&alerts, &["count", "threshold", "rule"]), ["0.05 0.05 share"]);
    assert_eq!(alerts[0]["evidence"].as_array().unwrap().len(), 5, "the latest five");
}

/// A runaway is caught within a bucket, behind the time for which it has to last.
#[test]
fn a_multiple_of_what_is_usual_has_to_last() {
    let baseline = Baseline { factor: 8.0, floor: 1_000, history_ms: 7 * DAY, warmup_ms: DAY, for_ms: 10 * MINUTE };
    let caught = |hourly: u64| {
        let mut bench = Bench::new(rules(vec![by_tenant("runaway", TOKENS, Correlation::Baseline(baseline.clone()))]));
        let tenant = subject(KeyKind::Tenant, "acme");
        for hour in 0..48 {
            assert!(bench.fold(&[tokens(tenant, hour, START + hour * HOUR, 1_000)]).is_empty());
            assert!(bench.clock(START + hour * HOUR).is_empty());
        }
        let begin = START + 48 * HOUR;
        for minute in 0..60 {
            let at_ms = begin + minute * MINUTE;
            bench.fold(&[tokens(tenant, 100 + minute, at_ms, hourly / 60)]);
            let alerts: Vec<Value> = bench.clock(at_ms + MINUTE);
            if !alerts.is_empty() {
                return Some((minute, alerts[0]["count"].as_u64().unwrap(), alerts[0]["threshold"].as_u64().unwrap()));
            }
        }
        None
    };
    assert_eq!(caught(7_980), None, "one below all the time");
    assert_eq!(caught(24_000), Some((29, 12_000, 8_000)), "20 minutes until it is there, and ten that it has to last");
}

/// An orchestrator may deliver an event again and again, under other offsets. It is one offence all the same, before it was counted for a
/// firing and afterwards.
#[test]
fn an_event_that_is_sent_again_counts_once() {
    let mut bench = Bench::started(rules(vec![rule("three")]));
    let mut offset = 0;
    let mut send = |event: &str| {
        offset += 1;
        bench.fold(&[part(Point { event_id: event.to_owned().into(), ..stop("a", offset, START + offset) })]);
        (bench.last.alerts.len(), bench.last.counts.applied, bench.last.counts.repeated)
    };
    assert_eq!(send("one"), (0, 1, 0));
    (0..10).for_each(|_| assert_eq!(send("one"), (0, 0, 1)));
    assert_eq!([send("two"), send("three")], [(0, 1, 0), (1, 1, 0)]);
    ["one", "two", "three"].into_iter().for_each(|event| assert_eq!(send(event), (0, 0, 1), "it is used up"));
    assert_eq!([send("four"), send("five"), send("six")].map(|(alerts, ..)| alerts), [0, 0, 1]);
}

/// A time that no clock will ever reach is that of a liar. It holds nothing up, and ends.
#[test]
fn a_time_in_the_far_future_counts_as_the_logs() {
    let far = [i64::MAX, 4_294_967_295_000, 4_294_967_294_000, START + DAY];
    for time_ms in far {
        let mut bench = Bench::new(rules(vec![rule("three")]));
        bench.fold_at(START, &value_of(&[clock(0, 1, START)]));
        bench.fold_at(START + 1, &value_of(&[part(stop("liar", 1, time_ms)), clock(0, 2, time_ms)]));
        assert_eq!(bench.stage.clock_ms(), Some(START + 1), "{time_ms}");
        let alerts: Vec<_> = (0..3).flat_map(|n| bench.fold_at(START + 2 + n, &value_of(&[part(stop("a", 10 + n, START + n))]))).collect();
        assert_eq!(shown(&alerts, &["rule", "count"]), ["three 3"], "{time_ms}");
        let liar: Vec<_> = (0..2).flat_map(|n| bench.fold_at(START + 9, &value_of(&[part(stop("liar", 20 + n, START))]))).collect();
        assert_eq!(liar.len(), 1, "{time_ms}: the lie counts now");
    }
    // Where records have no timestamp, nothing tells the lie; but it ends.
    let mut bench = Bench::new(rules(vec![rule("three")]));
    for (n, time_ms) in (0..).zip(far.into_iter().chain(far)) {
        let value = value_of(&[part(stop("a", n, time_ms)), clock(0, n + 1, time_ms)]);
        let record = Record { timestamp_ms: None, ..record(n, 0, &value) };
        bench.stage.apply(&record, &mut ());
    }
    assert_eq!(bench.stage.clock_ms(), Some(i64::MAX));
}

/// The windows of what is far ahead of a source that lags are not looked at on its way there.
#[test]
fn a_clock_that_comes_from_afar_takes_no_longer() {
    let share = Correlation::Ratio(Ratio { over: SignalKind::Volume(VolumeKind::Response), gte: 0.5, min: 2, for_ms: 0 });
    let mut bench = Bench::new(rules(vec![Rule { correlation: share, timespan_ms: MINUTE, mode: Mode::Alert, ..rule("share") }]));
    bench.fold(&[clock(0, 0, 0), clock(1, 0, 0)]);
    let of = |n: i64| {
        [
            part(point(PointKind::SafetyStop, user("a"), 0, 2 * n, START)),
            Part::Volume(VolumeKind::Response, user("a"), 0, 2 * n + 1, START, 2),
        ]
    };
    bench.fold(&of(1));
    bench.fold(&of(2));
    // Fifty years in steps of a second would take minutes.
    let alerts = bench.fold(&[clock(0, 10, START + HOUR), clock(1, 10, START + HOUR)]);
    assert_eq!(shown(&alerts, &["rule", "count"]), ["share 0.5"]);
}
