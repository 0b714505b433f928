//! Measures what a decision costs under the preset `tollgate`, over the same under `seed`: the whole path of an event, both timed in turn.

use std::sync::Arc;

use serde_json::json;
use tollgate_core::decide::policy::Policy;
use tollgate_fixtures::events::Feed;
use tollgate_fixtures::events::rows::{ROWS, Row};
use tollgate_fixtures::gate;
use tollgate_fixtures::measure::{Table, in_turns, median, median_ratio, rounded, time_per_event};

const ROUNDS: usize = 101;
/// How much more a call and its result may cost.
const TARGET: f64 = 1.1;
/// The rows that are measured: calls, results, and both.
const MEASURED: [&str; 4] = ["tool_call", "tool_call, first of a thread", "tool_result", "call + result"];

pub fn measure(mut table: Table) {
    let policy = |preset: &str| Arc::new(gate::policy(&json!({"tool_loop_guardrails": {"preset": preset}})));
    let (seed, tollgate) = (policy("seed"), policy("tollgate"));
    let mut is_met = false;
    for row in ROWS.iter().map(|make| make()).filter(|row| MEASURED.contains(&row.name)) {
        let [ours, first] = in_turns(ROUNDS, [&|| decide(&row, &tollgate), &|| decide(&row, &seed)]);
        let over_seed = median_ratio(&ours, &first);
        is_met = over_seed <= TARGET;
        table.row([
            ("name", json!(row.name)),
            ("bytes", json!(row.bytes())),
            ("ns", json!(rounded(median(ours), 1))),
            ("seed_ns", json!(rounded(median(first), 1))),
            ("over_seed", json!(rounded(over_seed, 3))),
        ]);
    }
    table.end_with_target(&format!("{TARGET} over seed for a call and its result"), is_met);
}

fn decide(row: &Row, policy: &Arc<Policy>) -> f64 {
    let mut feed = Feed::new(policy);
    feed.apply_all(&row.prelude);
    time_per_event(row.measured.len(), || feed.apply_all(&row.measured))
}
