//! Parsing YAML into plain values, and the built-in defaults.

use config::{Config, File, FileFormat};
use serde_json::Value;

/// The built-in defaults: the text of `config/tollgate.yaml`.
pub const DEFAULTS: &str = include_str!("../../../../config/tollgate.yaml");

/// The error of a text that is not YAML, or not a mapping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct YamlError(String);

/// Returns the values of a YAML text. An empty document is an empty mapping, as in every tool that reads YAML.
pub fn parse(text: &str) -> Result<Value, YamlError> {
    let error = |error: config::ConfigError| YamlError(error.to_string());
    // Editors of some systems write a byte order mark in front of a text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_empty = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    let text = if is_empty { "{}" } else { text };
    let parsed = Config::builder().add_source(File::from_str(text, FileFormat::Yaml)).build().map_err(error)?;
    parsed.try_deserialize().map_err(error)
}

/// Returns the built-in defaults as values.
///
/// # Errors
/// [`YamlError`] if the embedded file is broken, which a test rules out.
pub fn defaults() -> Result<Value, YamlError> {
    parse(DEFAULTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_yaml_and_nothing_is_an_empty_mapping() {
        assert!(defaults().is_ok_and(|defaults| defaults.get("kafka").is_some()));
        for text in ["", "\n", "\u{feff}", "# a comment\n  # and another"] {
            assert_eq!(parse(text), Ok(serde_json::json!({})), "{text:?}");
        }
        assert!(parse("a: [").is_err());
    }
}
