//! The detector for Anthropic: `stop_reason: refusal`, which is given when its streaming classifiers intervene.

use serde_json::json;

use super::{ConfiguredDetector, Detection, DetectorDescriptor, ReasonSet, ResponseView, SafetyDetector};
use crate::settings::Section;

/// The detector's descriptor for configuration: `config: {stop_reasons: […]}`.
pub(super) const DESCRIPTOR: DetectorDescriptor =
    DetectorDescriptor { name: AnthropicRefusal::NAME, aliases: &["AnthropicRefusalDetector"], read };

fn read(config: &Section<'_>) -> ConfiguredDetector {
    let stop_reasons = ReasonSet::read(config, "stop_reasons", AnthropicRefusal::DEFAULT_STOP_REASONS);
    ConfiguredDetector::new(AnthropicRefusal::new(ReasonSet::new(&stop_reasons)), json!({"stop_reasons": stop_reasons}))
}

/// A detector of stop reasons which say that Anthropic's classifiers, or the model itself, refused to go on.
#[derive(Debug)]
pub struct AnthropicRefusal {
    stop_reasons: ReasonSet,
}

impl AnthropicRefusal {
    /// The name in configuration and verdicts.
    pub const NAME: &'static str = "anthropic_refusal";
    /// The values that count as a safety stop unless configured otherwise.
    pub const DEFAULT_STOP_REASONS: &'static [&'static str] = &["refusal"];

    /// Returns a detector of these values.
    #[must_use]
    pub fn new(stop_reasons: ReasonSet) -> Self {
        Self { stop_reasons }
    }
}

impl SafetyDetector for AnthropicRefusal {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn detect(&self, response: &ResponseView<'_>) -> Option<Detection> {
        response.detect(&response.stop_reasons, &self.stop_reasons, &[])
    }
}
