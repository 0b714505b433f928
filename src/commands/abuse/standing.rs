//! What the abuse stage had counted of a subject at its last checkpoint.

use serde::Serialize;

use tollgate_core::abuse::AbuseRules;

use super::super::topics::Topics;
use super::subject::Resolved;

/// What was counted of a subject.
#[derive(Debug, Serialize)]
pub(super) struct Standing {
    pub(super) subject: String,
    /// How many signals are remembered.
    pub(super) signals: u64,
    pub(super) rules: Vec<Counted>,
}

/// What a rule has counted.
#[derive(Debug, Serialize)]
pub(super) struct Counted {
    pub(super) rule: String,
    pub(super) group: String,
    pub(super) count: String,
    pub(super) threshold: String,
    pub(super) step: Option<u32>,
    pub(super) until_ms: Option<i64>,
}

pub(super) fn read(_: &Topics<'_>, _: &Resolved, _: &AbuseRules) -> anyhow::Result<Vec<Standing>> {
    Ok(Vec::new())
}
