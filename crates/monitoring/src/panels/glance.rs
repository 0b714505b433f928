//! Is all well? Each number belongs to one of the questions below.

use super::{Look, Panel, Row, rate};
use crate::terms::{IN_TIME, LATE_SHARE_MAX, VERDICT_SECONDS_MAX};

/// Returns the row.
pub(super) fn row() -> Row {
    let number = |title, description, unit| Panel::new(title, description, unit, 3).look(Look::Number);
    let stops = rate("", r#"tollgate_verdicts_total{@, action=~"block|halt|suppress"}"#);
    let late = format!(
        "1 - sum (rate(tollgate_event_to_verdict_seconds_bucket{{@, {IN_TIME}}}[1h])) / sum \
         (rate(tollgate_event_to_verdict_seconds_count{{@}}[1h]))"
    );
    Row {
        question: "Is all well?",
        panels: vec![
            number("Alerts", "Alerts of Tollgate that fire. The link at the top leads to the runbook.", "none")
                .query("", r#"count (ALERTS{alertname=~"Tollgate.+", alertstate="firing", @deployment}) or vector(0)"#)
                .red_from(1.0),
            number("Workers that are not ready", "They have no assignment, wait for state, or do not know the controls.", "none")
                .query("", "count (tollgate_ready{@} == 0) or vector(0)")
                .red_from(1.0),
            number("Verdicts", "Verdicts a second.", "cps").query("", rate("", "tollgate_verdicts_total")),
            number("99 % answered within", "From the event's timestamp to the acknowledged verdict.", "s")
                .quantile("", 0.99, "", "tollgate_event_to_verdict_seconds")
                .red_from(VERDICT_SECONDS_MAX),
            number(
                "Answered late",
                "The share of verdicts of the last hour that came more than a second after their event.",
                "percentunit",
            )
            .query("", late)
            .red_from(LATE_SHARE_MAX),
            number("Stopped", "The share of verdicts that block, halt or suppress.", "percentunit")
                .query("", format!("({stops} or vector(0)) / {}", rate("", "tollgate_verdicts_total"))),
            number("Furthest behind", "The lag of the partition that is furthest behind.", "s")
                .query("", "max (tollgate_lag_seconds{@, stage=\"\"})")
                .red_from(30.0),
            number(
                "Ran undecided",
                "Tool calls that ran because a provider failed and guardrails.fail_closed is false, in the time shown.",
                "none",
            )
            .query("", r#"sum (increase(tollgate_guardrail_provider_calls_total{@, outcome="failed_open"}[$__range])) or vector(0)"#)
            .red_from(1.0),
        ],
    }
}
