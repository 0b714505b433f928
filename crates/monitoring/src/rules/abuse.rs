//! Who is caught: does the stage that counts signals see all of them, and does it act?

use super::{Alert, Group, Severity};
use crate::terms::{DEPLOYMENT, GROWTH_WINDOW, WORKER, growth};

/// Returns the rules.
pub(super) fn group() -> Group {
    Group {
        name: "tollgate-abuse",
        question: "Who is caught?",
        recordings: Vec::new(),
        alerts: vec![
            lag(),
            unowned(),
            unrestored(),
            warming(),
            clock_behind(),
            paused(),
            late(),
            source_silent(),
            source_reset(),
            forgotten(),
            unreadable(),
        ],
    }
}

fn lag() -> Alert {
    let lag = "tollgate_lag_seconds{stage=\"abuse\"}";
    Alert {
        name: "TollgateAbuseLagGrowing",
        severity: Severity::Warning,
        holds: "5m",
        expression: format!("max by ({DEPLOYMENT}, partition) ({lag}) > 60\nand\nmax by ({DEPLOYMENT}, partition) (deriv({lag}[5m])) > 0"),
        summary: "Counting is {{ $value | humanizeDuration }} behind on partition {{ $labels.partition }} of {{ $labels.job }}, and falls \
                  further behind.",
        description: "Alerts and suspensions of the subjects there come that much too late. Verdicts do not wait for it.",
    }
}

fn unowned() -> Alert {
    let expected = format!("max by ({DEPLOYMENT}) (tollgate_event_partitions{{stage=\"abuse\"}})");
    Alert {
        name: "TollgateAbusePartitionsUnowned",
        severity: Severity::Warning,
        holds: "5m",
        expression: format!(
            "{expected}\n-\n(\n  sum by ({DEPLOYMENT}) (tollgate_assigned_partitions{{stage=\"abuse\"}})\n  or\n  0 * {expected}\n) > 0"
        ),
        summary: "{{ $value }} partitions of the signals of {{ $labels.job }} have no owner.",
        description: "Nobody counts their signals, and nobody of their subjects is caught. Nothing is lost while the topic keeps them.",
    }
}

fn unrestored() -> Alert {
    Alert {
        name: "TollgateAbuseUnrestored",
        severity: Severity::Warning,
        holds: "10m",
        expression: format!("sum by ({WORKER}) (tollgate_unrestored_partitions{{stage=\"abuse\"}}) > 0"),
        summary: "{{ $value }} partitions of signals of the worker {{ $labels.instance }} wait for their state.",
        description: "Their signals are not counted until it is read. Verdicts go on.",
    }
}

fn warming() -> Alert {
    Alert {
        name: "TollgateRuleNotInForce",
        severity: Severity::Warning,
        holds: "1h",
        expression: format!("sum by ({DEPLOYMENT}, rule) (tollgate_abuse_warming_rules) > 0"),
        summary: "The rule {{ $labels.rule }} of {{ $labels.job }} is not in force yet on {{ $value }} partitions of the signals.",
        description: "It is new, and is shown what the log still holds. Until then it catches nobody; the other rules go on.",
    }
}

fn clock_behind() -> Alert {
    Alert {
        name: "TollgateAbuseClockBehind",
        severity: Severity::Warning,
        holds: "10m",
        expression: format!("max by ({DEPLOYMENT}, partition) (tollgate_abuse_clock_lag_seconds) > 300"),
        summary: "The time of partition {{ $labels.partition }} of the signals of {{ $labels.job }} is {{ $value | humanizeDuration }} behind \
                  them.",
        description: "A partition of the events topic is behind or silent. Count rules fire all the same; ratios, baselines and the ends of \
                      suspensions wait for it.",
    }
}

fn paused() -> Alert {
    Alert {
        name: "TollgateEnforcementPaused",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({DEPLOYMENT}, rule) (tollgate_abuse_paused_rules) > 0"),
        summary: "The rule {{ $labels.rule }} of {{ $labels.job }} no longer suspends anybody: it was about to suspend too many.",
        description: "It still raises alerts. Either many offend at once, or a provider has changed its filter and they are innocent.",
    }
}

fn late() -> Alert {
    Alert {
        name: "TollgateSignalsLate",
        severity: Severity::Warning,
        holds: "5m",
        expression: format!("sum by ({DEPLOYMENT}) (\n  {}\n)", growth("tollgate_abuse_signals_total{outcome=\"late\"}", GROWTH_WINDOW)),
        summary: "{{ $labels.job }} drops signals that come too late to be counted.",
        description: "Offenders among them may stay below a threshold that they have reached.",
    }
}

fn source_silent() -> Alert {
    Alert {
        name: "TollgateSignalSourceSilent",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({DEPLOYMENT}) (\n  {}\n)", growth("tollgate_abuse_sources_total{change=\"silent\"}", GROWTH_WINDOW)),
        summary: "Partitions of the events topic of {{ $labels.job }} send no signals and no time.",
        description: "Deciding does not run on them, or cannot write signals. They are left out of the time, and what comes later is late.",
    }
}

fn source_reset() -> Alert {
    Alert {
        name: "TollgateSignalSourceReset",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({DEPLOYMENT}) (\n  {}\n)", growth("tollgate_abuse_sources_total{change=\"reset\"}", GROWTH_WINDOW)),
        summary: "The offsets of partitions of the events topic of {{ $labels.job }} have begun again.",
        description: "The topic was made anew, or its state was taken away. Signals count from there on; what was counted before still is.",
    }
}

fn forgotten() -> Alert {
    Alert {
        name: "TollgateSubjectsForgotten",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({DEPLOYMENT}) (\n  {}\n)", growth("tollgate_abuse_subjects_dropped_total", GROWTH_WINDOW)),
        summary: "{{ $labels.job }} forgets subjects, because there are more than it has room for.",
        description: "Those farthest from any threshold go first, and none on a ladder. Somebody may be making up new ids.",
    }
}

fn unreadable() -> Alert {
    let unread = growth("tollgate_abuse_signals_total{outcome=~\"foreign|newer\"}", GROWTH_WINDOW);
    Alert {
        name: "TollgateSignalsUnreadable",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({DEPLOYMENT}, outcome) (\n  {unread}\n)"),
        summary: "{{ $labels.job }} has found records among the signals that it cannot read: {{ $labels.outcome }}.",
        description: "Foreign: something else writes to the topic. Newer: a later release decides, and this one counts. They count for nobody.",
    }
}
