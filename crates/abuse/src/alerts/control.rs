//! Controls: the one record that the abuse stage has for a subject, which says until when it is suspended.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use tollgate_core::decide::signal::SubjectKey;
use tollgate_json::ObjectWriter;
use tollgate_json::digest::Fingerprint;

use crate::alerts::alert::time;
use crate::outcome::{ControlRecord, Folded};
use crate::program::Program;
use crate::subjects::{Subject, Suspension};

/// A suspension, with the id of its rule and that of its alerts.
#[derive(Debug, Clone, Copy)]
struct Longest<'r> {
    suspension: Suspension,
    rule: &'r str,
    alert_id: Fingerprint,
}

/// Returns the suspension of a subject that lasts longest, if it is not over by `now_ms`. Among equals it is that of the rule that stands
/// first, and of the group that sorts first: which of the counters was made first depends on the order in which sources are read.
fn longest<'r>(subject: &mut Subject<'_>, program: &'r Program, now_ms: Option<i64>) -> Option<Longest<'r>> {
    let mut longest = None;
    for at in 0..subject.counters.len() {
        let Some(counter) = subject.counters.get(at).filter(|counter| counter.is_on_ladder) else { continue };
        let (number, group) = (counter.rule, counter.group.clone());
        let Some((place, rule)) = program.numbered(number) else { continue };
        let Some(episode) = subject.open(at).ok().and_then(|opened| opened.episode.as_deref()) else { continue };
        let Some(until_ms) = episode.until_ms.filter(|until_ms| now_ms.is_none_or(|now_ms| *until_ms > now_ms)) else { continue };
        let rank = (until_ms, Reverse((place, group)));
        if longest.as_ref().is_none_or(|(known, _)| rank > *known) {
            let suspension = Suspension { until_ms, rule: number, step: episode.step };
            longest = Some((rank, Longest { suspension, rule: &rule.id, alert_id: episode.alert_id }));
        }
    }
    longest.map(|(_, longest)| longest)
}

/// Brings a subject's control up to date. Nothing is written if it says already what it has to. Returns whether it was written.
pub(crate) fn update(subject: &mut Subject<'_>, key: &SubjectKey, program: &Program, now_ms: Option<i64>, folded: &mut Folded) -> bool {
    let longest = longest(subject, program, now_ms);
    let control = longest.map(|longest| longest.suspension);
    if key.kind.subject_kind().is_none() || subject.control == control {
        return false;
    }
    subject.control = control;
    folded.controls.push(record(key, longest));
    true
}

/// Returns the tombstone of a subject's control, whether there is one or not; `None` for what cannot be suspended.
pub(crate) fn lifted(key: &SubjectKey) -> Option<ControlRecord> {
    key.kind.subject_kind().map(|_| record(key, None))
}

/// Returns the record of a subject's suspension, or the tombstone of it.
fn record(key: &SubjectKey, longest: Option<Longest<'_>>) -> ControlRecord {
    let value = longest.map(|Longest { suspension, rule, alert_id }| {
        let mut value = Vec::with_capacity(320);
        let mut object = ObjectWriter::begin(&mut value);
        object.plain("type", &[b"subject"]);
        object.plain("kind", &[key.kind.as_str().as_bytes()]);
        object.plain("hash", &[&key.hash.hex()]);
        object.plain("state", &[b"suspended"]);
        time(&mut object, "until", Some(suspension.until_ms));
        object.text("rule", rule);
        object.number("step", suspension.step);
        object.plain("alert_id", &[&alert_id.hex()]);
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
