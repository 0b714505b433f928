//! The values that the labels of each metric may have, as far as the code decides them. Dashboards and alerts are checked against them.

use tollgate_abuse::{Level, Mode};
use tollgate_core::decide::controls::ControlRejectionCode;
use tollgate_core::decide::evaluate::verdict::INVALID_EVENT;
use tollgate_core::decide::guardrail::{ProviderError, ProviderOutcome};
use tollgate_core::decide::ruling::{Action, DecidedBy, LoopCode};
use tollgate_core::decide::safety::{SAFETY_TERMINATED, TOOL_CALLS_UNRELIABLE, UNRECOGNIZED_RESPONSE};
use tollgate_core::decide::signal::SignalKind;
use tollgate_core::event::decode::{EventType, RejectionCode};

use super::stages::ABUSE;

/// The values of one label of one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// These, and no others.
    Closed(Vec<&'static str>),
    /// These and others, which the configuration, policy servers, agents or Kafka choose.
    Open(Vec<&'static str>),
}

impl Values {
    /// Returns whether a series may have this value.
    #[must_use]
    pub fn may_be(&self, value: &str) -> bool {
        match self {
            Self::Closed(values) => values.contains(&value),
            Self::Open(_) => true,
        }
    }

    /// Returns whether the code itself has this value, so that a rule may name it.
    #[must_use]
    pub fn has(&self, value: &str) -> bool {
        let (Self::Closed(values) | Self::Open(values)) = self;
        values.contains(&value)
    }
}

/// Returns the values of a label of a metric.
#[must_use]
pub fn values(metric: &str, label: &str) -> Values {
    let closed = |values: &[&'static str]| Values::Closed(values.to_vec());
    let open = |values: &[&'static str]| Values::Open(values.to_vec());
    match (metric, label) {
        ("tollgate_events_consumed_total", "type") => {
            Values::Closed(EventType::ALL.iter().map(|kind| kind.as_str()).chain(["unreadable", "passed_through"]).collect())
        }
        (_, "action") | ("tollgate_shadow_flips_total", "from" | "to") => {
            Values::Closed(Action::ALL.iter().map(|action| action.as_str()).collect())
        }
        (_, "decided_by") => Values::Closed(DecidedBy::ALL.iter().map(|part| part.as_str()).collect()),
        ("tollgate_verdicts_total" | "tollgate_shadow_flips_total", "code") => Values::Open(verdict_codes()),
        ("tollgate_responses_in_doubt_total", "doubt") => closed(&[UNRECOGNIZED_RESPONSE, TOOL_CALLS_UNRELIABLE]),
        (_, "tool") => open(&["other"]),
        ("tollgate_dead_letters_total", "reason") => Values::Closed(RejectionCode::ALL.iter().map(|code| code.as_str()).collect()),
        ("tollgate_replies_total", "outcome") => closed(&["published", "refused", "failed"]),
        ("tollgate_guardrail_provider_calls_total", "outcome") => Values::Closed(provider_outcomes()),
        ("tollgate_guardrail_errors_total", "reason") => Values::Closed(provider_errors()),
        ("tollgate_secret_changes_total", "outcome") => closed(&["taken_over", "refused"]),
        ("tollgate_rebalances_total", "kind") => closed(&["assigned", "revoked", "lost"]),
        ("tollgate_checkpoints_total", "outcome") => closed(&["written", "refused", "fenced", "lost"]),
        ("tollgate_publish_failures_total", "role") => closed(&["verdict", "reply", "dead_letter", "signals", "alert", "control"]),
        (_, "stage") => closed(&["", ABUSE]),
        ("tollgate_signals_written_total", "signal") => Values::Closed(SignalKind::names().collect()),
        ("tollgate_signals_left_out_total", "reason") => closed(&["unattributed", "untimed"]),
        ("tollgate_abuse_signals_total", "outcome") => closed(&["applied", "repeated", "late", "foreign", "newer"]),
        ("tollgate_abuse_firings_total", "mode") => Values::Closed(Mode::ALL.iter().map(|mode| mode.as_str()).collect()),
        ("tollgate_abuse_alerts_total", "level") => Values::Open(Level::ALL.iter().map(|level| level.as_str()).collect()),
        ("tollgate_abuse_alerts_total", "status") => open(&["firing", "escalated", "ended"]),
        ("tollgate_abuse_sources_total", "change") => closed(&["reset", "silent"]),
        ("tollgate_departed_threads_total", "reason") => closed(&["expired", "evicted", "refused"]),
        ("tollgate_restore_duration_seconds", "outcome") => closed(&["restored", "abandoned", "failed"]),
        ("tollgate_restore_failures_total", "reason") => closed(&["kafka", "forbidden", "unreadable", "mismatch"]),
        ("tollgate_controls_applied_total" | "tollgate_controls", "type") => closed(&["passport", "subject"]),
        ("tollgate_control_rejections_total", "code") => {
            Values::Closed(ControlRejectionCode::ALL.iter().map(|code| code.as_str()).collect())
        }
        _ => open(&[]),
    }
}

/// Returns the codes of verdicts that are not a provider's.
fn verdict_codes() -> Vec<&'static str> {
    let of_events = ["allow", "not_executed", "pass_through", "other", SAFETY_TERMINATED, INVALID_EVENT];
    let of_responses = [UNRECOGNIZED_RESPONSE, TOOL_CALLS_UNRELIABLE];
    let of_calls = ["subject_suspended", "suppressed_tool_call", "thread_store_full"];
    of_events.into_iter().chain(of_responses).chain(of_calls).chain(LoopCode::all().map(LoopCode::as_str)).collect()
}

fn provider_outcomes() -> Vec<&'static str> {
    let error = ProviderError::NotAsked;
    use ProviderOutcome::{Allowed, Denied, FailedClosed, FailedOpen};
    [Allowed, Denied, FailedClosed(error), FailedOpen(error)].map(ProviderOutcome::as_str).to_vec()
}

fn provider_errors() -> Vec<&'static str> {
    use ProviderError::{CircuitOpen, Connection, Malformed, NotAsked, Overloaded, Status, TimedOut, TooLarge};
    [NotAsked, TimedOut, Connection, Status(0), TooLarge, Overloaded, CircuitOpen, Malformed("")].map(ProviderError::as_str).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::decide::ruling::Reason;

    #[test]
    fn labels_have_the_values_that_the_code_counts_under() {
        assert!(values("tollgate_events_consumed_total", "type").has("tool_call"));
        assert!(values("tollgate_guardrail_provider_calls_total", "outcome").has("failed_open"));
        assert!(values("tollgate_restore_failures_total", "reason").has("mismatch"));
        let codes = values("tollgate_verdicts_total", "code");
        for code in [Reason::Suppressed.code(), Reason::ThreadStoreFull.code(), "allow", "other"] {
            assert!(codes.has(code) && codes.may_be(code), "{code}");
        }
        assert!(codes.may_be("acme.no_rm") && !codes.has("acme.no_rm"), "a provider's code");
        assert!(!values("tollgate_rebalances_total", "kind").may_be("moved"));
        assert_eq!(values("tollgate_lag_seconds", "partition"), Values::Open(Vec::new()));
    }
}
