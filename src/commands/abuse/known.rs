//! What is known of a subject, from the topics alone.

use serde_json::{Value, json};

use tollgate_core::decide::controls::SubjectState;
use tollgate_core::decide::signal::SubjectKey;

use tollgate_config::settings::Settings;

use super::alerts::{self, Alert};
use super::subject_counts::{self, SubjectCounts};
use super::switches::{self, Switches};
use crate::commands::shared::Resolved;
use crate::commands::shared::{now_ms, stamp};
use tollgate_operations::Topics;

/// What is known of a subject.
#[derive(Debug)]
pub(super) struct SubjectReport {
    pub(super) subject: Resolved,
    /// What control records say, for each name of the subject that one is about.
    pub(super) switches: Vec<(SubjectKey, Switches)>,
    /// Its alerts, the latest first.
    pub(super) alerts: Vec<Alert>,
    /// What the abuse stage had counted at its last checkpoint; `None` before its first.
    pub(super) counts: Option<Vec<SubjectCounts>>,
    /// The time of the host, in milliseconds since the epoch.
    pub(super) now_ms: i64,
}

impl SubjectReport {
    /// Reads the topics.
    pub(super) fn read(subject: Resolved, settings: &Settings) -> anyhow::Result<Self> {
        let topics = Topics::new(&settings.kafka)?;
        let all = switches::read(&topics)?;
        let named = subject.keys.iter().map(|key| (*key, all.get(*key)));
        let switches = named.filter(|(_, switches)| *switches != Switches::default()).collect();
        let alerts = alerts::read(&topics, |alert| alert.subject().is_some_and(|key| subject.is(key)))?.latest_first;
        let counts = subject_counts::read(&topics, &subject, &settings.abuse.rules)?;
        Ok(Self { subject, switches, alerts, counts, now_ms: now_ms() })
    }

    /// Returns the alert with this id.
    pub(super) fn alert(&self, alert_id: Option<&str>) -> Option<&Alert> {
        let alert_id = alert_id?;
        self.alerts.iter().find(|alert| alert.text("alert_id") == alert_id)
    }

    /// Returns everything as JSON. `verdict` is the sentence for people.
    pub(super) fn to_json(&self, verdict: &str, alerts_max: usize) -> Value {
        let is_suspended = self.switches.iter().any(|(_, said)| said.is_suspended_at(self.now_ms));
        json!({
            "subject": self.subject.name(),
            "verdict": verdict,
            "suspended": is_suspended,
            "controls": self.switches.iter().flat_map(|(key, said)| controls(*key, said)).collect::<Vec<_>>(),
            "alerts_total": self.alerts.len(),
            "alerts": self.alerts.iter().take(alerts_max).map(|alert| &alert.fields).collect::<Vec<_>>(),
            "state": self.counts,
        })
    }
}

/// Returns the controls of a subject as JSON: who says it, and what.
pub(super) fn controls(key: SubjectKey, switches: &Switches) -> Vec<Value> {
    let mut lines = Vec::new();
    let name = key.to_string();
    if let Some(said) = &switches.operators {
        let (state, holds) = match said {
            SubjectState::Suspended(holds) => ("suspended", holds),
            SubjectState::Exempt(holds) => ("exempt", holds),
        };
        let until = holds.until_ms.map(stamp);
        lines.push(json!({"subject": name, "by": "operator", "state": state, "until": until, "reason": holds.reason}));
    }
    if let Some(said) = &switches.machines {
        lines.push(json!({"subject": name, "by": "rule", "state": "suspended", "until": stamp(said.until_ms), "rule": said.rule,
            "step": said.step, "alert_id": said.alert_id}));
    }
    if let Some(code) = switches.unreadable {
        lines.push(json!({"subject": name, "by": "unreadable", "state": "suspended", "until": null, "code": code.as_str()}));
    }
    lines
}
