//! The counts of verdicts of one member. They are local and handed over once a second, so that counting needs no synchronisation per
//! record.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use prometheus::core::{AtomicU64, GenericLocalCounterVec};
use prometheus::local::{LocalHistogram, LocalHistogramTimer};

use crate::logging::OncePerMinute;
use crate::metrics::{BoundedLabel, Metrics, TOOLS_MAX};
use crate::outbox::{Delivery, Role};
use crate::policy_servers::PolicyServers;
use tollgate_core::decide::evaluate::Decided;
use tollgate_core::decide::evaluate::verdict;
use tollgate_core::decide::guardrail::GuardrailChain;
use tollgate_core::event::decode::{EventType, Rejection};
use tollgate_core::event::record::Record;

/// How many codes of providers get a label of their own. Providers choose their codes freely, and a label is held for ever.
const CODES_MAX: usize = 256;
/// The longest name of a tool that is a label, in bytes. Model providers accept no longer ones.
const TOOL_BYTES_MAX: usize = 64;

/// What the members of a process share: the labels that others choose, and when a fault was logged.
#[derive(Debug)]
pub struct Shared {
    codes: BoundedLabel,
    tools: BoundedLabel,
    /// By the provider's place in the chain and the error's label.
    provider_errors: OncePerMinute<(usize, &'static str)>,
    /// By the code of the rejection.
    dead_letters: OncePerMinute<&'static str>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            codes: BoundedLabel::new(CODES_MAX),
            tools: BoundedLabel::new(TOOLS_MAX),
            provider_errors: OncePerMinute::default(),
            dead_letters: OncePerMinute::default(),
        }
    }
}

/// One record in this many is timed, since reading the clock twice costs a tenth of a decision.
const TIMED_ONE_IN: u64 = 64;

/// The local counts of one member.
pub struct Counts {
    events: GenericLocalCounterVec<AtomicU64>,
    verdicts: GenericLocalCounterVec<AtomicU64>,
    stops: GenericLocalCounterVec<AtomicU64>,
    decision_duration: LocalHistogram,
    event_to_verdict: LocalHistogram,
    shared: Arc<Shared>,
    records: u64,
    metrics: Metrics,
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts").field("records", &self.records).finish_non_exhaustive()
    }
}

