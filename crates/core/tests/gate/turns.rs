//! Tests turns and pauses: what starts anew, and what must not.

use serde_json::{Value, json};
use tollgate_core::decide::policy::Policy;
use tollgate_fixtures::gate::policy;

use super::stories::*;

#[test]
fn turns() {
    let in_u = |turn_id: &str| two_failures().into_iter().map(|(event, expected)| (in_turn(event, turn_id), expected)).collect::<Vec<_>>();
    let blocked_in = |turn_id: &str| (in_turn(third_failure_is_blocked().0, turn_id), exact_block(2));
    let allowed_in = |turn_id: &str| (in_turn(third_failure_is_allowed().0, turn_id), allow());
    check_stories(vec![
        plain("a turn goes on without boundaries", script(vec![two_failures(), vec![third_failure_is_blocked()]])),
        plain(
            "a turn_start starts anew",
            script(vec![two_failures(), vec![(turn("turn_start", json!({})), Value::Null), third_failure_is_allowed()]]),
        ),
        plain(
            "the same turn_start twice starts anew once",
            script(vec![
                vec![(turn("turn_start", json!({"event_id": "s"})), Value::Null)],
                two_failures(),
                vec![(turn("turn_start", json!({"event_id": "s"})), Value::Null), third_failure_is_blocked()],
            ]),
        ),
        plain(
            "a turn_start that names the running turn changes nothing",
            script(vec![in_u("u1"), vec![(turn("turn_start", json!({"turn_id": "u1"})), Value::Null), blocked_in("u1")]]),
        ),
        plain(
            "a turn_start that names another turn starts it",
            script(vec![in_u("u1"), vec![(turn("turn_start", json!({"turn_id": "u2"})), Value::Null), allowed_in("u2")]]),
        ),
        plain("a new turn_id on a call starts a new turn", script(vec![in_u("u1"), vec![allowed_in("u2")]])),
        plain("the same turn_id does not", script(vec![in_u("u1"), vec![blocked_in("u1")]])),
        plain(
            "a new turn_id on a response starts a new turn",
            script(vec![in_u("u1"), vec![(in_turn(clean_response(), "u2"), json!({"turn_id": "u2"})), allowed_in("u2")]]),
        ),
        plain(
            "an event without a turn_id belongs to the running turn, and its verdict says so",
            script(vec![
                in_u("u1"),
                vec![(third_failure_is_blocked().0, event(exact_block(2), json!({"turn_id": "u1", "thread_id": "t"})))],
            ]),
        ),
        plain("a first turn_id on a thread that had none starts a new turn", script(vec![two_failures(), vec![allowed_in("u1")]])),
        plain(
            "a turn_end ends the turn",
            script(vec![two_failures(), vec![(turn("turn_end", json!({})), Value::Null), third_failure_is_allowed()]]),
        ),
        plain(
            "a turn_end that names the running turn ends it",
            script(vec![in_u("u1"), vec![(turn("turn_end", json!({"turn_id": "u1"})), Value::Null), allowed_in("u1")]]),
        ),
        plain(
            "a late turn_end of an earlier turn changes nothing",
            script(vec![in_u("u2"), vec![(turn("turn_end", json!({"turn_id": "u1"})), Value::Null), blocked_in("u2")]]),
        ),
        plain(
            "another thread's boundaries change nothing",
            script(vec![
                two_failures(),
                vec![
                    (turn("turn_start", json!({"thread_id": "t2"})), Value::Null),
                    (turn("turn_end", json!({"thread_id": "t2"})), Value::Null),
                    third_failure_is_blocked(),
                ],
            ]),
        ),
        plain(
            "a subagent is a thread of its own",
            script(vec![
                two_failures(),
                vec![
                    (event(third_failure_is_allowed().0, json!({"thread_id": "t/child", "is_subagent": true})), allow()),
                    third_failure_is_blocked(),
                ],
            ]),
        ),
    ]);
}

/// A result that was published late, or twice, bears the id of a turn that is over. Its id is no new one.
#[test]
fn a_late_event_of_an_earlier_turn_takes_no_stop_with_it() {
    let mut steps = vec![(in_turn(call("c0", "bash", json!({})), "u1"), allow())];
    steps.extend(two_failures().into_iter().map(|(event, expected)| (in_turn(event, "u2"), expected)));
    steps.push((in_turn(event(result("c0", "bash", false), json!({"tool_input": {}})), "u1"), json!({"turn_id": "u1"})));
    steps.push((in_turn(third_failure_is_blocked().0, "u2"), exact_block(2)));
    check_stories(vec![plain("a late result of an earlier turn", steps)]);
}

fn a_minute() -> Policy {
    policy(&json!({"limits": {"thread_idle_seconds_max": 60}}))
}

fn at(time: &str, event_value: Value) -> Value {
    event(event_value, json!({"timestamp": format!("{time}Z")}))
}

fn two_failures_at(time: &str) -> Vec<(Value, Value)> {
    two_failures().into_iter().map(|(event, expected)| (at(time, event), expected)).collect()
}

