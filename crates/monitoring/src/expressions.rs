//! All expressions that Prometheus is asked: those of the rules and those of the panels.

use crate::dashboard;
use crate::panels::rows;
use crate::rules::groups;

/// Returns every expression of rules and panels, with where it stands. What the dashboard's variables stand for is put in.
pub fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for group in groups() {
        found.extend(group.recordings.into_iter().map(|rule| (rule.name, rule.expression)));
        found.extend(group.alerts.into_iter().map(|alert| (alert.name, alert.expression)));
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
