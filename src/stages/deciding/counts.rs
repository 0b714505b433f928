//! The counts of verdicts of one member. They are local and handed over once a second, so that counting needs no synchronisation per
//! record.

use std::borrow::Cow;

use prometheus::core::{AtomicU64, GenericLocalCounterVec};
use prometheus::local::{LocalHistogram, LocalHistogramTimer};
use rustc_hash::FxHashSet;

use crate::metrics::Metrics;
use crate::outbox::{Delivery, Role};
use tollgate_core::decode::EventType;
use tollgate_core::evaluate::Decided;
use tollgate_core::evaluate::verdict;
use tollgate_core::guardrail::GuardrailChain;

/// How many codes of providers get a label of their own. Providers choose their codes freely, and a label is held for ever.
const CODES_MAX: usize = 256;
/// The label of all other codes.
const OTHER_CODE: &str = "other";

/// One record in this many is timed, since reading the clock twice costs a tenth of a decision.
const TIMED_ONE_IN: u64 = 64;

/// The local counts of one member.
pub struct Counts {
    events: GenericLocalCounterVec<AtomicU64>,
    verdicts: GenericLocalCounterVec<AtomicU64>,
    decision_duration: LocalHistogram,
    event_to_verdict: LocalHistogram,
    /// The codes of providers that have a label of their own.
    codes: FxHashSet<Box<str>>,
    records: u64,
    metrics: Metrics,
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts").field("records", &self.records).finish_non_exhaustive()
    }
}

impl Counts {
    /// Returns counts that start at zero.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            events: metrics.events.local(),
            verdicts: metrics.verdicts.local(),
            decision_duration: metrics.decision_duration.local(),
            event_to_verdict: metrics.event_to_verdict.local(),
            codes: FxHashSet::default(),
            records: 0,
            metrics: metrics.clone(),
        }
    }

    /// Returns a running timer for one record in so many.
    pub(in crate::stages) fn timer(&mut self) -> Option<LocalHistogramTimer> {
        self.records = self.records.wrapping_add(1);
        self.records.is_multiple_of(TIMED_ONE_IN).then(|| self.decision_duration.start_timer())
    }

    pub(in crate::stages) fn event(&mut self, event_type: EventType) {
        self.events.with_label_values(&[event_type.as_str()]).inc();
    }

    /// Counts a record that was passed through.
    pub(in crate::stages) fn passed_through(&mut self) {
        self.events.with_label_values(&["passed_through"]).inc();
        self.verdicts.with_label_values(&["none", "allow", "pass_through"]).inc();
    }

    /// Counts a record that became a dead letter, and whether it was answered, which needs a thread.
    pub(in crate::stages) fn unreadable(&mut self, reason: &str, is_answered: bool) {
        self.events.with_label_values(&["unreadable"]).inc();
        self.metrics.dead_letters.with_label_values(&[reason]).inc();
        if is_answered {
            self.verdicts.with_label_values(&["envelope", "block", verdict::INVALID_EVENT]).inc();
        }
    }

    pub(in crate::stages) fn verdict(&mut self, decided: &Decided, guardrails: &GuardrailChain) {
        let code = match &decided.code {
            Cow::Borrowed(code) => code,
            Cow::Owned(code) => label(&mut self.codes, code),
        };
        self.verdicts.with_label_values(&[decided.decided_by.as_str(), decided.action.as_str(), code]).inc();
        for (provider, outcome) in &decided.provider_calls {
            let provider = guardrails.name_of(*provider);
            self.metrics.provider_calls.with_label_values(&[provider, outcome.as_str()]).inc();
            if let Some(error) = outcome.error() {
                self.metrics.guardrail_errors.with_label_values(&[provider, error.as_str()]).inc();
                tracing::debug!(provider, %error, outcome = outcome.as_str(), "a guardrail provider failed");
            }
        }
    }

    /// Counts an acknowledged verdict, with its event's age. If the sender's clock is ahead, the age counts as zero.
    pub(in crate::stages) fn acknowledged(&mut self, delivery: &Delivery, now_ms: i64) {
        if let (Role::Verdict, Some(time_ms)) = (delivery.role, delivery.event_time_ms) {
            let age_ms = now_ms.saturating_sub(time_ms).max(0);
            self.event_to_verdict.observe(age_ms as f64 / 1_000.0);
        }
    }

    pub(in crate::stages) fn flush(&mut self) {
        self.events.flush();
        self.verdicts.flush();
        self.decision_duration.flush();
        self.event_to_verdict.flush();
    }
}

/// Returns the label of a provider's code: the code itself for the first few, else the common one.
fn label<'c>(known: &mut FxHashSet<Box<str>>, code: &'c str) -> &'c str {
    if known.contains(code) {
        return code;
    }
    if known.len() >= CODES_MAX {
        return OTHER_CODE;
    }
    known.insert(code.into());
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_cannot_make_any_number_of_labels() {
        let mut known = FxHashSet::default();
        for number in 0..CODES_MAX {
            let code = format!("acme.{number}");
            assert_eq!(label(&mut known, &code), code);
        }
        assert_eq!(label(&mut known, "acme.one_too_many"), OTHER_CODE);
        assert_eq!(label(&mut known, "acme.0"), "acme.0");
    }
}
