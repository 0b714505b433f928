//! Gemini and Vertex: a candidate's finish reason names one of its safety systems.

use super::{Detection, ReasonSet, ResponseView, SafetyDetector};

/// See the module.
#[derive(Debug)]
pub struct GeminiSafety {
    finish_reasons: ReasonSet,
}

impl GeminiSafety {
    /// The name in configuration and verdicts.
    pub const NAME: &'static str = "gemini_safety";
    /// What counts unless configured otherwise.
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

    /// A detector of these values.
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
