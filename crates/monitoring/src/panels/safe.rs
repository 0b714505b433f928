//! Is anything unsafe?

use super::{Look, Panel, Row};

/// Returns the row.
pub(super) fn row() -> Row {
    Row { question: "Is anything unsafe?", panels: [providers(), controls(), program()].concat() }
}

fn providers() -> Vec<Panel> {
    vec![
        Panel::new("Calls that ran undecided", "A provider failed, and guardrails.fail_closed is false.", "cps", 8)
            .rate_by("provider", r#"tollgate_guardrail_provider_calls_total{@, outcome="failed_open"}"#)
            .red_from(0.001),
        Panel::new("Policy servers left alone", "Workers whose circuit breaker is open, by policy server.", "none", 8)
            .query("{{provider}}", "sum by (provider) (tollgate_provider_circuit_open{@})")
            .red_from(1.0),
        Panel::new("Errors of providers", "Why they failed.", "cps", 8).rate(
            "{{provider}}: {{reason}}",
            "provider, reason",
            "tollgate_guardrail_errors_total",
        ),
    ]
}

/// Are suspensions and passports in force as soon as they are written?
fn controls() -> Vec<Panel> {
    vec![
        Panel::new(
            "Controls: silence",
            "Since when the brokers of the controls were not heard of. New suspensions do not arrive meanwhile.",
            "s",
            8,
        )
        .query("{{instance}}", "max by (instance) (tollgate_controls_stale_seconds{@})")
        .red_from(30.0),
        Panel::new(
            "Controls: yet to apply",
            "Records that are known of and not in force, and for how long a transaction hides some.",
            "none",
            8,
        )
        .query("{{instance}}", "max by (instance) (tollgate_controls_lag_records{@})")
        .query("{{instance}}: hidden since, in seconds", "max by (instance) (tollgate_controls_hidden_seconds{@})")
        .red_from(1.0),
        Panel::new("Controls: delay", "From a control's timestamp until it is in force.", "s", 8).quantile(
            "99 %",
            0.99,
            "",
            "tollgate_control_delay_seconds",
        ),
        Panel::new("Controls in force", "Suspensions (subject) and passports, by the worker that knows most of them.", "none", 8)
            .query("{{type}}", "max by (type) (tollgate_controls{@})"),
        Panel::new("Controls that came", "Refused ones restrict whom their keys name.", "cps", 8)
            .rate("applied: {{type}}", "type", "tollgate_controls_applied_total")
            .rate("refused: {{code}}", "code", "tollgate_control_rejections_total")
            .rate("reading failed", "", "tollgate_control_feed_restarts_total"),
    ]
}

fn program() -> Vec<Panel> {
    vec![
        Panel::new("Faults", "Of deciding and of counting. Each of them is looked into: the runbook says how.", "cps", 8)
            .rate("panics", "", "tollgate_thread_panics_total")
            .rate("members started over", "", "tollgate_member_restarts_total")
            .rate("not published: {{role}} {{reason}}", "role, reason", "tollgate_publish_failures_total")
            .rate("misplaced records", "", "tollgate_misplaced_records_total")
            .rate("log lines lost", "", "tollgate_lost_log_lines_total")
            .rate("changed secrets: {{outcome}}", "outcome", "tollgate_secret_changes_total"),
        Panel::new(
            "Policies in force",
            "Workers by the policy that they decide under. More than one: a rollout, or a mistake.",
            "none",
            12,
        )
        .look(Look::Stack)
        .query("{{version}}", "count by (version) (tollgate_policy_info{@})"),
        Panel::new("Versions of the program", "Workers by release.", "none", 12)
            .look(Look::Stack)
            .query("{{version}} {{revision}}", "count by (version, revision) (tollgate_build_info{@})"),
    ]
}
