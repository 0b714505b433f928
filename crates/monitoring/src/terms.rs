//! What the dashboard's panels share with the rules: the objective and its bucket.

/// How soon a verdict should be acknowledged after its event, in seconds. The objective is a bound of a bucket of the latency's histogram.
pub const VERDICT_SECONDS_MAX: f64 = 1.0;
/// The share of verdicts that may come later, over thirty days.
pub const LATE_SHARE_MAX: f64 = 0.001;
/// The label matcher of that bucket. Prometheus writes whole bounds as `1` up to version 2 and as `1.0` from version 3 on.
pub const IN_TIME: &str = r#"le=~"1|1[.]0""#;
