//! Reading the section `safety_finish_reason`, as DeerFlow writes it.

use serde_json::Value;

use super::Registry;
use crate::decide::safety::ConfiguredDetector;
use crate::settings::{Section, find};

const EMPTY_LIST: &str = "omit it for the built-ins, or set `enabled: false`";

pub(super) fn read(section: &Section<'_>, registry: &Registry) -> Vec<ConfiguredDetector> {
    let is_enabled = section.bool("enabled");
    let entries = section.sections("detectors");
    if entries.as_ref().is_some_and(Vec::is_empty) && section.value("detectors").is_some_and(Value::is_array) {
        section.fault("detectors", "an empty list", EMPTY_LIST);
    }
    let detectors = entries.unwrap_or_default().iter().filter_map(|entry| read_detector(entry, registry)).collect();
    if is_enabled { detectors } else { Vec::new() }
}

fn read_detector(entry: &Section<'_>, registry: &Registry) -> Option<ConfiguredDetector> {
    let detector = find(entry, "detector", registry.detectors());
    let config = entry.section("config");
    detector.map(|detector| (detector.read)(&config))
}
