//! Presets: whole sets of thresholds under a name, each a file in `config/loops`. What a configuration writes beside the name overrides
//! them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::settings::{self, Section};

macro_rules! presets {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)+) => {
        /// A preset of the loop controllers.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Preset { $($(#[$doc])* $variant,)+ }

        /// Every preset with its name and its text.
        pub const PRESETS: &[(&str, Preset, &str)] = &[
            $(($name, Preset::$variant, include_str!(concat!("../../../../../config/loops/", $name, ".yaml"))),)+
        ];
    };
}

presets! {
    /// The seed's controller, as it has always been.
    #[default]
    Seed "seed",
    /// Rules that refuse the call that repeats.
    Tollgate "tollgate",
    /// What the Hermes agent does today.
    Hermes "hermes",
    /// What OpenHands documents.
    Openhands "openhands",
    /// What gemini-cli documents.
    GeminiCli "gemini_cli",
    /// What DeerFlow documents.
    Deerflow "deerflow",
}

static VALUES: LazyLock<BTreeMap<&str, Map<String, Value>>> = LazyLock::new(|| {
    let parsed = PRESETS.iter().filter_map(|(name, _, text)| Some((*name, settings::parse(text).ok()?.as_object()?.clone())));
    parsed.collect()
});

impl Preset {
    /// Returns whether it is the preset of an empty configuration.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        PRESETS.iter().find(|(_, preset, _)| *preset == self).map_or("seed", |(name, ..)| name)
    }
}

/// Reads which preset a section names, and puts that preset's values behind the section.
pub(super) fn read(section: Section<'_>) -> (Preset, Section<'_>) {
    let names: Vec<_> = PRESETS.iter().map(|(name, preset, _)| (*name, *preset)).collect();
    let named = section.word("preset", &names);
    if named.is_none() && section.is_written("preset") {
        section.pass_over_all();
    }
    let preset = named.unwrap_or_default();
    let values = VALUES.get(preset.name());
    (preset, section.with_defaults(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preset_seed_is_what_an_empty_configuration_gets() {
        assert_eq!(VALUES.len(), PRESETS.len(), "a preset is not YAML");
        let defaults = settings::defaults().unwrap();
        assert_eq!(&Value::Object(VALUES["seed"].clone()), &defaults["tool_loop_guardrails"]);
    }
}
