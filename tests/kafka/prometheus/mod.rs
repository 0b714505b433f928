//! Tests the rules and the dashboard on a real Prometheus that scrapes a real worker: what they ask for is there, and alerts fire.
mod server;
mod traffic;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde_json::Value;
use server::Prometheus;
use tollgate_monitoring::expressions::expressions;
use tollgate_monitoring::rules::groups;
use tollgate_testkit::{Cluster, eventually};
use tollgate_worker::metrics::{CATALOG, values};

/// Metrics that this run gives no reason to show. Each has labels, and a series appears when there is something to say. Files that may be
/// open are without a limit on some machines.
#[rustfmt::skip]
const SILENT: [&str; 26] = [
    "tollgate_serve_requests_total", "tollgate_serve_unanswered_total", "tollgate_responses_in_doubt_total",
    "tollgate_shadow_flips_total", "tollgate_shadow_publish_failures_total", "tollgate_secret_changes_total",
    "tollgate_traces_dropped_total", "process_max_fds", "tollgate_departed_threads_total", "tollgate_publish_failures_total",
    "tollgate_replies_total", "tollgate_restore_eta_seconds", "tollgate_restore_failures_total", "tollgate_restore_remaining_records",
    "tollgate_controls_applied_total", "tollgate_controls", "tollgate_abuse_alerts_total", "tollgate_abuse_exempt_total",
    "tollgate_abuse_firings_total", "tollgate_abuse_paused_rules", "tollgate_abuse_paused_total", "tollgate_abuse_sources_total",
    "tollgate_abuse_suppressed_total", "tollgate_abuse_suspensions_total", "tollgate_abuse_warming_rules",
    "tollgate_serve_certificate_expiry_timestamp_seconds",
];

/// What the traffic gives reason for, without the times that alerts wait.
#[rustfmt::skip]
const FIRING: [&str; 8] = [
    "TollgateCircuitOpen", "TollgateControlsRejected", "TollgateDeadLetters", "TollgateDenialsSpiking", "TollgateFailOpen",
    "TollgateHaltsSpiking", "TollgateVerdictsLateFast", "TollgateVerdictsLateSlow",
];

/// What a busy machine may give reason for besides.
const LATE: [&str; 6] = [
    "TollgateAbuseLagGrowing",
    "TollgateCommitsFailing",
    "TollgateControlsBehind",
    "TollgateLagGrowing",
    "TollgateSignalSourceSilent",
    "TollgateSignalsLate",
];

pub(crate) fn rules_and_panels_get_what_they_ask_for(cluster: &Cluster) -> Result<()> {
    let (deployment, worker) = traffic::start(cluster)?;
    let prometheus = Prometheus::start(worker.admin_port())?;
    for round in 0..3 {
        traffic::send(cluster, &deployment, round)?;
        // Counters grow from one scrape to another.
        let count = ((round + 1) * traffic::EVENTS) as f64;
        eventually(|| {
            let counted = prometheus.value("sum(tollgate_events_consumed_total)")?.unwrap_or_default();
            ensure!(counted >= count, "{counted} of {count} events are scraped");
            Ok(())
        })?;
    }
    let expected: BTreeSet<String> = FIRING.iter().map(|name| (*name).to_owned()).collect();
    eventually(|| {
        let mut firing = prometheus.firing()?;
        firing.retain(|name| !LATE.contains(&name.as_str()));
        ensure!(firing == expected, "{firing:?} fire instead of {expected:?}");
        Ok(())
    })?;
    for holds in [every_rule_is_evaluated, every_query_is_answered, series_are_those_of_the_list, sentences_are_whole] {
        eventually(|| holds(&prometheus))?;
    }
    worker.kill()?;
    eventually(|| {
        let firing = prometheus.firing()?;
        let is_seen = ["TollgateNoWorkers", "TollgateWorkerDown"].iter().all(|name| firing.contains(*name));
        ensure!(is_seen, "a worker is gone, and only {firing:?} fire");
        Ok(())
    })
}

fn every_rule_is_evaluated(prometheus: &Prometheus) -> Result<()> {
    let answer = prometheus.get("/api/v1/rules", &[])?;
    let rules: Vec<&Value> = answer["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    let sick: Vec<_> = rules.iter().filter(|rule| rule["health"] != "ok" || rule["lastError"].is_string()).collect();
    let count: usize = groups().iter().map(|group| group.recordings.len() + group.alerts.len()).sum();
    ensure!(rules.len() == count && sick.is_empty(), "{} rules, and these are not well: {sick:?}", rules.len());
    Ok(())
}

fn every_query_is_answered(prometheus: &Prometheus) -> Result<()> {
    let mut offenders = Vec::new();
    for (place, expression) in expressions() {
        let found = match prometheus.query(&expression) {
            Ok(found) => found,
            Err(error) => {
                offenders.push(format!("{place}: {error}"));
                continue;
            }
        };
        // An alert that does not fire is empty, and so is a panel of what did not happen.
        let may_be_empty = !place.starts_with("panel ") || SILENT.iter().any(|name| expression.contains(name));
        if found.is_empty() && !may_be_empty {
            offenders.push(format!("{place}: no series for {expression}"));
        }
    }
    is_none("a query is answered, and a panel shows something", &offenders)
}

/// Every metric is there, and no label has a value that the list does not know.
fn series_are_those_of_the_list(prometheus: &Prometheus) -> Result<()> {
    let series = prometheus.get("/api/v1/series", &[("match[]", r#"{__name__=~"tollgate_.+"}"#)])?;
    let series: Vec<&Value> = series.as_array().unwrap().iter().collect();
    let mut offenders = Vec::new();
    let names: BTreeSet<&str> = series.iter().map(|series| series["__name__"].as_str().unwrap()).collect();
    for spec in CATALOG {
        let is_there = ["", "_count"].iter().any(|suffix| names.contains(format!("{}{suffix}", spec.name).as_str()));
        if !is_there && !SILENT.contains(&spec.name) {
            offenders.push(format!("{} has no series", spec.name));
        }
        for labels in series.iter().filter(|labels| labels["__name__"] == spec.name) {
            for label in spec.labels {
                let value = labels[*label].as_str().unwrap_or_default();
                if value.is_empty() || !values(spec.name, label).may_be(value) {
                    offenders.push(format!("{} has {label}={value:?}", spec.name));
                }
            }
        }
    }
    is_none("what a worker shows is in the list of metrics and of values", &offenders)
}

fn sentences_are_whole(prometheus: &Prometheus) -> Result<()> {
    let answer = prometheus.get("/api/v1/alerts", &[])?;
    for alert in answer["alerts"].as_array().unwrap() {
        for name in ["summary", "description", "runbook_url"] {
            let text = alert["annotations"][name].as_str().unwrap_or_default();
            let is_whole = !text.is_empty() && ["<error", "<no value>", "{{", "  ", " ."].iter().all(|hole| !text.contains(hole));
            ensure!(is_whole, "{}: {name} is {text:?}", alert["labels"]["alertname"]);
        }
    }
    Ok(())
}

/// Fails with all offenders at once.
fn is_none(rule: &str, offenders: &[String]) -> Result<()> {
    ensure!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
    Ok(())
}
