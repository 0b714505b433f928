//! What does it use?

use super::{Panel, Row};

/// Returns the row.
pub(super) fn row() -> Row {
    let of_tollgate = |metric: &str| format!("{metric}{{@}} and on (namespace, job, instance) tollgate_build_info{{@}}");
    Row {
        question: "What does it use?",
        panels: vec![
            Panel::new("CPU", "Cores in use.", "none", 6).query(
                "{{instance}}",
                "sum by (instance) (rate(process_cpu_seconds_total{@}[$__rate_interval]) and on (namespace, job, instance) \
                 tollgate_build_info{@})",
            ),
            Panel::new("Memory", "Resident.", "bytes", 6).query("{{instance}}", of_tollgate("process_resident_memory_bytes")),
            Panel::new("File descriptors", "The share of those that may be open.", "percentunit", 6)
                .query("{{instance}}", "process_open_fds{@} / process_max_fds{@} and on (namespace, job, instance) tollgate_build_info{@}")
                .red_from(0.8),
            Panel::new("Running for", "Since the process started.", "s", 6)
                .query("{{instance}}", "time () - process_start_time_seconds{@} and on (namespace, job, instance) tollgate_build_info{@}"),
            Panel::new("Threads remembered", "Conversations of agents that state is kept of.", "none", 6)
                .query("{{instance}}", "sum by (instance) (tollgate_live_threads{@, stage=\"\"})"),
            Panel::new("State in memory", "Bytes of the remembered threads.", "bytes", 6)
                .query("{{instance}}", "sum by (instance) (tollgate_state_bytes{@, stage=\"\"})"),
            Panel::new("State on its way", "Bytes a second to and from the state topic.", "Bps", 6)
                .rate("written", "", "tollgate_checkpoint_bytes_total{@, stage=\"\"}")
                .rate("read", "", "tollgate_restore_bytes_total{@, stage=\"\"}"),
            Panel::new("Time of a checkpoint", "To write it and to commit its offset.", "s", 6).quantile(
                "99 %",
                0.99,
                "",
                "tollgate_checkpoint_duration_seconds{@, stage=\"\"}",
            ),
            Panel::new("State records written", "Records a second to the state topic.", "cps", 12)
                .rate_by("instance", "tollgate_checkpoint_records_total{@, stage=\"\"}"),
            Panel::new("Events that wait, in bytes", "They wait for policy servers.", "bytes", 12)
                .query("{{instance}}", "sum by (instance) (tollgate_waiting_bytes{@})"),
            Panel::new("Traces", "Spans of verdicts that the collector has taken, and those that were dropped.", "cps", 24)
                .rate("exported", "", "tollgate_traces_exported_total")
                .rate("dropped: {{reason}}", "reason", "tollgate_traces_dropped_total"),
        ],
    }
}
