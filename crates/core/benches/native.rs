//! Measures what the detector `native` costs: the same responses decided on with the three detectors that know one shape each, and with all
//! readers beside them. Rounds are timed in turn: quote the ratio.

use std::sync::Arc;

use serde_json::json;
use tollgate_core::decide::policy::Policy;
use tollgate_fixtures::events::{At, Feed, policy};
use tollgate_fixtures::gate;
use tollgate_fixtures::measure::{Table, in_turns, median, median_ratio, rounded, time_per_event};

const ROUNDS: usize = 101;
const THREADS: usize = 1_000;
/// How many times as much a response may cost with all readers.
const TARGET: f64 = 1.10;

pub fn measure(mut table: Table) {
    let three = ["openai_compatible_content_filter", "anthropic_refusal", "gemini_safety"].map(|name| json!({"use": name}));
    let (three, native) = (Arc::new(gate::policy(&json!({"safety_finish_reason": {"detectors": three}}))), policy());
    let of = |call| (0..THREADS).map(move |thread| At { thread, turn: 1, call }.model_response());
    let (prelude, measured): (Vec<_>, Vec<_>) = (of(1).collect(), (2..5).flat_map(of).collect());
    let decide = |policy: &Arc<Policy>| {
        let mut feed = Feed::new(policy);
        feed.apply_all(&prelude);
        time_per_event(measured.len(), || feed.apply_all(&measured))
    };
    let times = in_turns(ROUNDS, [&|| decide(&three), &|| decide(&native)]);
    for (name, of_side) in ["three detectors", "native beside them"].into_iter().zip(&times) {
        let ratio = rounded(median_ratio(of_side, &times[0]), 3);
        table.row([("name", json!(name)), ("ns", json!(rounded(median(of_side.clone()), 1))), ("over_three", json!(ratio))]);
    }
    table.end_with_target(&format!("{TARGET} times as much with all readers"), median_ratio(&times[1], &times[0]) <= TARGET);
}
