//! An episode: what a subject has coming from one rule, from the first firing until it is down from the ladder.

use tollgate_core::engine::wire::layout;
use tollgate_json::digest::Fingerprint;

/// A subject on the ladder of a rule. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Episode {
    /// The id of its alerts.
    pub alert_id: Fingerprint,
    /// The step that it is on, counted from 1.
    pub step: u32,
    /// When it goes a step down, unless the rule fires before.
    pub descends_ms: i64,
    /// The end of the suspension, if there was one.
    pub until_ms: Option<i64>,
    /// The latest firing that suspended it.
    pub suspended_ms: Option<i64>,
    /// The latest firing that raised an alert.
    pub alerted_ms: i64,
    /// How many firings since then have raised none.
    pub suppressed: u32,
}

layout! {
    Episode { alert_id, step, descends_ms, until_ms, suspended_ms, alerted_ms, suppressed }
}
