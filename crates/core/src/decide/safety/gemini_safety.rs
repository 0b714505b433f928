//! The detector for Gemini and Vertex: a candidate's finish reason names one of their safety systems.

use serde_json::json;

use super::{ConfiguredDetector, Detection, DetectorDescriptor, ReasonSet, ResponseView, SafetyDetector};
use crate::settings::Section;

/// The detector's descriptor for configuration: `config: {finish_reasons: […]}`.
pub(super) const DESCRIPTOR: DetectorDescriptor = DetectorDescriptor { name: GeminiSafety::NAME, aliases: &["GeminiSafetyDetector"], read };

fn read(config: &Section<'_>) -> ConfiguredDetector {
    let finish_reasons = ReasonSet::read(config, "finish_reasons", GeminiSafety::DEFAULT_FINISH_REASONS);
    ConfiguredDetector::new(GeminiSafety::new(ReasonSet::new(&finish_reasons)), json!({"finish_reasons": finish_reasons}))
}

/// A detector of finish reasons that name one of Gemini's or Vertex's safety systems.
#[derive(Debug)]
pub struct GeminiSafety {
    finish_reasons: ReasonSet,
}

impl GeminiSafety {
    /// The name in configuration and verdicts.
    pub const NAME: &'static str = "gemini_safety";
    /// The values that count as a safety stop unless configured otherwise.
    pub const DEFAULT_FINISH_REASONS: &'static [&'static str] = &[
        "SAFETY",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "RECITATION",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    ];

    /// Returns a detector of these values.
    #[must_use]
    pub fn new(finish_reasons: ReasonSet) -> Self {
        Self { finish_reasons }
    }
}

impl SafetyDetector for GeminiSafety {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn detect(&self, response: &ResponseView<'_>) -> Option<Detection> {
        let extras = [("safety_ratings", "safety_ratings"), ("safetyRatings", "safety_ratings")];
        response.detect(&response.finish_reasons, &self.finish_reasons, &extras)
    }
}
