//! The table of targets: what was promised, what was measured, and whether it holds.

use serde::Serialize;

use super::super::{Drained, Overload, Ratio};
use super::Findings;

/// The worker's memory may grow by that much under an overload: its queues are bounded by count, and events are large.
const GROWTH_MAX: f64 = 4.0;
/// An event of an overload waits for the backlog in front of it, and at most that many seconds more.
const EXCESS_WAIT_MAX: f64 = 2.0;
/// Lag is gone at most that many seconds after the backlog can be.
const RECOVERY_MAX: f64 = 5.0;
const KEPT_MIN: f64 = 0.95;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// What was promised.
    pub what: String,
    /// How much.
    pub target: String,
    /// What was measured; `None` if this run did not.
    pub measured: Option<String>,
    /// Whether the target is met.
    pub met: Option<bool>,
}

/// The table of one run.
#[must_use]
pub fn rows(findings: &Findings) -> Vec<Row> {
    let versus = findings.versus.as_ref();
    let at_most = |what: &str, limit: f64, ratio: Option<Ratio>| Row {
        what: what.to_owned(),
        target: format!("≤ {limit}×"),
        measured: ratio.map(|ratio| ratio.to_string()),
        met: ratio.map(|ratio| ratio.median <= limit),
    };
    let at_least = |what: &str, limit: f64, ratio: Option<Ratio>| Row {
        what: what.to_owned(),
        target: format!("≥ {limit}×"),
        measured: ratio.map(|ratio| ratio.to_string()),
        met: ratio.map(|ratio| ratio.median >= limit),
    };
    vec![
        at_most("CPU per event over pass-through, draining the same topic", 1.5, per_cpu_second(findings, "pass-through", "tollgate")),
        at_most(
            "CPU per event of the pass-through over a bare consume-and-produce loop",
            1.1,
            per_cpu_second(findings, "bare", "pass-through"),
        ),
        at_least("events per CPU second over the Python worker", 30.0, per_cpu_second(findings, "tollgate", "python")),
        at_least("events per CPU second over the Kafka Streams application", 3.0, per_cpu_second(findings, "tollgate", "kafka-streams")),
        at_most("p99 from intended send to verdict at half of peak, over pass-through", 1.2, versus.and_then(|versus| versus.p99)),
        overload(findings.overload.as_ref()),
    ]
}

/// How many times the events per CPU second of `under` those of `over` are, round by round.
fn per_cpu_second(findings: &Findings, over: &str, under: &str) -> Option<Ratio> {
    let of = |name: &str| findings.drained.iter().find(|drained| drained.name == name).map(Drained::cpu_us);
    Ratio::between(&of(under)?, &of(over)?)
}

fn overload(overload: Option<&Overload>) -> Row {
    let measured = overload.map(|found| {
        let grown = found.phase.resident_bytes_max as f64 / found.resident_bytes_before.max(1) as f64;
        let recovery = found.excess_recovery_seconds();
        let text = format!(
            "{:.0} % kept, memory {:.1}×, no event waits {:.1} s longer than the backlog takes, recovered {}",
            found.kept * 100.0,
            grown,
            found.excess_wait_seconds().max(0.0),
            recovery.map_or_else(|| "not in time".to_owned(), |seconds| format!("{seconds:.1} s after it is gone")),
        );
        if found.is_none() {
            return (format!("{:.0} % kept: what counted as the peak was none, search again on a quiet machine", found.kept * 100.0), None);
        }
        let is_met = found.kept >= KEPT_MIN
            && grown <= GROWTH_MAX
            && found.excess_wait_seconds() <= EXCESS_WAIT_MAX
            && recovery.is_some_and(|seconds| seconds <= RECOVERY_MAX);
        (text, Some(is_met))
    });
    let (measured, met) = measured.map_or((None, None), |(text, met)| (Some(text), met));
    Row {
        what: "offered twice the peak".to_owned(),
        target: format!(
            "≥ 95 % of peak kept, memory ≤ {GROWTH_MAX}×, waits ≤ backlog + {EXCESS_WAIT_MAX} s, recovery ≤ backlog + {RECOVERY_MAX} s"
        ),
        measured,
        met,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::findings;
    use super::*;

    #[test]
    fn every_target_is_judged_by_what_was_measured() {
        let met: Vec<_> = rows(&findings()).iter().map(|row| row.met).collect();
        assert_eq!(met, [Some(true), Some(true), Some(true), None, Some(false), Some(true)]);
        let worse = Overload { kept: 0.94, ..findings().overload.unwrap() };
        assert_eq!(overload(Some(&worse)).met, Some(false));
        let lost = Overload { recovery_seconds: None, ..findings().overload.unwrap() };
        assert_eq!(overload(Some(&lost)).met, Some(false));
        let slow = Overload { longest_wait_seconds: 12.0, ..findings().overload.unwrap() };
        assert_eq!(overload(Some(&slow)).met, Some(false));
        let kept_all = Overload { kept: 1.99, ..findings().overload.unwrap() };
        assert!(overload(Some(&kept_all)).measured.is_some_and(|text| text.contains("search again")));
        assert_eq!([overload(Some(&kept_all)).met, overload(None).met], [None, None]);
    }

    #[test]
    fn more_events_per_cpu_second_are_a_higher_ratio() {
        let found = findings();
        assert!((39.9..40.1).contains(&per_cpu_second(&found, "tollgate", "python").unwrap().median));
        assert!((1.06..1.08).contains(&per_cpu_second(&found, "bare", "pass-through").unwrap().median));
        assert_eq!(per_cpu_second(&found, "tollgate", "nobody"), None);
    }
}
