//! The documentation page of the metrics.

use super::{Kind, PROCESS, Spec};

const HEAD: &str = "\
# Metrics

Written from the list in `crates/worker/src/metrics/list.rs`; `TOLLGATE_UPDATE_FIXTURES=1 cargo test --test integration -- tidy` writes it anew.

`/metrics` of the admin endpoint has them in Prometheus' text format. A series appears when there is something to say; those of a partition
go with it when a worker gives it up. No label ever holds a thread, a user or anything else of an event but its type, what was decided, and
the tool that was stopped. Codes that policy servers make up count as `other` beyond 256 of them, and so do tools beyond 128. Which alert
asks what, and what to do about it, is in the [runbook](runbook.md).

The stage that counts signals has partitions and members of its own. Its series of the metrics that every stage counts have the label
`stage=\"abuse\"`, and those without that label are of deciding: `tollgate_lag_records{stage=\"\"}`.

| metric | type | labels | what | alert on |
|---|---|---|---|---|
";

const OF_THE_PROCESS: &str = "
## The process

Every Prometheus client has these under the same names. They are there on Linux.

| metric | type | labels | what | alert on |
|---|---|---|---|---|
";

/// Returns the page about the metrics, in Markdown.
#[must_use]
pub fn page(metrics: &[Spec]) -> String {
    [HEAD, &rows(metrics), OF_THE_PROCESS, &rows(PROCESS)].concat()
}

fn rows(metrics: &[Spec]) -> String {
    let mut rows = String::new();
    for Spec { name, kind, labels, help, alert } in metrics {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let cell = |text: String| if text.is_empty() { " ".to_owned() } else { format!(" {text} ") };
        let (labels, alert) = (cell(labels.join(", ")), cell(alert.unwrap_or_default().to_owned()));
        rows += &format!("| `{name}` | {kind} |{labels}| {help} |{alert}|\n");
    }
    rows
}
