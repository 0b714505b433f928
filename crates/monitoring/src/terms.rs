//! What rules and panels share: labels, the objective, thresholds, and how counters are asked for growth.

/// The labels that name a deployment. On Kubernetes a namespace comes with every target; elsewhere it is empty, and the job is enough.
pub const DEPLOYMENT: &str = "namespace, job";
/// The labels that name a worker.
pub const WORKER: &str = "namespace, job, instance";

/// How soon a verdict should be acknowledged after its event, in seconds. It is a bound of a bucket of the latency's histogram.
pub const VERDICT_SECONDS_MAX: f64 = 1.0;
/// The share of verdicts that may come later, over thirty days.
pub const LATE_SHARE_MAX: f64 = 0.001;
/// The label matcher of that bucket. Prometheus writes whole bounds as `1` up to version 2 and as `1.0` from version 3 on.
pub const IN_TIME: &str = r#"le=~"1|1[.]0""#;

/// The window in which any growth of a counter counts.
pub const GROWTH_WINDOW: &str = "10m";

/// Returns by how much a counter has grown within a window, where it has. A series that has just appeared counts with its whole value:
/// `increase` needs two values, so it would overlook the first failure of a kind.
#[must_use]
pub fn growth(selector: &str, window: &str) -> String {
    format!("(increase({selector}[{window}]) > 0 or ({selector} > 0 unless {selector} offset {window}))")
}
