//! The list of all metrics: field, name, labels, help, and when to raise an alert. A metric is added by one line here.
//!
//! Names contain their base unit, and counters end in `_total`. No label ever holds a thread, a user or anything else of an event, except
//! its type, what was decided, and the tool that was stopped. What others choose freely is bounded in number (`bounded.rs`).

use super::define::define_metrics;

/// Buckets for latencies that a waiting agent sees: 0.25 ms to 10 s.
const LATENCY_SECONDS: &[f64] = &[0.000_25, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
/// Buckets for times inside the process: 1 µs to 10 ms.
const DECISION_SECONDS: &[f64] = &[0.000_001, 0.000_002, 0.000_005, 0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.01];
/// Buckets for the times of a restore: 10 ms to 5 min.
const RESTORE_SECONDS: &[f64] = &[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0];

define_metrics! {
    Metrics {
        counter events = "tollgate_events_consumed_total" ["type"] "Records consumed, by event type; `unreadable` became a dead letter.";
        counter verdicts = "tollgate_verdicts_total" ["decided_by", "action", "code"] "Verdicts, by what decided, action and code.", alert "any `thread_store_full`";
        counter stops = "tollgate_stops_total" ["tool", "decided_by", "action"]
            "Tool calls and results that were stopped, by tool; `other` is every tool beyond 128, and a name that is no plain identifier.",
            alert "far more than a day ago";
        counter responses_in_doubt = "tollgate_responses_in_doubt_total" ["doubt"]
            "Model responses whose shape is not known, or whose calls may be incomplete, whatever is configured to follow.";
        histogram(DECISION_SECONDS) decision_duration = "tollgate_decision_duration_seconds" []
            "Seconds from a record to its verdict's bytes (one record in 64 is timed).";
        histogram(LATENCY_SECONDS) event_to_verdict = "tollgate_event_to_verdict_seconds" []
            "Seconds from an event's timestamp to its acknowledged verdict; as good as the producer's clock.",
            alert "more than 0.1 % above 1 s, over two windows";
        counter dead_letters = "tollgate_dead_letters_total" ["reason"]
            "Records that could not be read, by rejection code.", alert "more than your producers are known for";
        counter dead_letters_without_value = "tollgate_dead_letters_without_value_total" []
            "Dead letters too large for their topic: published without their value, which stays at the coordinates in the headers.";
        counter misplaced_records = "tollgate_misplaced_records_total" []
            "Records on another partition than their key hashes to: their producer does not use murmur2.", alert "any growth";
        counter replies = "tollgate_replies_total" ["outcome"]
            "Verdicts asked for on a reply topic: published, refused (not on the allow-list) or failed.";
        counter provider_calls = "tollgate_guardrail_provider_calls_total" ["provider", "outcome"]
            "Guardrail provider calls: allowed, denied, failed_closed or failed_open.", alert "any `failed_open`; more than 5 % `failed_closed`";
        counter guardrail_errors = "tollgate_guardrail_errors_total" ["provider", "reason"]
            "Guardrail provider calls that failed: timed_out, connection, status, too_large, malformed, overloaded, circuit_open or not_asked.";
        histogram(LATENCY_SECONDS) provider_duration = "tollgate_provider_duration_seconds" ["provider"]
            "Seconds from a question for a policy server to its answer or error; refusals at once (overloaded, circuit_open) are left out.";
        counter provider_retries = "tollgate_provider_retries_total" ["provider"]
            "Times that a policy server was asked the same question again.";
        gauge provider_in_flight = "tollgate_provider_in_flight" ["provider"] "Questions on their way to a policy server.";
        gauge provider_queued = "tollgate_provider_queued" ["provider"] "Questions that wait for their turn with a policy server.";
        gauge provider_circuit_open = "tollgate_provider_circuit_open" ["provider"]
            "1 while a policy server is left alone because it failed too often.", alert "above 0 for a minute";
        counter serve_requests = "tollgate_serve_requests_total" ["route", "status"]
            "HTTP requests answered, by route (events, verdicts, hooks, opa, litellm, ext_mcp, other) and status.";
        gauge serve_in_flight = "tollgate_serve_in_flight" [] "Events that HTTP requests wait for.";
        histogram(LATENCY_SECONDS) serve_wait = "tollgate_serve_wait_seconds" [] "Seconds that an HTTP request waited for its verdicts.";
        counter serve_unanswered = "tollgate_serve_unanswered_total" ["code"]
            "Events of HTTP requests without a verdict: deadline_exceeded, too_many_waits, kafka_unreachable, not_published or starting.",
            alert "growth over five minutes";
        counter serve_handshakes_failed = "tollgate_serve_handshakes_failed_total" []
            "Connections whose TLS handshake failed or took too long: no TLS, a certificate of the server that the client refuses, or the reverse.";
        gauge serve_certificate_expiry = "tollgate_serve_certificate_expiry_timestamp_seconds" []
            "When the certificate of `serve.tls` expires, in seconds since 1970; 0 without TLS.", alert "less than a week away";
        gauge serve_reply_lag = "tollgate_serve_reply_lag_records" [] "Verdicts on the server's own partition that it has not read.";
        counter rebalances = "tollgate_rebalances_total" ["kind"] "Rebalances: assigned, revoked or lost.";
        counter redelivered_records = "tollgate_redelivered_records_total" [] "Records that the state knew already: skipped.";
        counter checkpoints = "tollgate_checkpoints_total" ["outcome"]
            "Checkpoints: written, refused (the next one covers it), fenced (another member owns the partition) or lost.";
        histogram(LATENCY_SECONDS) checkpoint_duration = "tollgate_checkpoint_duration_seconds" []
            "Seconds to write a checkpoint and commit its offset.";
        counter checkpoint_records = "tollgate_checkpoint_records_total" [] "State records written in checkpoints.";
        counter checkpoint_bytes = "tollgate_checkpoint_bytes_total" [] "Bytes of state written in checkpoints.";
        counter commit_failures = "tollgate_commit_failures_total" []
            "Checkpoints, and with them offset commits, that failed; a later one covers them.", alert "growth that does not end";
        counter publish_failures = "tollgate_publish_failures_total" ["role", "reason"]
            "Publications that failed for good, by role (verdict, reply, dead_letter, signals, alert, control) and Kafka error.", alert "any growth";
        counter member_restarts = "tollgate_member_restarts_total" []
            "Times a group member started over after a failure.", alert "any growth";
        counter secret_changes = "tollgate_secret_changes_total" ["outcome"]
            "Changes of the files of Kafka clients' secrets: taken_over, or refused (the brokers do not accept them).",
            alert "any growth of `refused`";
        counter backpressure = "tollgate_backpressure_total" []
            "Times a member stopped taking records because too many publications waited.";
        counter partition_yields = "tollgate_partition_yields_total" []
            "Times a partition whose costly events took 100 ms let the other partitions go first.";
        counter departed_threads = "tollgate_departed_threads_total" ["reason"]
            "Threads let go of: expired, evicted (to make room) or refused (no room).";
        counter traces_exported = "tollgate_traces_exported_total" [] "Spans of verdicts that the collector has taken.";
        counter traces_dropped = "tollgate_traces_dropped_total" ["reason"]
            "Spans that are not exported: queue_full, failed (no collector), refused (by it) or unfinished. Verdicts do not depend on them.";
        histogram(RESTORE_SECONDS) restore_duration = "tollgate_restore_duration_seconds" ["outcome"]
            "Seconds to bring a partition's state up after assignment.";
        counter shadow_compared = "tollgate_shadow_compared_total" [] "Verdicts that a policy on trial was compared on.";
        counter shadow_flips = "tollgate_shadow_flips_total" ["from", "to", "code", "tool"]
            "Verdicts that a policy on trial would have changed, by the actions of both; the code is of the one that intervenes.";
        counter shadow_left_out = "tollgate_shadow_left_out_total" []
            "Verdicts that were not compared, because the policy on trial does not know the running turn from its beginning.";
        counter shadow_dropped = "tollgate_shadow_dropped_total" []
            "Records that a policy on trial has missed because too many waited for it. Verdicts do not depend on them.";
        counter shadow_publish_failures = "tollgate_shadow_publish_failures_total" ["reason"]
            "Verdicts that differ and could not be published, by Kafka error. Nothing waits for them.";
        counter signals_written = "tollgate_signals_written_total" ["signal"]
            "Signals that deciding has written, by kind: once for each subject of an event.";
        counter signals_left_out = "tollgate_signals_left_out_total" ["reason"]
            "Signals that deciding has not written: unattributed (the event names no user) or untimed (no time is known).";
        counter abuse_signals = "tollgate_abuse_signals_total" ["outcome"]
            "Signals that the abuse stage has read: applied, repeated (known already) or late (dropped); and records that it cannot read: \
             foreign or newer.", alert "any growth of `late`, `foreign` or `newer`";
        counter abuse_firings = "tollgate_abuse_firings_total" ["rule", "mode"] "Times a rule fired, by rule and mode.";
        counter abuse_alerts = "tollgate_abuse_alerts_total" ["level", "status"] "Alerts published, by level and status.";
        counter abuse_suppressed = "tollgate_abuse_suppressed_total" ["rule"]
            "Firings that raised no alert of their own, because one had been raised a short while before.";
        counter abuse_exempt = "tollgate_abuse_exempt_total" ["rule"] "Signals that an exception of a rule left out.";
        counter abuse_suspensions = "tollgate_abuse_suspensions_total" ["rule"] "Suspensions that a rule began or prolonged.";
        counter abuse_paused = "tollgate_abuse_paused_total" ["rule"]
            "Suspensions left out because the rule would suspend too many (`tollgate abuse resume RULE`).";
        gauge abuse_paused_rules = "tollgate_abuse_paused_rules" ["rule"]
            "Partitions of the signals topic in which a rule enforces nothing, for a tenant or for all, until `tollgate abuse resume RULE`.",
            alert "above 0";
        gauge abuse_warming_rules = "tollgate_abuse_warming_rules" ["rule"]
            "Partitions of the signals topic in which a rule that is new is not in force yet: it is shown what came before.",
            alert "above 0 for an hour";
        counter abuse_subjects_dropped = "tollgate_abuse_subjects_dropped_total" []
            "Subjects forgotten because memory is bounded: those farthest from any threshold.", alert "any growth";
        counter abuse_counters_dropped = "tollgate_abuse_counters_dropped_total" []
            "Counters dropped, or not made, because a subject can have 64: rules with dimensions that somebody makes up.";
        counter abuse_sources = "tollgate_abuse_sources_total" ["change"]
            "Partitions of the events topic whose offsets began again (reset), or that were silent and are left out of the time (silent).",
            alert "any growth";
        counter restore_failures = "tollgate_restore_failures_total" ["reason"]
            "Restores that failed and are tried again: kafka (away), forbidden, unreadable or mismatch.", alert "any growth but of `kafka`";
        counter restore_records = "tollgate_restore_records_total" [] "State records read by restores.";
        counter restore_bytes = "tollgate_restore_bytes_total" [] "Bytes of state read by restores.";
        counter controls_applied = "tollgate_controls_applied_total" ["type"] "Control records applied: passport or subject.";
        counter control_rejections = "tollgate_control_rejections_total" ["code"]
            "Control records refused, by code; each restricts whom its key names, if its key names anybody.", alert "any growth";
        gauge controls = "tollgate_controls" ["type"] "Controls in force: passport, or subject for suspensions.";
        histogram(LATENCY_SECONDS) control_delay = "tollgate_control_delay_seconds" []
            "Seconds from a control record's timestamp until it was in force; as good as the producer's clock.";
        gauge controls_lag_records = "tollgate_controls_lag_records" [] "Control records that are known of and not applied.", alert "above 0 for two minutes";
        gauge controls_hidden_seconds = "tollgate_controls_hidden_seconds" []
            "Age of the oldest control record that an open transaction hides; what restricts counts all the same.";
        gauge controls_stale_seconds = "tollgate_controls_stale_seconds" []
            "Seconds since the brokers of the controls were heard of.", alert "above 30";
        counter control_feed_restarts = "tollgate_control_feed_restarts_total" [] "Times reading the controls failed and went on.";
        counter thread_panics = "tollgate_thread_panics_total" []
            "Times a thread panicked. The log names it, and `/livez` does until it runs again.", alert "any growth";
        counter lost_log_lines = "tollgate_lost_log_lines_total" []
            "Log lines that were lost because stderr is closed or nobody reads it.", alert "any growth";
        gauge event_partitions = "tollgate_event_partitions" [] "Partitions of the topic that the stage reads when the worker started.",
            alert "above the sum of the assigned ones";
        gauge policy_info = "tollgate_policy_info" ["version"] "1, with the version of the policy in force.", alert "several versions for half an hour";
        gauge build_info = "tollgate_build_info" ["version", "revision"] "1, with the version of the program and the revision of its sources.";
        gauge ready = "tollgate_ready" [] "1 while every member has its assignment and the state of it, and the controls are known.", alert "0 for ten minutes";
    }
    /// The series of one partition.
    partition: PartitionMetrics by "partition" {
        gauge lag_records = "tollgate_lag_records" "Records between a partition's end and what was consumed.";
        gauge lag_seconds = "tollgate_lag_seconds"
            "Seconds since the last consumed record was written, while there is lag; 0 without.", alert "high and growing";
        gauge live_threads = "tollgate_live_threads" "Threads remembered.";
        gauge state_bytes = "tollgate_state_bytes" "Bytes of the remembered threads.";
        gauge restore_remaining_records = "tollgate_restore_remaining_records" "State records that a running restore has still to read.";
        gauge abuse_clock_lag = "tollgate_abuse_clock_lag_seconds"
            "Seconds between the last signals of a partition and its time, which is the least of its sources'.",
            alert "above 300 for ten minutes";
        gauge restore_eta_seconds = "tollgate_restore_eta_seconds" "Seconds that a running restore will still take.";
    }
    /// The series of one group member.
    member: MemberMetrics by "member" {
        gauge in_flight = "tollgate_in_flight" "Publications that are not acknowledged.";
        gauge waiting_events = "tollgate_waiting_events" "Events that wait for a policy server's answer, or behind one that does.";
        gauge waiting_bytes = "tollgate_waiting_bytes" "Bytes of these events.";
        gauge assigned_partitions = "tollgate_assigned_partitions" "Partitions assigned.", alert "0, if there are partitions for all";
        gauge unrestored_partitions = "tollgate_unrestored_partitions"
            "Partitions assigned that wait for their state. Alert if this stays above 0.", alert "above 0 for a minute";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(metrics: &Metrics) -> String {
        String::from_utf8(metrics.render()).unwrap()
    }

    #[test]
    fn every_metric_is_made() {
        let metrics = Metrics::new().unwrap();
        metrics.events.with_label_values(&["tool_call"]).inc();
        assert!(text(&metrics).contains("tollgate_events_consumed_total{type=\"tool_call\"} 1"));
        for spec in CATALOG {
            // A second metric of the same name and labels is refused. So a metric that can be registered here was not made before.
            let again = prometheus::IntCounterVec::new(prometheus::Opts::new(spec.name, spec.help), spec.labels).unwrap();
            assert!(metrics.registry.register(Box::new(again)).is_err(), "{} is in the list and not made", spec.name);
        }
    }

    fn series(metrics: &Metrics, label: &str) -> usize {
        text(metrics).lines().filter(|line| line.contains(label)).count()
    }

    /// Metrics by partition or member in the list belong to a handle, and their series are removed with it.
    #[test]
    fn series_of_a_partition_or_member_go_with_their_last_holder() {
        let metrics = Metrics::new().unwrap();
        for (label, own) in [("partition", "partition=\"3\""), ("member", "member=\"3\"")] {
            let listed = CATALOG.iter().filter(|spec| spec.labels.contains(&label)).count();
            let (partition, member) = (metrics.partition(3), metrics.member("3"));
            assert_eq!(series(&metrics, own), 0, "nothing is shown before it is known");
            partition.make_all();
            member.make_all();
            let others = (metrics.partition(4), metrics.member("4"));
            others.0.make_all();
            others.1.make_all();
            assert_eq!(series(&metrics, own), listed, "a metric by {label} stands in the block of its handle");
            // The next holder comes before the last one goes.
            let next = (metrics.partition(3), metrics.member("3"));
            drop((partition, member));
            assert_eq!(series(&metrics, own), listed);
            drop(next);
            assert_eq!(series(&metrics, own), 0);
            assert_eq!(series(&metrics, &own.replace('3', "4")), listed, "those of another are left alone");
        }
    }
}
