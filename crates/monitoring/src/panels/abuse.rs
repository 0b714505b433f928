//! Who is caught, and does the stage keep up?

use super::{Look, Panel, Row};

/// Returns the row.
pub(super) fn row() -> Row {
    Row {
        question: "Who is caught?",
        panels: vec![
            Panel::new("Firings by rule", "What rules found, whatever they do about it.", "cps", 8).rate(
                "{{rule}} ({{mode}})",
                "rule, mode",
                "tollgate_abuse_firings_total",
            ),
            Panel::new("Alerts", "Alerts published, by level and status.", "cps", 8).look(Look::Stack).rate(
                "{{level}} {{status}}",
                "level, status",
                "tollgate_abuse_alerts_total",
            ),
            Panel::new("Suspensions", "Begun or prolonged, and left out because a rule is paused.", "cps", 8)
                .rate("{{rule}}", "rule", "tollgate_abuse_suspensions_total")
                .rate("paused: {{rule}}", "rule", "tollgate_abuse_paused_total"),
            Panel::new("Not alerted", "Repeats within the time of suppression, and signals that exceptions left out.", "cps", 8)
                .rate("suppressed: {{rule}}", "rule", "tollgate_abuse_suppressed_total")
                .rate("exempt: {{rule}}", "rule", "tollgate_abuse_exempt_total"),
            Panel::new("Signals written", "By deciding, once for each subject of an event.", "cps", 8)
                .rate("{{signal}}", "signal", "tollgate_signals_written_total")
                .rate("left out: {{reason}}", "reason", "tollgate_signals_left_out_total"),
            Panel::new("Signals read", "Late ones are dropped. Foreign and newer records are not read.", "cps", 8).rate(
                "{{outcome}}",
                "outcome",
                "tollgate_abuse_signals_total",
            ),
            Panel::new("Counting: lag in records", "The ten partitions of the signals topic with most records to come.", "none", 8)
                .query("{{job}} {{partition}}", "topk (10, max by (job, partition) (tollgate_lag_records{@, stage=\"abuse\"}))"),
            Panel::new(
                "Counting: lag of time",
                "From the last signals to the partition's time, which is that of its slowest source.",
                "s",
                8,
            )
            .query("{{job}} {{partition}}", "topk (10, max by (job, partition) (tollgate_abuse_clock_lag_seconds{@}))"),
            Panel::new(
                "Counting: forgotten and reset",
                "Subjects forgotten for want of room; sources that began again or are silent.",
                "cps",
                8,
            )
            .rate("subjects forgotten", "", "tollgate_abuse_subjects_dropped_total")
            .rate("sources: {{change}}", "change", "tollgate_abuse_sources_total"),
        ],
    }
}
