//! The catalogue: name, type, unit and labels of every metric.
//!
//! Names carry their base unit, counters end in `_total`. No label ever holds a thread, a user or anything else of an event but its
//! type and what was decided.

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Only goes up.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size, with these upper bounds.
    Histogram(&'static [f64]),
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says, with its unit.
    pub help: &'static str,
}

/// Latencies that a waiter sees: 0.25 ms to 10 s.
const LATENCY_SECONDS: &[f64] = &[0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
/// Times inside the process: 1 µs to 10 ms.
const DECISION_SECONDS: &[f64] = &[0.000_001, 0.000_002, 0.000_005, 0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.01];
/// Times of a restore: 10 ms to 5 min.
const RESTORE_SECONDS: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Spec {
    Spec { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Spec {
    Spec { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], buckets: &'static [f64], help: &'static str) -> Spec {
    Spec { name, kind: Kind::Histogram(buckets), labels, help }
}

/// Every metric there is.
pub const CATALOG: &[Spec] = &[
    counter("tollgate_events_consumed_total", &["type"], "Records consumed, by event type; `unreadable` became a dead letter."),
    counter("tollgate_verdicts_total", &["decided_by", "action", "code"], "Verdicts, by what decided, action and code."),
    histogram(
        "tollgate_decision_duration_seconds",
        &[],
        DECISION_SECONDS,
        "Seconds from a record to its verdict's bytes (one record in 64 is timed).",
    ),
    histogram(
        "tollgate_event_to_verdict_seconds",
        &[],
        LATENCY_SECONDS,
        "Seconds from an event's timestamp to its acknowledged verdict; as good as the producer's clock.",
    ),
    counter("tollgate_dead_letters_total", &["reason"], "Records that could not be read, by rejection code."),
    counter(
        "tollgate_dead_letters_without_value_total",
        &[],
        "Dead letters too large for their topic: published without their value, which stays at the coordinates in the headers.",
    ),
    counter(
        "tollgate_misplaced_records_total",
        &[],
        "Records on another partition than their key hashes to: their producer does not use murmur2.",
    ),
    counter(
        "tollgate_replies_total",
        &["outcome"],
        "Verdicts asked for on a reply topic: published, refused (not on the allow-list) or failed.",
    ),
    counter(
        "tollgate_guardrail_provider_calls_total",
        &["provider", "outcome"],
        "Guardrail provider calls: allowed, denied, failed_closed or failed_open.",
    ),
    counter(
        "tollgate_guardrail_errors_total",
        &["provider", "reason"],
        "Guardrail provider calls that failed: timed_out, connection, status, too_large, malformed, overloaded, circuit_open or not_asked.",
    ),
    histogram(
        "tollgate_provider_duration_seconds",
        &["provider"],
        LATENCY_SECONDS,
        "Seconds from a question for a policy server to its answer or error; refusals at once (overloaded, circuit_open) are left out.",
    ),
    counter("tollgate_provider_retries_total", &["provider"], "Times that a policy server was asked the same question again."),
    gauge("tollgate_provider_in_flight", &["provider"], "Questions on their way to a policy server."),
    gauge("tollgate_provider_queued", &["provider"], "Questions that wait for their turn with a policy server."),
    gauge("tollgate_provider_circuit_open", &["provider"], "1 while a policy server is left alone because it failed too often."),
    gauge("tollgate_lag_records", &["partition"], "Records between a partition's end and what was consumed."),
    gauge("tollgate_lag_seconds", &["partition"], "Seconds since the last consumed record was written, while there is lag; 0 without."),
    gauge("tollgate_in_flight", &["member"], "Publications that are not acknowledged."),
    gauge("tollgate_waiting_events", &["member"], "Events that wait for a policy server's answer, or behind one that does."),
    gauge("tollgate_waiting_bytes", &["member"], "Bytes of these events."),
    gauge("tollgate_assigned_partitions", &["member"], "Partitions assigned."),
    counter("tollgate_rebalances_total", &["kind"], "Rebalances: assigned, revoked or lost."),
    counter("tollgate_redelivered_records_total", &[], "Records that the state knew already: skipped."),
    counter(
        "tollgate_checkpoints_total",
        &["outcome"],
        "Checkpoints: written, refused (the next one covers it), fenced (another member owns the partition) or lost.",
    ),
    histogram("tollgate_checkpoint_duration_seconds", &[], LATENCY_SECONDS, "Seconds to write a checkpoint and commit its offset."),
    counter("tollgate_checkpoint_records_total", &[], "State records written in checkpoints."),
    counter("tollgate_checkpoint_bytes_total", &[], "Bytes of state written in checkpoints."),
    counter("tollgate_commit_failures_total", &[], "Checkpoints, and with them offset commits, that failed; a later one covers them."),
    counter(
        "tollgate_publish_failures_total",
        &["role", "reason"],
        "Publications that failed for good, by role (verdict, reply, dead_letter) and Kafka error.",
    ),
    counter("tollgate_member_restarts_total", &[], "Times a group member started over after a failure."),
    counter("tollgate_backpressure_total", &[], "Times a member stopped taking records because too many publications waited."),
    gauge("tollgate_live_threads", &["partition"], "Threads remembered."),
    gauge("tollgate_state_bytes", &["partition"], "Bytes of the remembered threads."),
    counter("tollgate_departed_threads_total", &["reason"], "Threads let go of: expired, evicted (to make room) or refused (no room)."),
    histogram(
        "tollgate_restore_duration_seconds",
        &["outcome"],
        RESTORE_SECONDS,
        "Seconds to bring a partition's state up after assignment.",
    ),
    counter(
        "tollgate_restore_failures_total",
        &["reason"],
        "Restores that failed and are tried again: kafka (away), forbidden, unreadable or mismatch.",
    ),
    counter("tollgate_restore_records_total", &[], "State records read by restores."),
    counter("tollgate_restore_bytes_total", &[], "Bytes of state read by restores."),
    gauge("tollgate_restore_remaining_records", &["partition"], "State records that a running restore has still to read."),
    gauge("tollgate_restore_eta_seconds", &["partition"], "Seconds that a running restore will still take."),
    gauge("tollgate_unrestored_partitions", &["member"], "Partitions assigned that wait for their state. Alert if this stays above 0."),
    counter("tollgate_controls_applied_total", &["type"], "Control records applied: passport or subject."),
    counter("tollgate_control_rejections_total", &["code"], "Control records refused, by code; what was in force stayed in force."),
    gauge("tollgate_controls", &["type"], "Controls in force: passport, or subject for suspensions."),
    histogram(
        "tollgate_control_delay_seconds",
        &[],
        LATENCY_SECONDS,
        "Seconds from a control record's timestamp until it was in force; as good as the producer's clock.",
    ),
    gauge("tollgate_controls_lag_records", &[], "Control records that are known of and not applied."),
    gauge("tollgate_controls_stale_seconds", &[], "Seconds since the brokers of the controls were heard of."),
    counter("tollgate_control_feed_restarts_total", &[], "Times reading the controls failed and went on."),
    gauge("tollgate_policy_info", &["version"], "1, with the version of the policy in force."),
    gauge("tollgate_ready", &[], "1 while every member has its assignment and the state of it, and the controls are known."),
];
