//! Tests what an operator's `thread_reset` clears, and what it leaves alone.

use serde_json::{Value, json};

use super::stories::*;

fn reset(more: Value) -> (Value, Value) {
    (turn("thread_reset", more), Value::Null)
}

#[test]
fn resets() {
    let in_u = |turn_id: &str| two_failures().into_iter().map(|(event, expected)| (in_turn(event, turn_id), expected)).collect::<Vec<_>>();
    let blocked_in = |turn_id: &str| (in_turn(third_failure_is_blocked().0, turn_id), exact_block(2));
    let allowed_in = |turn_id: &str| (in_turn(third_failure_is_allowed().0, turn_id), allow());
    check_stories(vec![
        plain("a reset forgets what blocks a thread", script(vec![two_failures(), vec![reset(json!({})), third_failure_is_allowed()]])),
        plain("it forgets a named turn too", script(vec![in_u("u1"), vec![reset(json!({})), allowed_in("u1")]])),
        plain("a reset of the running turn forgets", script(vec![in_u("u1"), vec![reset(json!({"turn_id": "u1"})), allowed_in("u1")]])),
        plain(
            "the turn that was reset goes on: naming it starts nothing anew",
            script(vec![
                vec![reset(json!({"turn_id": "u1"}))],
                in_u("u1"),
                vec![reset(json!({"turn_id": "u1"}))],
                in_u("u1"),
                vec![(turn("turn_start", json!({"turn_id": "u1"})), Value::Null), blocked_in("u1")],
            ]),
        ),
        plain("a reset of another turn changes nothing", script(vec![in_u("u2"), vec![reset(json!({"turn_id": "u1"})), blocked_in("u2")]])),
        plain(
            "a reset of a turn changes nothing in one without a name",
            script(vec![two_failures(), vec![reset(json!({"turn_id": "u1"})), third_failure_is_blocked()]]),
        ),
    ]);
}
