//! Alerts and recording rules, by the question that they answer.

mod abuse;
mod answered;
mod behind;
mod safe;
mod stopped;

/// How soon somebody has to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Now, at any hour: callers wait, or something runs that nobody has allowed.
    Critical,
    /// Within the day.
    Warning,
}

impl Severity {
    /// Returns the value of the label `severity`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// An alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Its name, which is also the heading of its section in the runbook.
    pub name: &'static str,
    /// How soon somebody has to look.
    pub severity: Severity,
    /// How long the expression has to hold, as Prometheus writes durations; `0m` for at once.
    pub holds: &'static str,
    /// The expression, in PromQL.
    pub expression: String,
    /// What is wrong, in one sentence. It may name labels and the value, as Prometheus' templates do.
    pub summary: &'static str,
    /// What follows from it, for whoever is woken.
    pub description: &'static str,
}

/// A recording rule: an expression that others use under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The name of the series, by Prometheus' custom: labels, metric, operation.
    pub name: String,
    /// The expression, in PromQL.
    pub expression: String,
}

/// The rules that answer one question of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The name of the group in the file.
    pub name: &'static str,
    /// The question.
    pub question: &'static str,
    /// What the alerts use. Prometheus evaluates it before them.
    pub recordings: Vec<Recording>,
    /// The alerts.
    pub alerts: Vec<Alert>,
}

/// Returns all rules.
#[must_use]
pub fn groups() -> Vec<Group> {
    vec![answered::group(), stopped::group(), abuse::group(), behind::group(), safe::group()]
}

/// Returns all alerts, in the order of the file.
#[must_use]
pub fn alerts() -> Vec<Alert> {
    groups().into_iter().flat_map(|group| group.alerts).collect()
}
