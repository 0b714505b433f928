//! Controls: the one record that the abuse stage has for a subject, which says until when it is suspended.

use rustc_hash::FxHashMap;

use tollgate_core::decide::signal::SubjectKey;
use tollgate_json::ObjectWriter;
use tollgate_json::digest::Fingerprint;

use crate::alerts::alert::time;
use crate::outcome::{ControlRecord, Folded};
use crate::program::Program;
use crate::subjects::Subject;

/// The suspension of a subject that lasts longest, of all that rules have put on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspension<'r> {
    pub until_ms: i64,
    pub rule: &'r str,
    pub step: u32,
    pub alert_id: Fingerprint,
}

/// Returns the suspension of a subject that lasts longest, if it is not over by `now_ms`. Among equals it is that of the counter that was made
/// first.
pub(crate) fn longest<'r>(subject: &mut Subject<'_>, program: &'r Program, now_ms: Option<i64>) -> Option<Suspension<'r>> {
    let mut longest: Option<Suspension<'r>> = None;
    for at in 0..subject.counters.len() {
        let Some(counter) = subject.counters.get(at).filter(|counter| counter.is_on_ladder) else { continue };
        let Some((_, rule)) = program.numbered(counter.rule) else { continue };
        let Some(episode) = subject.open(at).ok().and_then(|opened| opened.episode.as_deref()) else { continue };
        let Some(until_ms) = episode.until_ms.filter(|until_ms| now_ms.is_none_or(|now_ms| *until_ms > now_ms)) else { continue };
        if longest.is_none_or(|longest| until_ms > longest.until_ms) {
            longest = Some(Suspension { until_ms, rule: &rule.id, step: episode.step, alert_id: episode.alert_id });
        }
    }
    longest
}

/// Brings a subject's control up to date. Nothing is written if it says already what it has to. Returns whether it was written.
pub(crate) fn update(subject: &mut Subject<'_>, key: &SubjectKey, program: &Program, now_ms: Option<i64>, folded: &mut Folded) -> bool {
    let longest = longest(subject, program, now_ms);
    let until_ms = longest.map(|longest| longest.until_ms);
    if key.kind.subject_kind().is_none() || subject.control_until_ms == until_ms {
        return false;
    }
    subject.control_until_ms = until_ms;
    folded.controls.push(record(key, longest.as_ref()));
    true
}

/// Returns the tombstone of a subject's control, whether there is one or not; `None` for what cannot be suspended.
pub(crate) fn lifted(key: &SubjectKey) -> Option<ControlRecord> {
    key.kind.subject_kind().map(|_| record(key, None))
}

/// Returns the record of a subject's suspension, or the tombstone of it.
fn record(key: &SubjectKey, suspension: Option<&Suspension<'_>>) -> ControlRecord {
    let value = suspension.map(|suspension| {
        let mut value = Vec::with_capacity(320);
        let mut object = ObjectWriter::begin(&mut value);
        object.plain("type", &[b"subject"]);
        object.plain("kind", &[key.kind.as_str().as_bytes()]);
        object.plain("hash", &[&key.hash.hex()]);
        object.plain("state", &[b"suspended"]);
        time(&mut object, "until", Some(suspension.until_ms));
        object.text("rule", suspension.rule);
        object.number("step", suspension.step);
        object.plain("alert_id", &[&suspension.alert_id.hex()]);
        object.end();
        value
    });
    ControlRecord { key: format!("subject/{key}/abuse"), value }
}

impl Folded {
    /// Leaves the last control of each subject.
    pub(crate) fn settle_controls(&mut self) {
        let mut last = FxHashMap::<&str, usize>::default();
        for (at, control) in self.controls.iter().enumerate() {
            last.insert(&control.key, at);
        }
        if last.len() < self.controls.len() {
            let mut kept: Vec<usize> = last.into_values().collect();
            kept.sort_unstable();
            let controls = std::mem::take(&mut self.controls);
            self.controls =
                controls.into_iter().enumerate().filter(|(at, _)| kept.binary_search(at).is_ok()).map(|(_, control)| control).collect();
        }
    }
}