/// Returns two failures and the same call at a time: it is blocked, or allowed after a pause.
fn third_at(time: &str, expected: Value) -> Vec<(Value, Value)> {
    vec![(at(time, third_failure_is_blocked().0), expected)]
}

#[test]
fn a_long_pause_by_event_time_starts_anew() {
    let noon = || two_failures_at("2026-01-01T12:00:00");
    check_stories(vec![
        story("a minute is no pause", a_minute, script(vec![noon(), third_at("2026-01-01T12:01:00", exact_block(2))])),
        story("more than a minute is one", a_minute, script(vec![noon(), third_at("2026-01-01T12:01:00.001", allow())])),
        story(
            "an event from before does not turn the clock back",
            a_minute,
            script(vec![noon(), third_at("2026-01-01T11:00:00", exact_block(2)), third_at("2026-01-01T12:00:59", exact_block(2))]),
        ),
        story("an event without a time knows no pause", a_minute, script(vec![noon(), vec![third_failure_is_blocked()]])),
        story(
            "time may lie at either end of the calendar",
            a_minute,
            script(vec![noon(), third_at("0000-01-01T00:00:00", exact_block(2)), third_at("9999-12-31T23:59:59", allow())]),
        ),
        plain("by default a day is no pause", script(vec![named_noon(), named_third_at("2026-01-02T12:00:00", exact_block(2))])),
        plain("by default more than a day is one", script(vec![named_noon(), named_third_at("2026-01-02T12:00:01", allow())])),
    ]);
}

/// Many hosts name no turns. What failed in the morning says nothing of the evening.
#[test]
fn a_pause_ends_a_turn_without_an_id() {
    let noon = || two_failures_at("2026-01-01T12:00:00");
    let late = |event| at("2026-01-01T13:00:00", event);
    let late_result = || {
        let mut steps = noon();
        let (event, expected) = two_failures().remove(3);
        steps[3] = (late(event), expected);
        steps
    };
    check_stories(vec![
        plain("half an hour is no pause", script(vec![noon(), third_at("2026-01-01T12:30:00", exact_block(2))])),
        plain("more than half an hour is one", script(vec![noon(), third_at("2026-01-01T12:30:01", allow())])),
        plain("a turn with an id goes on", script(vec![named_noon(), named_third_at("2026-01-01T13:00:00", exact_block(2))])),
        story(
            "the pause is configured",
            || policy(&json!({"limits": {"turn_idle_seconds_max": 60}})),
            script(vec![noon(), third_at("2026-01-01T12:01:01", allow())]),
        ),
        plain(
            "the result of a call that took an hour belongs to the call's turn",
            script(vec![late_result(), third_at("2026-01-01T13:00:01", exact_block(2))]),
        ),
        plain(
            "a response begins the turn too, and so the call behind it is in the same turn",
            script(vec![noon(), vec![(late(clean_response()), json!({"action": "allow"}))], third_at("2026-01-01T13:00:01", allow())]),
        ),
    ]);
}

fn named(steps: Vec<(Value, Value)>) -> Vec<(Value, Value)> {
    steps.into_iter().map(|(event, expected)| (in_turn(event, "u1"), expected)).collect()
}

fn named_noon() -> Vec<(Value, Value)> {
    named(two_failures_at("2026-01-01T12:00:00"))
}

fn named_third_at(time: &str, expected: Value) -> Vec<(Value, Value)> {
    named(third_at(time, expected))
}

/// A verdict depends on its own thread's events: the times of other threads change nothing.
#[test]
fn the_clocks_of_others_change_nothing() {
    let noon = || two_failures_at("2026-01-01T12:00:00");
    let other = |n: usize, event_value: Value| {
        (event(call(&format!("o{n}"), "ls", json!({})), event(event_value, json!({"thread_id": "t2"}))), allow())
    };
    let elsewhere = |time: &str| vec![other(0, at(time, json!({})))];
    check_stories(vec![
        plain(
            "a thread without times beside one that has them",
            script(vec![two_failures(), elsewhere("2026-01-01T12:00:00"), vec![third_failure_is_blocked()]]),
        ),
        plain(
            "one timestamp from the future",
            script(vec![noon(), elsewhere("2226-01-01T00:00:00"), third_at("2026-01-01T12:00:30", exact_block(2))]),
        ),
        plain(
            "one timestamp from the future, beside a thread that holds no stop yet",
            script(vec![
                noon()[..2].to_vec(),
                elsewhere("2226-01-01T00:00:00"),
                noon()[2..].to_vec(),
                third_at("2026-01-01T12:00:30", exact_block(2)),
            ]),
        ),
        story(
            "one timestamp from the future, where a pause is short",
            a_minute,
            script(vec![noon(), elsewhere("2226-01-01T00:00:00"), third_at("2026-01-01T12:00:30", exact_block(2))]),
        ),
        plain(
            "a host whose clock is a century ahead",
            script(vec![
                noon(),
                (0..2_000).map(|n| other(n, at("2126-01-01T00:00:00", json!({})))).collect(),
                third_at("2026-01-01T12:00:30", exact_block(2)),
            ]),
        ),
    ]);
}
