//! Who is behind?

use super::{Panel, Row};

/// Returns the row.
pub(super) fn row() -> Row {
    Row {
        question: "Who is behind?",
        panels: vec![
            Panel::new(
                "Lag in seconds",
                "The age of the last record consumed, while there are more. The ten partitions furthest behind.",
                "s",
                12,
            )
            .query("{{job}} {{partition}}", "topk (10, max by (job, partition) (tollgate_lag_seconds{@, stage=\"\"}))")
            .red_from(30.0),
            Panel::new("Lag in records", "The ten partitions with most records to come.", "none", 12)
                .query("{{job}} {{partition}}", "topk (10, max by (job, partition) (tollgate_lag_records{@, stage=\"\"}))"),
            Panel::new("Partitions by worker", "The line is the number of partitions: what is missing below it has no owner.", "none", 8)
                .query("{{job}}: all", "max by (job) (tollgate_event_partitions{@, stage=\"\"})")
                .query("{{instance}}", "sum by (instance) (tollgate_assigned_partitions{@, stage=\"\"})"),
            Panel::new("Partitions that wait for their state", "Nothing is decided on them until it is read.", "none", 8)
                .query("{{instance}}", "sum by (instance) (tollgate_unrestored_partitions{@, stage=\"\"})")
                .red_from(1.0),
            Panel::new("Restores: time left", "What running restores will still take.", "s", 8)
                .query("partition {{partition}}", "max by (partition) (tollgate_restore_eta_seconds{@, stage=\"\"})"),
            Panel::new("Rebalances", "Partitions that came and went. Lost: the group had given them to others already.", "cps", 8)
                .rate_by("kind", "tollgate_rebalances_total{@, stage=\"\"}"),
            Panel::new("Restores", "How long nine of ten took at most, by outcome.", "s", 8).quantile(
                "90 %: {{outcome}}",
                0.9,
                "outcome",
                "tollgate_restore_duration_seconds{@, stage=\"\"}",
            ),
            Panel::new(
                "Restores that failed",
                "kafka: the brokers are away, and it is tried again. The others do not pass by themselves.",
                "cps",
                8,
            )
            .rate_by("reason", "tollgate_restore_failures_total{@, stage=\"\"}"),
            Panel::new("State read by restores", "Records a second, and records yet to read.", "none", 8)
                .rate("records/s", "", "tollgate_restore_records_total{@, stage=\"\"}")
                .query("to read", "sum (tollgate_restore_remaining_records{@, stage=\"\"})"),
            Panel::new("Checkpoints", "Written: state and offsets are safe up to there.", "cps", 8)
                .rate_by("outcome", "tollgate_checkpoints_total{@, stage=\"\"}")
                .rate("commits that failed", "", "tollgate_commit_failures_total{@, stage=\"\"}"),
            Panel::new("Records decided again", "The state knew them already. After a crash there are some.", "cps", 8)
                .rate_by("instance", "tollgate_redelivered_records_total{@, stage=\"\"}"),
        ],
    }
}
