//! The detector that reads every provider in its own words, along the paths of all readers.

use serde_json::json;

use super::reading::{READERS, Signal};
use super::response::extras_of;
use super::{ConfiguredDetector, Detection, DetectorDescriptor, ResponseView, SafetyDetector};
use crate::settings::{Section, nearest};

/// The detector's name.
const NAME: &str = "native";
/// The key of the rules that are switched off.
const WITHOUT: &str = "without";

/// What providers say beside a stop: its name in the body, and in the verdict.
const EXTRAS: &[(&str, &str)] =
    &[("content_filter_results", "content_filter_results"), ("safety_ratings", "safety_ratings"), ("safetyRatings", "safety_ratings")];

pub(super) static NATIVE: DetectorDescriptor = DetectorDescriptor { name: NAME, aliases: &[], read };

/// The detector.
#[derive(Debug)]
struct Native {
    /// The rules that are switched off.
    without: Vec<String>,
}

fn read(config: &Section<'_>) -> ConfiguredDetector {
    let without = config.strings(WITHOUT).unwrap_or_default();
    for name in &without {
        if !rules().any(|rule| rule == name) {
            let fix = match nearest(name, rules()) {
                Some(rule) => format!("write {rule}, or leave it out"),
                None => "write the name of a rule, as verdicts show it in `safety.detector`".to_owned(),
            };
            config.fault(WITHOUT, format!("a name of {} bytes that no rule has", name.len()), fix);
        }
    }
    let config = json!({WITHOUT: without});
    ConfiguredDetector::new(Native { without }, config)
}

/// Returns the names of all rules, some of them several times.
fn rules() -> impl Iterator<Item = &'static str> {
    READERS.iter().flat_map(|reader| reader.reasons).map(|reason| reason.rule)
}

impl SafetyDetector for Native {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reads_every_shape(&self) -> bool {
        true
    }

    fn is_within_scan(&self) -> bool {
        true
    }

    fn detect(&self, response: &ResponseView<'_>) -> Option<Detection> {
        let is_on = |signal: &&Signal<'_>| self.without.iter().all(|name| name != signal.reason.rule);
        let signals = || response.scan.iter().flat_map(|scan| &scan.signals).filter(is_on);
        let signal = signals().next()?;
        let found = signal.found.clone();
        // Several signals may flag calls. A signal that flags no single calls is about all of them.
        let flagged = signals().map(|signal| signal.found.flagged.as_deref()).collect::<Option<Vec<_>>>();
        Some(Detection {
            rule: Some(signal.reason.rule),
            shape: Some(signal.reader.name),
            stage: found.stage,
            extras: extras_of(signal.beside, EXTRAS),
            flagged: flagged.map(|ids| ids.into_iter().flatten().cloned().collect()),
            ..Detection::new(found.category, signal.reason.field, found.value)
        })
    }
}
