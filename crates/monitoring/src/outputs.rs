//! Every file that is written from here.

use crate::{dashboard, rules};

/// Returns each file, by its path in the repository, with its text. A chart can read only what is in its folder, so it has copies.
#[must_use]
pub fn outputs() -> Vec<(&'static str, String)> {
    let dashboard = dashboard::text();
    vec![
        ("helm/tollgate/files/alerts.yaml", rules::TEXT.to_owned()),
        ("config/grafana/tollgate.json", dashboard.clone()),
        ("helm/tollgate/files/dashboard.json", dashboard),
    ]
}
