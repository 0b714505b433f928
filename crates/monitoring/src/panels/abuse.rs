//! Who is caught, and does the stage keep up?

use super::{Look, Panel, Row};

/// The lag of time from which on it is shown in red, in seconds: that is also how late a signal may be by default.
const CLOCK_LAG_SECONDS_MAX: f64 = 300.0;

/// Returns the row.
pub(super) fn row() -> Row {
    Row { question: "Who is caught?", panels: caught().into_iter().chain(counting()).collect() }
}

/// Returns the panels of what rules find.
fn caught() -> [Panel; 6] {
    [
        Panel::new("Firings by rule", "What rules found, whatever they do about it.", "cps", 8).rate(
            "{{rule}} ({{mode}})",
            "rule, mode",
            "tollgate_abuse_firings_total",
        ),
        Panel::new("Alerts", "Alerts published, by level and status.", "cps", 8)
            .look(Look::Stack)
            .rate_by("level, status", "tollgate_abuse_alerts_total"),
        Panel::new("Suspensions", "Begun or prolonged, and left out because a rule is paused.", "cps", 8)
            .rate_by("rule", "tollgate_abuse_suspensions_total")
            .rate("paused: {{rule}}", "rule", "tollgate_abuse_paused_total"),
        Panel::new("Controls of subjects", "Suspensions of rules and of people, and exemptions, by the worker that knows most.", "none", 8)
            .query("{{job}}", "max by (job) (tollgate_controls{@, type=\"subject\"})"),
        Panel::new(
            "Paused rules",
            "Partitions of the signals in which a rule suspends nobody until it is resumed, or warms up, which ends by itself.",
            "none",
            8,
        )
        .look(Look::Table)
        .query("{{rule}}", "sum by (rule) (tollgate_abuse_paused_rules{@}) > 0")
        .query("warming: {{rule}}", "sum by (rule) (tollgate_abuse_warming_rules{@}) > 0")
        .red_from(1.0),
        Panel::new("Not alerted", "Repeats within the time of suppression, and signals that exceptions left out.", "cps", 8)
            .rate("suppressed: {{rule}}", "rule", "tollgate_abuse_suppressed_total")
            .rate("exempt: {{rule}}", "rule", "tollgate_abuse_exempt_total"),
    ]
}

/// Returns the panels of how signals are counted.
fn counting() -> [Panel; 9] {
    [
        Panel::new("Signals written", "By deciding, once for each subject of an event.", "cps", 8)
            .rate_by("signal", "tollgate_signals_written_total")
            .rate("left out: {{reason}}", "reason", "tollgate_signals_left_out_total"),
        Panel::new("Signals read", "Late ones are dropped. Foreign and newer records are not read.", "cps", 8)
            .rate_by("outcome", "tollgate_abuse_signals_total"),
        Panel::new(
            "Counting: forgotten and reset",
            "Subjects and counters forgotten for want of room; sources that began again or are silent.",
            "cps",
            8,
        )
        .rate("subjects forgotten", "", "tollgate_abuse_subjects_dropped_total")
        .rate("counters dropped", "", "tollgate_abuse_counters_dropped_total")
        .rate("sources: {{change}}", "change", "tollgate_abuse_sources_total"),
        Panel::new("Counting: lag in records", "The ten partitions of the signals topic with most records to come.", "none", 8)
            .query("{{job}} {{partition}}", "topk (10, max by (job, partition) (tollgate_lag_records{@, stage=\"abuse\"}))"),
        Panel::new("Counting: lag in seconds", "The age of the last record of signals, while there are more.", "s", 8)
            .query("{{job}} {{partition}}", "topk (10, max by (job, partition) (tollgate_lag_seconds{@, stage=\"abuse\"}))")
            .red_from(60.0),
        Panel::new("Counting: lag of time", "From the last signals to the partition's time, which is that of its slowest source.", "s", 8)
            .query("{{job}} {{partition}}", "topk (10, max by (job, partition) (tollgate_abuse_clock_lag_seconds{@}))")
            .red_from(CLOCK_LAG_SECONDS_MAX),
        Panel::new("Counting: partitions", "The line is the number of partitions of the signals topic.", "none", 8)
            .query("{{job}}: all", "max by (job) (tollgate_event_partitions{@, stage=\"abuse\"})")
            .query("{{instance}}", "sum by (instance) (tollgate_assigned_partitions{@, stage=\"abuse\"})")
            .query("{{instance}}: wait for state", "sum by (instance) (tollgate_unrestored_partitions{@, stage=\"abuse\"})"),
        Panel::new("Counting: subjects remembered", "Entries of state, which are subjects for the most part.", "none", 8)
            .query("{{instance}}", "sum by (instance) (tollgate_live_threads{@, stage=\"abuse\"})"),
        Panel::new("Counting: state in memory", "Bytes of the remembered subjects.", "bytes", 8)
            .query("{{instance}}", "sum by (instance) (tollgate_state_bytes{@, stage=\"abuse\"})"),
    ]
}
