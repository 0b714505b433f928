//! The monitoring of Tollgate: the Prometheus rules, the Grafana dashboard and the runbook's table, and their tests.
//!
//! | module | what |
//! |---|---|
//! | [`rules`] | alerts and recording rules, by the question that they answer: `config/prometheus/alerts.yml` |
//! | [`panels`] | the dashboard's panels, by the same questions: `panels.yml` |
//! | [`dashboard`] | the panels, laid out, as Grafana reads them |
//! | [`runbook`] | the table at the head of the runbook, and the links to its sections |
//! | [`expressions`] | all expressions of rules and panels |
//! | [`outputs`] | every file that is written from here |
//!
//! `TOLLGATE_UPDATE_FIXTURES=1 cargo test -p tollgate-monitoring` writes the files anew.

pub mod dashboard;
pub mod expressions;
pub mod outputs;
pub mod panels;
pub mod rules;
pub mod runbook;
