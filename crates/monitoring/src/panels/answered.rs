//! Are callers answered in time?

use super::{Look, Panel, Row};
use crate::terms::{IN_TIME, LATE_SHARE_MAX, VERDICT_SECONDS_MAX};

/// Returns the row.
pub(super) fn row() -> Row {
    let latency = "tollgate_event_to_verdict_seconds";
    let late = format!(
        "1 - sum by (job) (rate({latency}_bucket{{@, {IN_TIME}}}[$__rate_interval])) / sum by (job) \
         (rate({latency}_count{{@}}[$__rate_interval]))"
    );
    Row {
        question: "Are callers answered in time?",
        panels: [
            Panel::new(
                "From event to verdict",
                "From the event's timestamp to the acknowledged verdict. As good as the producers' clocks.",
                "s",
                12,
            )
            .quantile("99.9 %", 0.999, "", latency)
            .quantile("99 %", 0.99, "", latency)
            .quantile("50 %", 0.5, "", latency)
            .red_from(VERDICT_SECONDS_MAX),
            Panel::new(
                "Answered late",
                "The share of verdicts that came more than a second after their event. The line is the budget.",
                "percentunit",
                12,
            )
            .query("{{job}}", late)
            .red_from(LATE_SHARE_MAX),
            Panel::new("Verdicts by worker", "A worker without a line gives none.", "cps", 8)
                .look(Look::Stack)
                .rate_by("instance", "tollgate_verdicts_total"),
            Panel::new("Deciding", "From a record to its verdict's bytes, without Kafka and policy servers.", "s", 8)
                .quantile("99 %", 0.99, "", "tollgate_decision_duration_seconds")
                .quantile("50 %", 0.5, "", "tollgate_decision_duration_seconds"),
            Panel::new("Policy servers' answers (99 %)", "From a question to its answer or error.", "s", 8).quantile(
                "{{provider}}",
                0.99,
                "provider",
                "tollgate_provider_duration_seconds",
            ),
            Panel::new("Waiting for Kafka", "Publications that are not acknowledged yet.", "none", 8)
                .query("{{instance}}", "sum by (instance) (tollgate_in_flight{@, stage=\"\"})"),
            Panel::new(
                "Waiting for policy servers",
                "Events that wait for an answer or behind one that does, and questions on their way or queued.",
                "none",
                8,
            )
            .query("events", "sum (tollgate_waiting_events{@})")
            .query("asked: {{provider}}", "sum by (provider) (tollgate_provider_in_flight{@})")
            .query("queued: {{provider}}", "sum by (provider) (tollgate_provider_queued{@})"),
            held_up(),
        ]
        .into_iter()
        .chain(of_servers())
        .collect(),
    }
}

fn held_up() -> Panel {
    let what = "How often members stopped taking records, of all partitions or of one, and questions that were asked again.";
    Panel::new("Held up", what, "cps", 8)
        .rate("too much in flight", "", "tollgate_backpressure_total{@, stage=\"\"}")
        .rate("costly events", "", "tollgate_partition_yields_total{@, stage=\"\"}")
        .rate("asked again: {{provider}}", "provider", "tollgate_provider_retries_total")
}

fn of_servers() -> [Panel; 6] {
    [
        Panel::new(
            "HTTP requests",
            "By status. Without a verdict the status is 4xx or 5xx; hooks are answered with 200 all the same.",
            "cps",
            6,
        )
        .look(Look::Stack)
        .rate_by("route, status", "tollgate_serve_requests_total"),
        Panel::new("HTTP events without a verdict", "By the reason that the caller was given.", "cps", 6)
            .rate_by("code", "tollgate_serve_unanswered_total"),
        Panel::new("HTTP waits (99 %)", "From a request to its answer.", "s", 6).quantile("99 %", 0.99, "", "tollgate_serve_wait_seconds"),
        Panel::new(
            "HTTP in flight",
            "Events that are waited for, and verdicts on the servers' partitions that are not read yet.",
            "none",
            6,
        )
        .query("waits: {{instance}}", "sum by (instance) (tollgate_serve_in_flight{@})")
        .query("unread: {{instance}}", "sum by (instance) (tollgate_serve_reply_lag_records{@})"),
        Panel::new("Failed TLS handshakes", "Connections of HTTP clients that ended before the first request.", "cps", 12)
            .rate_by("instance", "tollgate_serve_handshakes_failed_total"),
        Panel::new("Life of the servers' certificates", "Until the certificate of `serve.tls` expires.", "s", 12)
            .query("{{instance}}", "sum by (instance) ((tollgate_serve_certificate_expiry_timestamp_seconds{@} > 0) - time())"),
    ]
}
