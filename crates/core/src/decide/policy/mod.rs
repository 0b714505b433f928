//! The policy: it turns validated settings into the chains in force and their digest, together with the controls.

mod registry;
mod schema;
mod settings;

pub use registry::Registry;
pub use schema::{Descriptions, add_rules, notes_of};
pub use settings::{GuardrailSettings, LimitSettings, PolicySettings};

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::decide::controls::Controls;
use crate::decide::guardrail::GuardrailChain;
use crate::decide::loops::LoopChain;
use crate::decide::safety::{ConfiguredDetector, SafetyChain};
use crate::decide::signal::Interest;
use crate::decide::thread::{StoreLimits, ThreadLimits};
use tollgate_json::digest::Digest;
use tollgate_json::{DEPTH_MAX, Parser, canonical};

/// The revision of the decision rules. It goes up when the same settings begin to decide differently, so that verdicts of different rules
/// never share a version.
pub const RULES_REVISION: u32 = 7;

/// Everything that a verdict depends on besides the thread and the event.
#[derive(Debug)]
pub struct Policy {
    version: String,
    safety: SafetyChain,
    guardrails: GuardrailChain,
    loops: LoopChain,
    limits: LimitSettings,
    controls: Arc<Controls>,
    signals: Option<Interest>,
    reads_arguments: bool,
}

impl Policy {
    /// Returns the policy of these settings, with no controls in force.
    #[must_use]
    pub fn new(settings: &PolicySettings) -> Self {
        Self::under(settings, Arc::default())
    }

    /// Returns the policy of these settings under these controls. The controls may change while it is in force.
    #[must_use]
    pub fn under(settings: &PolicySettings, controls: Arc<Controls>) -> Self {
        Self {
            version: version_of(settings),
            safety: SafetyChain::new(settings.detectors.iter().map(ConfiguredDetector::detector).collect(), settings.responses.clone()),
            guardrails: settings.guardrails.as_ref().map_or_else(GuardrailChain::none, |guardrails| guardrails.build(&controls)),
            loops: LoopChain::new(&settings.tool_loop_guardrails),
            reads_arguments: settings.providers().any(|provider| provider.settings.reads_arguments()),
            limits: settings.limits,
            controls,
            signals: None,
        }
    }

    /// Returns the policy with other guardrail providers: for providers that configuration does not know, and for tests.
    #[must_use]
    pub fn with_guardrails(self, guardrails: GuardrailChain) -> Self {
        Self { guardrails, ..self }
    }

    /// Returns the policy with signals, of which the optional ones are those of interest. No verdict depends on it.
    #[must_use]
    pub fn with_signals(self, interest: Interest) -> Self {
        Self { signals: Some(interest), ..self }
    }

    /// Returns which optional signals are of interest; `None` where there are no signals at all.
    #[must_use]
    pub fn signals(&self) -> Option<&Interest> {
        self.signals.as_ref()
    }

    /// Returns the digest of the effective decision configuration, as verdicts carry it.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the safety detectors.
    #[must_use]
    pub fn safety(&self) -> &SafetyChain {
        &self.safety
    }

    /// Returns the guardrail providers.
    #[must_use]
    pub fn guardrails(&self) -> &GuardrailChain {
        &self.guardrails
    }

    /// Returns the loop controllers.
    #[must_use]
    pub fn loops(&self) -> &LoopChain {
        &self.loops
    }

    /// Returns whether a configured provider reads the arguments of calls: passports, or a policy server.
    #[must_use]
    pub fn reads_arguments(&self) -> bool {
        self.reads_arguments
    }

    /// Returns the sizes and times that decisions depend on.
    #[must_use]
    pub fn limits(&self) -> &LimitSettings {
        &self.limits
    }

    /// Returns the controls that operators have set.
    #[must_use]
    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// Returns the bounds of a partition's threads.
    #[must_use]
    pub fn store_limits(&self) -> StoreLimits {
        StoreLimits {
            threads_max: self.limits.threads_per_partition_max,
            tenant_stops_max: self.limits.tenant_stops_max(),
            thread: ThreadLimits {
                idle_ms_max: i64::from(self.limits.thread_idle_seconds_max) * 1_000,
                turn_idle_ms_max: i64::from(self.limits.turn_idle_seconds_max) * 1_000,
                bytes_max: self.limits.thread_bytes_max,
            },
        }
    }
}

/// Returns the digest of the settings and of what else providers decide by.
fn version_of(settings: &PolicySettings) -> String {
    let mut basis = Map::from_iter([("rules".to_owned(), RULES_REVISION.into()), ("settings".to_owned(), json!(settings))]);
    for (field, content) in settings.providers().filter_map(|provider| provider.settings.basis()) {
        let contents = basis.entry(field).or_insert_with(|| Value::Array(Vec::new()));
        contents.as_array_mut().into_iter().for_each(|contents| contents.push(content.clone().into()));
    }
    let text = Value::Object(basis).to_string();
    let mut canonical_bytes = Vec::with_capacity(text.len());
    if let Ok(value) = Parser::new().parse(text.as_bytes(), DEPTH_MAX) {
        canonical::write(value, &mut canonical_bytes);
    }
    format!("sha256:{}", Digest::of(&canonical_bytes))
}
