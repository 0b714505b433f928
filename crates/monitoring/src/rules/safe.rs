//! Is anything unsafe?

use super::{Alert, Group, Severity};
use crate::terms::{DEPLOYMENT, GROWTH_WINDOW, WORKER, growth};

/// Returns the rules.
pub(super) fn group() -> Group {
    Group {
        name: "tollgate-safe",
        question: "Is anything unsafe?",
        recordings: Vec::new(),
        alerts: vec![
            fail_open(),
            circuit_open(),
            controls_stale(),
            controls_behind(),
            controls_rejected(),
            policies_differ(),
            panics(),
            member_restarts(),
            log_lost(),
            secrets_refused(),
        ],
    }
}

fn fail_open() -> Alert {
    let open = growth("tollgate_guardrail_provider_calls_total{outcome=\"failed_open\"}", GROWTH_WINDOW);
    Alert {
        name: "TollgateFailOpen",
        severity: Severity::Critical,
        holds: "0m",
        expression: format!("sum by ({DEPLOYMENT}, provider) (\n  {open}\n)"),
        summary: "{{ $labels.job }} has let tool calls run that {{ $labels.provider }} did not decide on.",
        description: "The provider fails, and guardrails.fail_closed is false: calls run that policy might deny.",
    }
}

fn circuit_open() -> Alert {
    Alert {
        name: "TollgateCircuitOpen",
        severity: Severity::Warning,
        holds: "1m",
        expression: format!("sum by ({DEPLOYMENT}, provider) (tollgate_provider_circuit_open) > 0"),
        summary: "{{ $value }} workers of {{ $labels.job }} leave the policy server {{ $labels.provider }} alone, because it fails too often.",
        description: "It is not asked but for a trial now and then. Every other call that it should decide on is blocked, or runs undecided \
                      where guardrails.fail_closed is false.",
    }
}

fn controls_stale() -> Alert {
    Alert {
        name: "TollgateControlsStale",
        severity: Severity::Critical,
        holds: "0m",
        expression: format!("max by ({WORKER}) (tollgate_controls_stale_seconds) > 30"),
        summary: "The worker {{ $labels.instance }} has not heard of the controls for {{ $value | humanizeDuration }}.",
        description: "A suspension that is written now does not reach it. It decides under those that it knows.",
    }
}

fn controls_behind() -> Alert {
    Alert {
        name: "TollgateControlsBehind",
        severity: Severity::Warning,
        holds: "2m",
        expression: format!("max by ({WORKER}) (tollgate_controls_lag_records) > 0"),
        summary: "The worker {{ $labels.instance }} has {{ $value }} controls yet to apply.",
        description: "Suspensions and passports among them are not in force there.",
    }
}

fn controls_rejected() -> Alert {
    Alert {
        name: "TollgateControlsRejected",
        severity: Severity::Critical,
        holds: "0m",
        expression: format!("sum by ({DEPLOYMENT}, code) (\n  {}\n)", growth("tollgate_control_rejections_total", GROWTH_WINDOW)),
        summary: "{{ $labels.job }} has refused a control: {{ $labels.code }}.",
        description: "A suspension or a passport that somebody has written is not in force. What was in force before still is.",
    }
}

fn policies_differ() -> Alert {
    Alert {
        name: "TollgatePoliciesDiffer",
        severity: Severity::Warning,
        holds: "30m",
        expression: format!("count by ({DEPLOYMENT}) (count by ({DEPLOYMENT}, version) (tollgate_policy_info)) > 1"),
        summary: "The workers of {{ $labels.job }} decide under {{ $value }} different policies.",
        description: "What a call gets depends on the partition of its thread. A rollout has stopped half way, or a worker has another \
                      configuration.",
    }
}

fn panics() -> Alert {
    Alert {
        name: "TollgateThreadPanics",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({WORKER}) (increase(tollgate_thread_panics_total[{GROWTH_WINDOW}])) > 0"),
        summary: "A thread of the worker {{ $labels.instance }} has panicked.",
        description: "It is started over where that can be, and its partitions wait meanwhile. It is a fault of the program: please report it.",
    }
}

fn member_restarts() -> Alert {
    Alert {
        name: "TollgateMemberRestarts",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({WORKER}) (increase(tollgate_member_restarts_total[{GROWTH_WINDOW}])) > 0"),
        summary: "A group member of the worker {{ $labels.instance }} has failed and started over.",
        description: "Its partitions wait until it is back or another member has them. Nothing is lost.",
    }
}

fn log_lost() -> Alert {
    Alert {
        name: "TollgateLogLinesLost",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({WORKER}) (increase(tollgate_lost_log_lines_total[{GROWTH_WINDOW}])) > 0"),
        summary: "The worker {{ $labels.instance }} has lost lines of its log.",
        description: "Whoever reads its stderr is too slow, or gone. Decisions go on, but what the lines said is lost.",
    }
}

fn secrets_refused() -> Alert {
    let refused = growth("tollgate_secret_changes_total{outcome=\"refused\"}", GROWTH_WINDOW);
    Alert {
        name: "TollgateSecretsRefused",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({WORKER}) (\n  {refused}\n)"),
        summary: "The brokers refuse the changed secrets of the worker {{ $labels.instance }}.",
        description: "It goes on with the secrets before. Once these are revoked, its connections end, and nothing is decided.",
    }
}
