//! OpenAI and everything that speaks its dialect: `finish_reason: content_filter`.

use super::{Detection, ReasonSet, ResponseView, SafetyDetector};

/// See the module.
#[derive(Debug)]
pub struct OpenAiCompatibleContentFilter {
    finish_reasons: ReasonSet,
}

impl OpenAiCompatibleContentFilter {
    /// The name in configuration and verdicts.
    pub const NAME: &'static str = "openai_compatible_content_filter";
    /// What counts unless configured otherwise.
    pub const DEFAULT_FINISH_REASONS: &'static [&'static str] = &["content_filter"];

    /// A detector of these values.
    #[must_use]
    pub fn new(finish_reasons: ReasonSet) -> Self {
        Self { finish_reasons }
    }
}

impl SafetyDetector for OpenAiCompatibleContentFilter {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn detect(&self, response: &ResponseView<'_>) -> Option<Detection> {
        response.detect(&response.finish_reasons, &self.finish_reasons, &[("content_filter_results", "content_filter_results")])
    }
}
