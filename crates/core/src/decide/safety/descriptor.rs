//! Descriptors of safety detectors: the names of a detector, how its configuration is read, and what was read.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::SafetyDetector;
use crate::settings::{Named, Section};

/// One kind of detector: its names, and how its configuration is read. It stands beside the detector's code.
#[derive(Debug)]
pub struct DetectorDescriptor {
    /// The name in configuration and verdicts.
    pub name: &'static str,
    /// Other names for it in configuration, such as the class that another system has for it.
    pub aliases: &'static [&'static str],
    /// Reads the `config` of an entry, with the detector's defaults for what it leaves out. Faults are added to the section.
    pub read: fn(&Section<'_>) -> ConfiguredDetector,
}

impl Named for DetectorDescriptor {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }
}

/// A configured detector. It is serialised as an entry of `detectors` with defaults filled in, and the policy's version is a digest of
/// that.
#[derive(Debug, Clone, Serialize)]
pub struct ConfiguredDetector {
    #[serde(rename = "use")]
    name: &'static str,
    config: Value,
    #[serde(skip)]
    detector: Arc<dyn SafetyDetector>,
}

impl ConfiguredDetector {
    /// Returns a detector with the configuration that it was built from, defaults filled in. Everything that it decides by has to be in
    /// that configuration.
    #[must_use]
    pub fn new(detector: impl SafetyDetector + 'static, config: Value) -> Self {
        Self { name: detector.name(), config, detector: Arc::new(detector) }
    }

    /// Returns the reasons why a response ends that the detector is configured to look for.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        let lists = self.config.as_object().into_iter().flat_map(|config| config.values());
        lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str)
    }

    /// Returns the detector.
    #[must_use]
    pub fn detector(&self) -> Arc<dyn SafetyDetector> {
        Arc::clone(&self.detector)
    }
}
