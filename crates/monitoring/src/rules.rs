//! Alerts and recording rules, by the question that they answer: `config/prometheus/alerts.yml`, read for tests and for the runbook's table.

use yaml_rust2::{Yaml, YamlLoader};

/// The rules as Prometheus reads them. The comment before a group is the question that the group answers.
pub const TEXT: &str = include_str!("../../../config/prometheus/alerts.yml");

/// An alert. A field that the file does not have is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The alert's name, which is also the heading of its section in the runbook.
    pub name: String,
    /// How soon somebody has to look: `critical` (now, at any hour) or `warning` (within the day).
    pub severity: String,
    /// How long the expression has to hold, as Prometheus writes durations; `0m` for at once.
    pub holds: String,
    /// The expression, in PromQL.
    pub expression: String,
    /// What is wrong, in one sentence. The sentence may name labels and the value, as Prometheus' templates do.
    pub summary: String,
    /// What follows from the alert, for whoever is woken.
    pub description: String,
    /// The link to the alert's section of the runbook.
    pub runbook_url: String,
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
    pub name: String,
    /// The question.
    pub question: String,
    /// What the alerts use. Prometheus evaluates the recordings before the alerts.
    pub recordings: Vec<Recording>,
    /// The alerts.
    pub alerts: Vec<Alert>,
}

/// Returns all rules, in the order of the file. A file that is no YAML has none.
#[must_use]
pub fn groups() -> Vec<Group> {
    let file = YamlLoader::load_from_str(TEXT).unwrap_or_default();
    let groups = file.first().map(|file| &file["groups"]).and_then(Yaml::as_vec);
    groups.into_iter().flatten().map(group).collect()
}

/// Returns all alerts, in the order of the file.
#[must_use]
pub fn alerts() -> Vec<Alert> {
    groups().into_iter().flat_map(|group| group.alerts).collect()
}

fn group(yaml: &Yaml) -> Group {
    let name = text(&yaml["name"]);
    let rules = || yaml["rules"].as_vec().into_iter().flatten();
    let recordings = rules().filter(|rule| !rule["record"].is_badvalue());
    let alerts = rules().filter(|rule| !rule["alert"].is_badvalue());
    Group {
        question: question(&name),
        name,
        recordings: recordings.map(|rule| Recording { name: text(&rule["record"]), expression: text(&rule["expr"]) }).collect(),
        alerts: alerts.map(alert).collect(),
    }
}

fn alert(yaml: &Yaml) -> Alert {
    let annotation = |name: &str| text(&yaml["annotations"][name]);
    Alert {
        name: text(&yaml["alert"]),
        severity: text(&yaml["labels"]["severity"]),
        holds: text(&yaml["for"]),
        expression: text(&yaml["expr"]),
        summary: annotation("summary"),
        description: annotation("description"),
        runbook_url: annotation("runbook_url"),
    }
}

pub(crate) fn text(yaml: &Yaml) -> String {
    yaml.as_str().unwrap_or_default().to_owned()
}

/// Returns the comment on the line before the group.
fn question(group: &str) -> String {
    let lines: Vec<&str> = TEXT.lines().map(str::trim).collect();
    let pair = lines.windows(2).find(|pair| pair.get(1) == Some(&&*format!("- name: {group}")));
    pair.and_then(|pair| pair.first()?.strip_prefix("# ")).unwrap_or_default().to_owned()
}
