//! The memory limit: who is forgotten when a partition knows as many subjects as it may.

use super::Counters;
use crate::alerts::alert::Alert;
use crate::outcome::{Action, FoldContext};
use crate::rules::Level;
use crate::subjects::{SlotKey, Subject};

/// After how long another alert about the memory limit is raised, in milliseconds of the partition's time.
const LIMIT_ALERT_MS: i64 = 3_600_000;

impl Counters {
    /// Forgets those who are farthest from any threshold while there are more subjects than there may be. The newcomer stays until the next
    /// one comes: whoever fills the memory with subjects that are closer to a threshold must not get nobody new counted any more.
    pub(crate) fn keep_within_limit(&mut self, newcomer: SlotKey, context: &mut FoldContext) {
        let subjects_max = self.program.rules().subjects_max;
        let mut dropped = 0;
        while self.state.subjects.len() > subjects_max {
            let Some(at) = self.state.subjects.farthest(newcomer) else { break };
            let Some(key) = self.state.subjects.key(at) else { break };
            if let Ok(subject) = Subject::read(self.state.subjects.packed(at)) {
                self.alerts.census.active(key.kind, subject.tenant, subject.active_ms, None);
            }
            self.state.subjects.remove(at);
            dropped += 1;
        }
        if dropped == 0 {
            return;
        }
        context.folded.counts.subjects_dropped += dropped;
        self.state.departures.evicted += dropped;
        let at_ms = context.now_ms.unwrap_or_default();
        let is_due = |last_ms: i64| at_ms.saturating_sub(last_ms) >= LIMIT_ALERT_MS;
        if self.state.own.limit_alerted_ms.is_none_or(is_due) {
            self.state.own.limit_alerted_ms = Some(at_ms);
            let key = format!("partition/{}", context.partition);
            let message =
                format!("the partition knows {subjects_max} subjects, as many as it may: those farthest from any threshold are forgotten");
            let alert = Alert::about(&key, at_ms, Level::High, Action::MemoryLimit, message);
            context.folded.alerts.push(alert.record(key, false));
        }
    }
}
