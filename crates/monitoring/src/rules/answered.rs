//! Are callers answered in time?

use super::{Alert, Group, Recording, Severity};
use crate::terms::{DEPLOYMENT, GROWTH_WINDOW, IN_TIME, LATE_SHARE_MAX, WORKER, growth};

/// The windows over which the share of late verdicts is recorded.
const WINDOWS: [&str; 7] = ["5m", "30m", "1h", "2h", "6h", "1d", "3d"];
/// Below so many verdicts in the longer window, a few late ones make up any share.
const VERDICTS_MIN: u32 = 100;

/// Returns the rules.
pub(super) fn group() -> Group {
    Group {
        name: "tollgate-answered",
        question: "Are callers answered in time?",
        recordings: WINDOWS.iter().map(|window| late_share(window)).collect(),
        alerts: vec![late_fast(), late_slow(), no_workers(), worker_down(), not_ready(), restarting(), publish_failures()],
    }
}

fn recorded(window: &str) -> String {
    format!("namespace_job:tollgate_late_verdicts:ratio_rate{window}")
}

fn late_share(window: &str) -> Recording {
    let expression = format!(
        "1 - (\n  sum by ({DEPLOYMENT}) (rate(tollgate_event_to_verdict_seconds_bucket{{{IN_TIME}}}[{window}]))\n  /\n  \
         sum by ({DEPLOYMENT}) (rate(tollgate_event_to_verdict_seconds_count[{window}]))\n)"
    );
    Recording { name: recorded(window), expression }
}

/// Returns the condition that the budget burns at so many times the rate that would just use it up in thirty days, over a long window and
/// over a short one: the short one ends the alert soon after the trouble does.
fn burns(factor: f64, short: &str, long: &str) -> String {
    let [is_over_long, is_over_short] = [long, short].map(|window| format!("{} > {factor} * {LATE_SHARE_MAX}", recorded(window)));
    format!("({is_over_long} and {is_over_short})")
}

fn enough(window: &str) -> String {
    format!("and\nsum by ({DEPLOYMENT}) (increase(tollgate_event_to_verdict_seconds_count[{window}])) >= {VERDICTS_MIN}")
}

fn late_fast() -> Alert {
    Alert {
        name: "TollgateVerdictsLateFast",
        severity: Severity::Critical,
        holds: "2m",
        expression: format!("(\n  {}\n  or\n  {}\n)\n{}", burns(14.4, "5m", "1h"), burns(6.0, "30m", "6h"), enough("6h")),
        summary: "{{ $value | humanizePercentage }} of the verdicts of {{ $labels.job }} come more than a second after their event.",
        description: "At this rate the budget of a month (0.1 % of the verdicts) is used up within five days, or within two. Agents wait, or \
                      give up and do not run their tools.",
    }
}

fn late_slow() -> Alert {
    Alert {
        name: "TollgateVerdictsLateSlow",
        severity: Severity::Warning,
        holds: "15m",
        expression: format!("(\n  {}\n  or\n  {}\n)\n{}", burns(3.0, "2h", "1d"), burns(1.0, "6h", "3d"), enough("1d")),
        summary: "{{ $value | humanizePercentage }} of the verdicts of {{ $labels.job }} come more than a second after their event.",
        description: "At this rate the budget of a month (0.1 % of the verdicts) is used up before the month is over.",
    }
}

fn no_workers() -> Alert {
    Alert {
        name: "TollgateNoWorkers",
        severity: Severity::Critical,
        holds: "2m",
        expression: format!(
            "count by ({DEPLOYMENT}) (last_over_time(tollgate_build_info[1d]))\nunless\ncount by ({DEPLOYMENT}) (tollgate_build_info)"
        ),
        summary: "No worker of {{ $labels.job }} can be scraped.",
        description: "Nothing is decided, unless it is only the scraping that fails. Agents wait for verdicts, and no tool runs.",
    }
}

fn worker_down() -> Alert {
    Alert {
        name: "TollgateWorkerDown",
        severity: Severity::Warning,
        holds: "5m",
        expression: format!("up == 0\nand on ({WORKER})\nlast_over_time(tollgate_build_info[1d])"),
        summary: "The worker {{ $labels.instance }} of {{ $labels.job }} cannot be scraped.",
        description: "The others have taken over its partitions if it is gone. It still has them if only its admin endpoint does not answer.",
    }
}

fn not_ready() -> Alert {
    Alert {
        name: "TollgateNotReady",
        severity: Severity::Warning,
        holds: "10m",
        expression: "tollgate_ready == 0".to_owned(),
        summary: "The worker {{ $labels.instance }} has not been ready for ten minutes.",
        description: "It has no assignment, waits for the state of a partition, does not know the controls, or is refused a right. /readyz \
                      says which.",
    }
}

fn restarting() -> Alert {
    Alert {
        name: "TollgateRestarting",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("changes(process_start_time_seconds[30m]) >= 3\nand on ({WORKER})\ntollgate_build_info"),
        summary: "The worker {{ $labels.instance }} has started {{ $value }} times within half an hour.",
        description: "Each start moves its partitions, and their events wait meanwhile.",
    }
}

fn publish_failures() -> Alert {
    Alert {
        name: "TollgatePublishFailures",
        severity: Severity::Critical,
        holds: "0m",
        expression: format!("sum by ({WORKER}, role, reason) (\n  {}\n)", growth("tollgate_publish_failures_total", GROWTH_WINDOW)),
        summary: "The worker {{ $labels.instance }} could not publish ({{ $labels.role }}): {{ $labels.reason }}.",
        description: "What is too large is published smaller: a verdict that blocks, a dead letter without its value. Any other refusal holds \
                      the partition up until it is mended. A reply is given up; its verdict is in the decisions topic all the same.",
    }
}
