//! Every file that is written from here.

use crate::{dashboard, rule_file};

/// Returns each file, by its path in the repository, with its text. A chart can read only what is in its folder, so it has copies.
#[must_use]
pub fn outputs() -> Vec<(&'static str, String)> {
    let (rules, dashboard) = (rule_file::text(), dashboard::text());
    vec![
        ("config/prometheus/alerts.yml", rules.clone()),
        ("helm/tollgate/files/alerts.yaml", rules),
        ("config/grafana/tollgate.json", dashboard.clone()),
        ("helm/tollgate/files/dashboard.json", dashboard),
    ]
}
