//! Anthropic: `stop_reason: refusal`, given when its streaming classifiers intervene.

use super::{Detection, ReasonSet, ResponseView, SafetyDetector};

/// See the module.
#[derive(Debug)]
pub struct AnthropicRefusal {
    stop_reasons: ReasonSet,
}

impl AnthropicRefusal {
    /// The name in configuration and verdicts.
    pub const NAME: &'static str = "anthropic_refusal";
    /// What counts unless configured otherwise.
    pub const DEFAULT_STOP_REASONS: &'static [&'static str] = &["refusal"];

    /// A detector of these values.
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
