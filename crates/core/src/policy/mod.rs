//! The decision configuration: validated settings → the chains in force, and their digest; and the controls that they are under.

mod passport;
mod read_guardrails;
mod read_limits;
mod read_passport;
mod read_safety;
mod settings;

pub use passport::PassportSettings;
pub use settings::{
    DetectorSettings, Dialect, GuardrailSettings, HttpSettings, LimitSettings, PolicySettings, ProviderKind, ProviderSettings,
};

use std::sync::Arc;

use crate::controls::Controls;
use crate::digest::Digest;
use crate::guardrail::GuardrailChain;
use crate::json::{DEPTH_MAX, Parser, canonical};
use crate::loops::LoopChain;
use crate::safety::SafetyChain;
use crate::thread::{StoreLimits, ThreadLimits};

/// Raised when the same settings begin to decide differently, so that verdicts of different rules never share a version.
const RULES_REVISION: u32 = 1;

/// Everything that a verdict depends on besides the thread and the event.
#[derive(Debug)]
pub struct Policy {
    version: String,
    safety: SafetyChain,
    guardrails: GuardrailChain,
    loops: LoopChain,
    limits: LimitSettings,
    controls: Arc<Controls>,
}

impl Policy {
    /// The policy of these settings, with no controls in force.
    #[must_use]
    pub fn new(settings: &PolicySettings) -> Self {
        Self::under(settings, Arc::default())
    }

    /// The policy of these settings under these controls, which may change while it is in force.
    #[must_use]
    pub fn under(settings: &PolicySettings, controls: Arc<Controls>) -> Self {
        Self {
            version: version_of(settings),
            safety: SafetyChain::new(settings.detectors.iter().map(DetectorSettings::build).collect()),
            guardrails: settings
                .guardrails
                .as_ref()
                .map_or_else(GuardrailChain::none, |guardrails| build_guardrails(guardrails, &controls)),
            loops: LoopChain::new(&settings.tool_loop_guardrails),
            limits: settings.limits,
            controls,
        }
    }

    /// The same policy with other guardrail providers: for providers that configuration does not know, and for tests.
    #[must_use]
    pub fn with_guardrails(self, guardrails: GuardrailChain) -> Self {
        Self { guardrails, ..self }
    }

    /// The digest of the effective decision configuration, as verdicts carry it.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The safety detectors.
    #[must_use]
    pub fn safety(&self) -> &SafetyChain {
        &self.safety
    }

    /// The guardrail providers.
    #[must_use]
    pub fn guardrails(&self) -> &GuardrailChain {
        &self.guardrails
    }

    /// The loop controllers.
    #[must_use]
    pub fn loops(&self) -> &LoopChain {
        &self.loops
    }

    /// Sizes and times.
    #[must_use]
    pub fn limits(&self) -> &LimitSettings {
        &self.limits
    }

    /// What operators have switched.
    #[must_use]
    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// The bounds of a partition's threads.
    #[must_use]
    pub fn store_limits(&self) -> StoreLimits {
        StoreLimits {
            threads_max: self.limits.threads_per_partition_max,
            thread: ThreadLimits {
                idle_ms_max: i64::from(self.limits.thread_idle_seconds_max) * 1_000,
                bytes_max: self.limits.thread_bytes_max,
            },
        }
    }
}

fn build_guardrails(settings: &GuardrailSettings, controls: &Arc<Controls>) -> GuardrailChain {
    let links = settings.providers.iter().map(|provider| provider.build(controls)).collect();
    GuardrailChain::new(links, settings.fail_closed, settings.passport.clone())
}

fn version_of(settings: &PolicySettings) -> String {
    let mut basis = serde_json::json!({"rules": RULES_REVISION, "settings": settings});
    let passports: Vec<String> = settings.passports().map(PassportSettings::basis).collect();
    if let Some(basis) = basis.as_object_mut().filter(|_| !passports.is_empty()) {
        basis.insert("passports".to_owned(), passports.into());
    }
    let text = basis.to_string();
    let mut canonical_bytes = Vec::with_capacity(text.len());
    if let Ok(value) = Parser::new().parse(text.as_bytes(), DEPTH_MAX) {
        canonical::write(value, &mut canonical_bytes);
    }
    format!("sha256:{}", Digest::of(&canonical_bytes))
}
