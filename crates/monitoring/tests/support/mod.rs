//! What several tests of this package need.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::path::PathBuf;
use std::process::{Command, Output};

use tollgate::metrics::{CATALOG, PROCESS, Spec};
use tollgate_monitoring::dashboard;
use tollgate_monitoring::panels::rows;
use tollgate_monitoring::rules::groups;

/// Returns the path of a file of the repository.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Returns the text of a file of the repository.
pub fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Fails with all offenders at once.
pub fn assert_none(rule: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
}

/// Returns every expression of rules and panels, with where it stands. What the dashboard's variables stand for is put in.
pub fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for group in groups() {
        found.extend(group.recordings.into_iter().map(|rule| (rule.name, rule.expression)));
        found.extend(group.alerts.into_iter().map(|alert| (alert.name.to_owned(), alert.expression)));
    }
    for row in rows() {
        for panel in &row.panels {
            found.extend(
                panel.queries.iter().map(|query| (format!("panel {}", panel.title), with_variables(&dashboard::expression(query)))),
            );
        }
    }
    found
}

/// Returns an expression of the dashboard as Grafana sends it when all workers are chosen.
pub fn with_variables(expression: &str) -> String {
    let chosen = [("$namespace", ".*"), ("$job", ".*"), ("$instance", ".*"), ("$__rate_interval", "1m"), ("$__range", "1h")];
    chosen.iter().fold(expression.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// Returns the metrics of the code, those of the process included.
pub fn catalog() -> impl Iterator<Item = &'static Spec> {
    CATALOG.iter().chain(PROCESS)
}

/// Runs `promtool` and returns its output.
pub fn promtool(arguments: &[&str]) -> Output {
    let command = Command::new("promtool").args(arguments).current_dir(path("")).output();
    command.unwrap_or_else(|error| panic!("promtool: {error}; Debian's package `prometheus` has it"))
}