impl Counts {
    /// Returns counts that start at zero, with what all members of the process share.
    #[must_use]
    pub fn new(metrics: &Metrics, shared: &Arc<Shared>) -> Self {
        Self {
            events: metrics.events.local(),
            verdicts: metrics.verdicts.local(),
            stops: metrics.stops.local(),
            decision_duration: metrics.decision_duration.local(),
            event_to_verdict: metrics.event_to_verdict.local(),
            shared: Arc::clone(shared),
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

    /// Counts a record that became a dead letter, and whether it was answered, which needs a thread. A producer that sends nothing else
    /// would fill the log.
    pub(in crate::stages) fn unreadable(&mut self, record: &Record<'_>, rejection: &Rejection, is_answered: bool) {
        let code = rejection.code.as_str();
        self.events.with_label_values(&["unreadable"]).inc();
        self.metrics.dead_letters.with_label_values(&[code]).inc();
        if let Some(count) = self.shared.dead_letters.count(code, Instant::now()) {
            let (topic, partition, offset) = (record.topic, record.partition, record.offset);
            tracing::warn!(topic, %partition, %offset, code, count, "a record became a dead letter: {rejection}");
        }
        if is_answered {
            self.verdicts.with_label_values(&["envelope", "block", verdict::INVALID_EVENT]).inc();
        }
    }

    /// Counts a verdict, and logs which provider gave no decision, and why.
    pub(in crate::stages) fn verdict(&mut self, decided: &Decided, guardrails: &GuardrailChain, servers: &PolicyServers) {
        let code = match &decided.code {
            Cow::Borrowed(code) => code,
            Cow::Owned(code) => self.shared.codes.of(code),
        };
        let (decided_by, action) = (decided.decided_by.as_str(), decided.action.as_str());
        self.verdicts.with_label_values(&[decided_by, action, code]).inc();
        if let Some(doubt) = decided.doubt {
            self.metrics.responses_in_doubt.with_label_values(&[doubt.code()]).inc();
        }
        if let Some(tool) = &decided.stopped_tool {
            let tool = if is_plain(tool) { self.shared.tools.of(tool) } else { BoundedLabel::OTHER };
            self.stops.with_label_values(&[tool, decided_by, action]).inc();
        }
        for (place, outcome) in &decided.provider_calls {
            let (provider, outcome_label) = (guardrails.name_of(*place), outcome.as_str());
            self.metrics.provider_calls.with_label_values(&[provider, outcome_label]).inc();
            let Some(error) = outcome.error() else { continue };
            self.metrics.guardrail_errors.with_label_values(&[provider, error.as_str()]).inc();
            if let Some(count) = self.shared.provider_errors.count((*place, error.as_str()), Instant::now()) {
                let error = servers.explain(*place, error);
                tracing::warn!(provider, error, outcome = outcome_label, count, "a guardrail provider gave no decision");
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
        self.stops.flush();
        self.decision_duration.flush();
        self.event_to_verdict.flush();
    }
}

/// Returns whether a tool's name is a plain identifier. Agents make names up, and any other text may be anything.
fn is_plain(tool: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    (1..=TOOL_BYTES_MAX).contains(&tool.len()) && tool.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::decide::policy::{Policy, PolicySettings};
    use tollgate_core::decide::ruling::{Action, DecidedBy};
    use tollgate_core::decide::safety::{Doubt, OnDoubt};

    fn text(metrics: &Metrics) -> String {
        String::from_utf8(metrics.render()).unwrap()
    }

    fn denied(code: &str, tool: Option<&str>) -> Decided {
        let (code, stopped_tool) = (Cow::Owned(code.to_owned()), tool.map(Into::into));
        Decided { action: Action::Block, decided_by: DecidedBy::Guardrail, code, stopped_tool, doubt: None, provider_calls: Vec::new() }
    }

    #[test]
    fn neither_providers_nor_agents_can_make_any_number_of_series() {
        let policy = Policy::new(&PolicySettings::from_value(&serde_json::json!({})).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let servers = PolicyServers::new(Vec::new(), runtime.handle().clone());
        let (metrics, shared) = (Metrics::new().unwrap(), Arc::default());
        let mut members = [Counts::new(&metrics, &shared), Counts::new(&metrics, &shared)];
        for number in 0..2_000 {
            let member = &mut members[number % 2];
            member.verdict(&denied(&format!("acme.{number}"), Some(&format!("tool_{number}"))), policy.guardrails(), &servers);
            member.verdict(&denied("acme.0", None), policy.guardrails(), &servers);
        }
        members.iter_mut().for_each(Counts::flush);
        let text = text(&metrics);
        let series = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!((series("tollgate_verdicts_total{"), series("tollgate_stops_total{")), (CODES_MAX + 1, TOOLS_MAX + 1));
        let others = 2_000 - TOOLS_MAX;
        let line = format!("tollgate_stops_total{{action=\"block\",decided_by=\"guardrail\",tool=\"other\"}} {others}");
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }

    #[test]
    fn a_response_in_doubt_is_counted_even_where_it_is_allowed() {
        let policy = Policy::new(&PolicySettings::from_value(&serde_json::json!({})).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let servers = PolicyServers::new(Vec::new(), runtime.handle().clone());
        let metrics = Metrics::new().unwrap();
        let mut counts = Counts::new(&metrics, &Arc::default());
        for doubt in [None, Some(Doubt::Unrecognized(OnDoubt::Allow)), Some(Doubt::Unreliable(OnDoubt::Suppress))] {
            counts.verdict(&Decided { doubt, action: Action::Allow, ..denied("allow", None) }, policy.guardrails(), &servers);
        }
        let text = text(&metrics);
        let counted: Vec<_> = text.lines().filter(|line| line.starts_with("tollgate_responses_in_doubt_total{")).collect();
        let expected = ["tool_calls_unreliable", "unrecognized_response"]
            .map(|doubt| format!("tollgate_responses_in_doubt_total{{doubt=\"{doubt}\"}} 1"));
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_tool_is_a_label_only_if_its_name_is_plain() {
        let long = "x".repeat(TOOL_BYTES_MAX + 1);
        for tool in ["", "rm -rf /home/anna", "anna@example.org", "\u{202e}", "a\nb", &long] {
            assert!(!is_plain(tool), "{tool:?}");
        }
        for tool in ["bash", "mcp__github__create_issue", "fs.read", "server:tool", "a/b-c"] {
            assert!(is_plain(tool), "{tool}");
        }
    }
}
