//! The dashboard's panels, by the questions of the rules.

mod abuse;
mod answered;
mod behind;
mod glance;
mod machine;
mod safe;
mod stopped;

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
    pub title: &'static str,
    /// How to read it.
    pub description: &'static str,
    /// How it shows its series.
    pub look: Look,
    /// The unit, as Grafana names it.
    pub unit: &'static str,
    /// The width in columns, of which a line has 24.
    pub width: u32,
    /// The queries, in order.
    pub queries: Vec<Query>,
    /// From which value on it is shown in red.
    pub red_from: Option<f64>,
}

impl Panel {
    /// Returns a panel of lines.
    #[must_use]
    pub fn new(title: &'static str, description: &'static str, unit: &'static str, width: u32) -> Self {
        Self { title, description, look: Look::Lines, unit, width, queries: Vec::new(), red_from: None }
    }

    /// Returns the panel with another look.
    #[must_use]
    pub fn look(self, look: Look) -> Self {
        Self { look, ..self }
    }

    /// Returns the panel, red from a value on.
    #[must_use]
    pub fn red_from(self, value: f64) -> Self {
        Self { red_from: Some(value), ..self }
    }

    /// Returns the panel with one more query.
    #[must_use]
    pub fn query(mut self, legend: impl Into<String>, expression: impl Into<String>) -> Self {
        self.queries.push(Query { expression: expression.into(), legend: legend.into() });
        self
    }

    /// Returns the panel with the rate of a counter, summed by these labels.
    #[must_use]
    pub fn rate(self, legend: &'static str, labels: &str, counter: &str) -> Self {
        self.query(legend, rate(labels, counter))
    }

    /// Returns the panel with the rate of a counter, summed by these labels, which are the legend.
    #[must_use]
    pub fn rate_by(self, labels: &str, counter: &str) -> Self {
        let legend: Vec<_> = labels.split(", ").map(|label| format!("{{{{{label}}}}}")).collect();
        self.query(legend.join(" "), rate(labels, counter))
    }

    /// Returns the panel with a quantile of a histogram, by these labels. `histogram` may hold matchers behind `{@`.
    #[must_use]
    pub fn quantile(self, legend: &'static str, quantile: f64, labels: &str, histogram: &str) -> Self {
        let by = if labels.is_empty() { "le".to_owned() } else { format!("le, {labels}") };
        let (name, matchers) = histogram.split_once('{').unwrap_or((histogram, "@}"));
        let rate = format!("sum by ({by}) (rate({name}_bucket{{{matchers}[$__rate_interval]))");
        self.query(legend, format!("histogram_quantile({quantile}, {rate})"))
    }
}

/// Returns the rate of a counter of the chosen workers, summed by these labels. `counter` may hold matchers behind `{@`.
fn rate(labels: &str, counter: &str) -> String {
    let selector = if counter.contains('{') { counter.to_owned() } else { format!("{counter}{{{WORKERS}}}") };
    let by = if labels.is_empty() { String::new() } else { format!(" by ({labels})") };
    format!("sum{by} (rate({selector}[$__rate_interval]))")
}

/// A question with the panels that answer it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The question.
    pub question: &'static str,
    /// The panels, from left to right and top to bottom.
    pub panels: Vec<Panel>,
}

/// Returns all rows, from top to bottom.
#[must_use]
pub fn rows() -> Vec<Row> {
    vec![glance::row(), answered::row(), stopped::row(), abuse::row(), behind::row(), safe::row(), machine::row()]
}
