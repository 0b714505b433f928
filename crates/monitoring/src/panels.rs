//! The dashboard's panels, by the questions of the rules: `panels.yml`, read for the dashboard and for tests.

use yaml_rust2::{Yaml, YamlLoader};

use crate::rules::text;

/// How a panel shows its series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Lines over time.
    Lines,
    /// Areas over time, one on the other.
    Stack,
    /// The latest value, large.
    Number,
    /// The latest value of each series, one a row.
    Table,
}

/// A query of a panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The expression in PromQL. [`WORKERS`] stands for the workers that are chosen at the top of the dashboard.
    pub expression: String,
    /// The name of its series, with `{{label}}` for a label's value.
    pub legend: String,
}

/// What stands in an expression for the workers that are chosen at the top of the dashboard.
pub const WORKERS: &str = "@";

/// A panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub description: String,
    /// How it shows its series.
    pub look: Look,
    /// The unit, as Grafana names it.
    pub unit: String,
    /// The width in columns, of which a line has 24.
    pub width: u32,
    /// The queries, in order.
    pub queries: Vec<Query>,
    /// From which value on it is shown in red.
    pub red_from: Option<f64>,
}

/// A question with the panels that answer it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The question.
    pub question: String,
    /// The panels, from left to right and top to bottom.
    pub panels: Vec<Panel>,
}

/// Returns all rows, from top to bottom. A file that is no YAML has none.
#[must_use]
pub fn rows() -> Vec<Row> {
    let file = YamlLoader::load_from_str(include_str!("panels.yml")).unwrap_or_default();
    let row = |row: &Yaml| Row { question: text(&row["question"]), panels: list(&row["panels"]).map(panel).collect() };
    file.iter().flat_map(list).map(row).collect()
}

fn list(yaml: &Yaml) -> impl Iterator<Item = &Yaml> {
    yaml.as_vec().into_iter().flatten()
}

fn panel(yaml: &Yaml) -> Panel {
    let (show, queries) = (&yaml["show"], yaml["queries"].as_hash().into_iter().flatten());
    Panel {
        title: text(&yaml["title"]),
        description: text(&yaml["description"]),
        look: match show["look"].as_str() {
            Some("stack") => Look::Stack,
            Some("number") => Look::Number,
            Some("table") => Look::Table,
            _ => Look::Lines,
        },
        unit: text(&show["unit"]),
        width: show["width"].as_i64().and_then(|width| u32::try_from(width).ok()).unwrap_or_default(),
        queries: queries.map(|(legend, expression)| Query { expression: text(expression), legend: text(legend) }).collect(),
        red_from: show["red_from"].as_f64(),
    }
}
