//! What is stopped, and why?

use super::{Alert, Group, Recording, Severity};
use crate::terms::{DEPLOYMENT, GROWTH_WINDOW, growth};

/// The stops of a tool for each tool call of the deployment, within the last minutes and over the day before.
const NOW: &str = "namespace_job_decided_by_tool:tollgate_stops:ratio_rate10m";
const BEFORE: &str = "namespace_job_decided_by_tool:tollgate_stops:ratio_rate1d";
/// A spike is so many times the share of the day before …
const TIMES: u32 = 3;
/// … and so many stops within ten minutes.
const STOPS_MIN: u32 = 20;

/// Returns the rules.
pub(super) fn group() -> Group {
    Group {
        name: "tollgate-stopped",
        question: "What is stopped, and why?",
        recordings: vec![
            Recording { name: NOW.to_owned(), expression: stops_per_call("10m") },
            // The hour before is left out, so that a spike does not become what it is compared with.
            Recording { name: BEFORE.to_owned(), expression: stops_per_call("1d] offset 1h") },
        ],
        alerts: vec![halts(), denials(), failing_closed(), dead_letters(), store_full()],
    }
}

/// Returns the stops of each tool for each tool call of the deployment. The window may be followed by its offset.
fn stops_per_call(window: &str) -> String {
    let range = if window.contains(']') { window.to_owned() } else { format!("{window}]") };
    format!(
        "sum by ({DEPLOYMENT}, decided_by, tool) (rate(tollgate_stops_total[{range}))\n/ on ({DEPLOYMENT}) group_left\n\
         sum by ({DEPLOYMENT}) (rate(tollgate_events_consumed_total{{type=\"tool_call\"}}[{range}))"
    )
}

fn spike(decided_by: &str) -> String {
    let of = format!("{{decided_by=\"{decided_by}\"}}");
    format!(
        "(\n  {NOW}{of}\n  unless\n  {NOW}{of} <= {TIMES} * {BEFORE}{of}\n)\nand\n\
         sum by ({DEPLOYMENT}, decided_by, tool) (increase(tollgate_stops_total{of}[10m])) >= {STOPS_MIN}"
    )
}

fn halts() -> Alert {
    Alert {
        name: "TollgateHaltsSpiking",
        severity: Severity::Warning,
        holds: "5m",
        expression: spike("loop"),
        summary: "Agents are stuck on {{ $labels.tool }}: its stops are {{ $value | humanizePercentage }} of all tool calls.",
        description: "The loop controller stops this tool more than three times as often as over the day before. The tool is likely to be broken, and \
                      agents repeat what fails.",
    }
}

fn denials() -> Alert {
    Alert {
        name: "TollgateDenialsSpiking",
        severity: Severity::Warning,
        holds: "5m",
        expression: spike("guardrail"),
        summary: "Policy denies {{ $labels.tool }}: its denials are {{ $value | humanizePercentage }} of all tool calls.",
        description: "Guardrail providers deny this tool more than three times as often as over the day before: a policy, a passport or what agents try \
                      has changed.",
    }
}

fn failing_closed() -> Alert {
    let calls = |of: &str| format!("sum by ({DEPLOYMENT}, provider) (rate(tollgate_guardrail_provider_calls_total{of}[5m]))");
    Alert {
        name: "TollgateFailingClosed",
        severity: Severity::Critical,
        holds: "2m",
        expression: format!("{}\n/\n{} > 0.05", calls("{outcome=\"failed_closed\"}"), calls("")),
        summary: "{{ $labels.provider }} fails on {{ $value | humanizePercentage }} of the calls that it is asked about, and they are blocked.",
        description: "Agents cannot run tools that policy may allow, because the provider gives no answer.",
    }
}

fn dead_letters() -> Alert {
    let letters =
        |function: &str| format!("sum by ({DEPLOYMENT}) ({function}(tollgate_events_consumed_total{{type=\"unreadable\"}}[10m]))");
    Alert {
        name: "TollgateDeadLetters",
        severity: Severity::Warning,
        holds: "5m",
        expression: format!(
            "{}\n/\nsum by ({DEPLOYMENT}) (rate(tollgate_events_consumed_total[10m])) > 0.001\nand\n{} >= 5",
            letters("rate"),
            letters("increase")
        ),
        summary: "{{ $value | humanizePercentage }} of the records of {{ $labels.job }} cannot be read.",
        description: "They are in the dead letter topic. Whoever awaits a verdict on one gets a block, if the thread can be told from it, and \
                      otherwise none.",
    }
}

fn store_full() -> Alert {
    let full = growth("tollgate_verdicts_total{code=\"thread_store_full\"}", GROWTH_WINDOW);
    Alert {
        name: "TollgateThreadStoreFull",
        severity: Severity::Warning,
        holds: "0m",
        expression: format!("sum by ({DEPLOYMENT}) (\n  {full}\n)"),
        summary: "{{ $labels.job }} blocks calls because it cannot remember more stopped threads.",
        description: "A partition's store is full of threads that hold a stop, or a tenant has used up its share. Calls of other threads are \
                      blocked with thread_store_full.",
    }
}
