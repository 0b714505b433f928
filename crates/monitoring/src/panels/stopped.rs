//! What is stopped, and why?

use super::{Look, Panel, Row};

/// Returns the row.
pub(super) fn row() -> Row {
    Row {
        question: "What is stopped, and why?",
        panels: vec![
            Panel::new("Events", "What agents do. Unreadable records become dead letters.", "cps", 8)
                .look(Look::Stack)
                .rate_by("type", "tollgate_events_consumed_total"),
            Panel::new("Verdicts by action", "Allow and warn let a call run.", "cps", 8)
                .look(Look::Stack)
                .rate_by("action", "tollgate_verdicts_total"),
            Panel::new(
                "Stops by what decided",
                "Safety: the response was cut off. Control: an operator's suspension. Envelope: unreadable.",
                "cps",
                8,
            )
            .look(Look::Stack)
            .rate_by("decided_by", r#"tollgate_verdicts_total{@, action=~"block|halt|suppress"}"#),
            Panel::new("Reasons", "The fifteen codes that stopped most in the time shown.", "none", 12).look(Look::Table).query(
                "{{decided_by}}: {{code}}",
                r#"topk (15, sum by (decided_by, code) (increase(tollgate_verdicts_total{@, action=~"block|halt|suppress"}[$__range])))"#,
            ),
            Panel::new("Tools", "The fifteen tools that were stopped most in the time shown, and by what.", "none", 12)
                .look(Look::Table)
                .query("{{tool}}: {{decided_by}}", "topk (15, sum by (tool, decided_by) (increase(tollgate_stops_total{@}[$__range])))"),
            Panel::new("Agents that are stuck, by tool", "Stops of the loop controller.", "cps", 8)
                .query("{{tool}}", r#"topk (10, sum by (tool) (rate(tollgate_stops_total{@, decided_by="loop"}[$__rate_interval])))"#),
            Panel::new("Denied by policy, by tool", "Stops of guardrail providers.", "cps", 8)
                .query("{{tool}}", r#"topk (10, sum by (tool) (rate(tollgate_stops_total{@, decided_by="guardrail"}[$__rate_interval])))"#),
            Panel::new("Answers of providers", "failed_closed blocks the call, failed_open lets it run.", "cps", 8).rate(
                "{{provider}}: {{outcome}}",
                "provider, outcome",
                "tollgate_guardrail_provider_calls_total",
            ),
            Panel::new(
                "Responses in doubt",
                "Of an unknown shape, where a stop may be missed, or with calls that may be incomplete.",
                "cps",
                6,
            )
            .rate_by("doubt", "tollgate_responses_in_doubt_total"),
            Panel::new("Dead letters", "Records that could not be read, by what is wrong with them.", "cps", 6)
                .rate_by("reason", "tollgate_dead_letters_total")
                .rate("too large: without value", "", "tollgate_dead_letters_without_value_total"),
            Panel::new("Replies", "Verdicts asked for on a reply topic. Refused: the topic is not on the allow-list.", "cps", 6)
                .rate_by("outcome", "tollgate_replies_total"),
            Panel::new("Threads let go of", "Refused: a store is full of stopped threads, and the calls of others are blocked.", "cps", 6)
                .rate_by("reason", "tollgate_departed_threads_total"),
            trial_flips(),
            trial_coverage(),
        ],
    }
}

fn trial_flips() -> Panel {
    let what = "Verdicts that it would have changed, by the actions of both policies (`run --shadow`).";
    Panel::new("A policy on trial", what, "cps", 12).rate("{{from}} to {{to}}", "from, to", "tollgate_shadow_flips_total")
}

fn trial_coverage() -> Panel {
    let what = "Left out: the running turn is not known whole. Missed: too many records waited.";
    Panel::new("How far it is tried", what, "cps", 12)
        .rate("compared", "", "tollgate_shadow_compared_total")
        .rate("left out", "", "tollgate_shadow_left_out_total")
        .rate("missed", "", "tollgate_shadow_dropped_total")
        .rate("not published", "", "tollgate_shadow_publish_failures_total")
}
