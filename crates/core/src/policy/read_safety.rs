//! `safety_finish_reason`: the block as DeerFlow writes it.

use crate::policy::DetectorSettings;
use crate::safety::{AnthropicRefusal, GeminiSafety, OpenAiCompatibleContentFilter};

use crate::settings::Section;

const KNOWN: &str = "write `openai_compatible_content_filter`, `anthropic_refusal` or `gemini_safety`";
const EMPTY_LIST: &str = "omit it for the built-ins, or set `enabled: false`";

pub(super) fn read(section: &Section<'_>) -> Vec<DetectorSettings> {
    let is_enabled = section.bool("enabled");
    let entries = section.sections("detectors");
    if entries.as_ref().is_some_and(Vec::is_empty) && section.value("detectors").is_some_and(serde_json::Value::is_array) {
        section.fault("detectors", "an empty list", EMPTY_LIST);
    }
    let detectors = entries.unwrap_or_default().iter().filter_map(read_detector).collect();
    if is_enabled { detectors } else { Vec::new() }
}

fn read_detector(entry: &Section<'_>) -> Option<DetectorSettings> {
    let name = entry.string("use");
    let config = entry.section("config");
    let values = |key: &'static str, defaults: &[&str]| match config.strings(key) {
        None => defaults.iter().map(|value| (*value).to_owned()).collect(),
        Some(values) => {
            let is_empty_list = config.value(key).and_then(serde_json::Value::as_array).is_some_and(Vec::is_empty);
            if is_empty_list {
                config.fault(key, "an empty list", "omit it for the built-in values");
            }
            values
        }
    };
    // A class path names its class behind the colon.
    match name.rsplit(':').next().unwrap_or_default() {
        OpenAiCompatibleContentFilter::NAME | "OpenAICompatibleContentFilterDetector" => {
            let defaults = OpenAiCompatibleContentFilter::DEFAULT_FINISH_REASONS;
            Some(DetectorSettings::OpenaiCompatibleContentFilter { finish_reasons: values("finish_reasons", defaults) })
        }
        AnthropicRefusal::NAME | "AnthropicRefusalDetector" => {
            Some(DetectorSettings::AnthropicRefusal { stop_reasons: values("stop_reasons", AnthropicRefusal::DEFAULT_STOP_REASONS) })
        }
        GeminiSafety::NAME | "GeminiSafetyDetector" => {
            Some(DetectorSettings::GeminiSafety { finish_reasons: values("finish_reasons", GeminiSafety::DEFAULT_FINISH_REASONS) })
        }
        "" => None,
        _ => {
            entry.fault("use", "an unknown detector", KNOWN);
            None
        }
    }
}
