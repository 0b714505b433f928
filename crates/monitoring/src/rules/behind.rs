//! Who is behind?

use super::{Alert, Group, Severity};
use crate::terms::{DEPLOYMENT, GROWTH_WINDOW, WORKER, growth};

/// Returns the rules.
pub(super) fn group() -> Group {
    Group {
        name: "tollgate-behind",
        question: "Who is behind?",
        recordings: Vec::new(),
        alerts: vec![lag(), unowned(), idle(), unrestored(), restore_failing(), commits_failing(), misplaced()],
    }
}

fn lag() -> Alert {
    Alert {
        name: "TollgateLagGrowing",
        severity: Severity::Critical,
        holds: "5m",
        expression: format!(
            "max by ({DEPLOYMENT}, partition) (tollgate_lag_seconds{{stage=\"\"}}) > 30\nand\nmax by ({DEPLOYMENT}, partition) \
             (deriv(tollgate_lag_seconds{{stage=\"\"}}[5m])) > 0"
        ),
        summary: "Partition {{ $labels.partition }} of {{ $labels.job }} is {{ $value | humanizeDuration }} behind, and falls further behind.",
        description: "Verdicts on its threads come that much too late, and the workers do not catch up.",
    }
}

fn unowned() -> Alert {
    let expected = format!("max by ({DEPLOYMENT}) (tollgate_event_partitions{{stage=\"\"}})");
    Alert {
        name: "TollgatePartitionsUnowned",
        severity: Severity::Critical,
        holds: "3m",
        expression: format!(
            "{expected}\n-\n(\n  sum by ({DEPLOYMENT}) (tollgate_assigned_partitions{{stage=\"\"}})\n  or\n  0 * {expected}\n) > 0"
        ),
        summary: "{{ $value }} partitions of {{ $labels.job }} have no owner.",
        description: "Nobody reads their events. The group does not finish a rebalance, or something else has joined it.",
    }
}

fn idle() -> Alert {
    Alert {
        name: "TollgateWorkerWithoutPartitions",
        severity: Severity::Warning,
        holds: "15m",
        expression: format!(
            "sum by ({WORKER}) (tollgate_assigned_partitions{{stage=\"\"}}) == 0\nand on ({DEPLOYMENT})\ncount by ({DEPLOYMENT}) \
             (tollgate_build_info) <= max by ({DEPLOYMENT}) (tollgate_event_partitions{{stage=\"\"}})"
        ),
        summary: "The worker {{ $labels.instance }} of {{ $labels.job }} has no partition, though there are enough for all.",
        description: "The others do its work. They have less room for peaks than planned.",
    }
}

fn unrestored() -> Alert {
    Alert {
        name: "TollgateUnrestored",
        severity: Severity::Critical,
        holds: "1m",
        expression: format!("sum by ({WORKER}) (tollgate_unrestored_partitions{{stage=\"\"}}) > 0"),
        summary: "{{ $value }} partitions of the worker {{ $labels.instance }} wait for their state.",
        description: "Nothing is decided on them until it is read. Their agents wait.",
    }
}

fn restore_failing() -> Alert {
    Alert {
        name: "TollgateRestoreFailing",
        severity: Severity::Critical,
        holds: "0m",
        expression: format!(
            "sum by ({WORKER}, reason) (\n  {}\n)",
            growth("tollgate_restore_failures_total{reason!=\"kafka\"}", GROWTH_WINDOW)
        ),
        summary: "The worker {{ $labels.instance }} cannot take over a partition's state: {{ $labels.reason }}.",
        description: "It does not pass by itself. Nothing is decided on the partition; the log and /readyz name it.",
    }
}

fn commits_failing() -> Alert {
    Alert {
        name: "TollgateCommitsFailing",
        severity: Severity::Warning,
        holds: "15m",
        expression: format!("sum by ({WORKER}) (increase(tollgate_commit_failures_total[{GROWTH_WINDOW}])) > 0"),
        summary: "The checkpoints of the worker {{ $labels.instance }} keep failing.",
        description: "Verdicts still come. But after a crash everything since the last checkpoint is decided again, which takes the longer the \
                      longer this lasts.",
    }
}

fn misplaced() -> Alert {
    Alert {
        name: "TollgateMisplacedRecords",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({DEPLOYMENT}) (increase(tollgate_misplaced_records_total[{GROWTH_WINDOW}])) > 0"),
        summary: "Records of {{ $labels.job }} are on other partitions than their keys hash to.",
        description: "A thread may be split in two, each with half of its memory: a suppression or a count of one half is not known to the \
                      other.",
    }
}
