//! The detector for OpenAI and everything that speaks its dialect: `finish_reason: content_filter`.

use serde_json::json;

use super::{ConfiguredDetector, Detection, DetectorDescriptor, ReasonSet, ResponseView, SafetyDetector};
use crate::settings::Section;

/// The detector's descriptor for configuration: `config: {finish_reasons: […]}`.
pub(super) const DESCRIPTOR: DetectorDescriptor =
    DetectorDescriptor { name: OpenAiCompatibleContentFilter::NAME, aliases: &["OpenAICompatibleContentFilterDetector"], read };

fn read(config: &Section<'_>) -> ConfiguredDetector {
    let finish_reasons = ReasonSet::read(config, "finish_reasons", OpenAiCompatibleContentFilter::DEFAULT_FINISH_REASONS);
    ConfiguredDetector::new(OpenAiCompatibleContentFilter::new(ReasonSet::new(&finish_reasons)), json!({"finish_reasons": finish_reasons}))
}

/// A detector of finish reasons which say that a content filter cut the response off.
#[derive(Debug)]
pub struct OpenAiCompatibleContentFilter {
    finish_reasons: ReasonSet,
}

impl OpenAiCompatibleContentFilter {
    /// The name in configuration and verdicts.
    pub const NAME: &'static str = "openai_compatible_content_filter";
    /// The values that count as a safety stop unless configured otherwise.
    pub const DEFAULT_FINISH_REASONS: &'static [&'static str] = &["content_filter"];

    /// Returns a detector of these values.
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
