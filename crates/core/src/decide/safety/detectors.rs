//! The built-in detectors, one for each dialect: they look for known values among the reasons why a response ended.

use serde_json::json;

use super::native::NATIVE;
use super::reading::is_stop_word;
use super::{ConfiguredDetector, Detection, DetectorDescriptor, EndReason, ReasonSet, ResponseView, SafetyDetector};
use crate::settings::{Collector, Section};

/// The reasons by which a dialect says that a response was cut off.
#[derive(Debug)]
struct Dialect {
    /// The detector's name in configuration and verdicts.
    name: &'static str,
    /// The key of the values in configuration.
    key: &'static str,
    /// The values that count as a safety stop unless configured otherwise.
    defaults: &'static [&'static str],
    /// Returns the reasons to look at.
    reasons: for<'r, 'd> fn(&'r ResponseView<'d>) -> &'r [EndReason<'d>],
    /// What the provider says besides: its name in the response, and in the verdict.
    extras: &'static [(&'static str, &'static str)],
}

/// OpenAI and everything that speaks its dialect: `finish_reason: content_filter`.
static OPENAI_COMPATIBLE: Dialect = Dialect {
    name: "openai_compatible_content_filter",
    key: "finish_reasons",
    defaults: &["content_filter"],
    reasons: |response| &response.finish_reasons,
    extras: &[("content_filter_results", "content_filter_results")],
};

/// Anthropic: `stop_reason: refusal`, which is given when its streaming classifiers intervene, or the model itself refuses to go on.
static ANTHROPIC: Dialect = Dialect {
    name: "anthropic_refusal",
    key: "stop_reasons",
    defaults: &["refusal"],
    reasons: |response| &response.stop_reasons,
    extras: &[],
};

/// Gemini and Vertex: a candidate's finish reason names one of their safety systems.
static GEMINI: Dialect = Dialect {
    name: "gemini_safety",
    key: "finish_reasons",
    defaults: &[
        "SAFETY",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "RECITATION",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    ],
    reasons: |response| &response.finish_reasons,
    extras: &[("safety_ratings", "safety_ratings"), ("safetyRatings", "safety_ratings")],
};

/// The detectors that configuration can name.
pub const DETECTORS: &[&DetectorDescriptor] = &[
    &DetectorDescriptor {
        name: OPENAI_COMPATIBLE.name,
        aliases: &["OpenAICompatibleContentFilterDetector"],
        read: |config| OPENAI_COMPATIBLE.read(config),
    },
    &DetectorDescriptor { name: ANTHROPIC.name, aliases: &["AnthropicRefusalDetector"], read: |config| ANTHROPIC.read(config) },
    &DetectorDescriptor { name: GEMINI.name, aliases: &["GeminiSafetyDetector"], read: |config| GEMINI.read(config) },
    &NATIVE,
];

/// Returns the reasons that the built-in detectors look for, unless configured otherwise.
pub(crate) fn default_reasons() -> Vec<String> {
    let (nothing, faults) = (json!({}), Collector::default());
    let config = Section::root(&nothing, &nothing, &faults);
    DETECTORS.iter().flat_map(|detector| (detector.read)(&config).reasons().map(str::to_owned).collect::<Vec<_>>()).collect()
}

impl Dialect {
    fn read(&'static self, config: &Section<'_>) -> ConfiguredDetector {
        let values = ReasonSet::read(config, self.key, self.defaults);
        let is_within_scan = values.iter().all(|value| is_stop_word(value));
        let detector = DialectDetector { dialect: self, values: ReasonSet::new(&values), is_within_scan };
        ConfiguredDetector::new(detector, json!({self.key: values}))
    }
}

/// A detector of values in a dialect.
#[derive(Debug)]
struct DialectDetector {
    dialect: &'static Dialect,
    values: ReasonSet,
    /// Whether all values mean a stop to the readers too, who look where this detector looks.
    is_within_scan: bool,
}

impl SafetyDetector for DialectDetector {
    fn name(&self) -> &'static str {
        self.dialect.name
    }

    fn is_within_scan(&self) -> bool {
        self.is_within_scan
    }

    fn detect(&self, response: &ResponseView<'_>) -> Option<Detection> {
        response.detect((self.dialect.reasons)(response), &self.values, self.dialect.extras)
    }
}
