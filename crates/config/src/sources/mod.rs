//! The sources of the configuration: the embedded defaults, a YAML file, the environment and secret files.

mod document;
mod environment;
mod excerpt;
mod places;

pub use document::Document;

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;

use crate::settings::Settings;
use excerpt::Source;
use places::Places;
use tollgate_core::settings::{self, Faults};

/// Why the configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{path}: cannot be read")]
    Unreadable {
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text is not YAML.
    #[error("{origin} is not valid YAML: {reason}")]
    Syntax {
        /// The file or variable.
        origin: String,
        /// The place in the text, and why it is not YAML.
        reason: String,
    },
    /// A variable names an element that its list does not have.
    #[error("{variable}: found the place of no element; the list has {length}, write {length} to add one")]
    NoElement {
        /// The name of the variable.
        variable: String,
        /// How many elements the list has.
        length: usize,
    },
    /// An empty variable would take away what the file has.
    #[error("{variable}: found an empty text over what the file has there; write null to take that away, or do not set the variable")]
    Emptied {
        /// The name of the variable.
        variable: String,
    },
    /// A variable is hardly meant for anything but the configuration, and has no effect.
    #[error("{variable}: found the name of a key with one underscore behind TOLLGATE or in lower case, which sets nothing; write {fix}")]
    Misspelt {
        /// The name of the variable.
        variable: String,
        /// The name that sets the key.
        fix: String,
    },
    /// Some values are wrong.
    #[error("{origin}:\n{shown}")]
    Invalid {
        /// The file, or the environment.
        origin: String,
        /// The faults as sentences, with the places and lines of those that are in the file.
        shown: String,
        /// Everything that is wrong.
        faults: Faults,
    },
}

/// Loads the configuration: the defaults, then the file if there is one, then the `TOLLGATE__…` variables.
///
/// An exception of a rule that is over is no fault here: time alone must not keep a worker from starting.
///
/// # Errors
/// Returns [`ConfigError`]: what cannot be read, or everything that is wrong.
pub fn load(file: Option<&Path>, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Settings, ConfigError> {
    load_as_of(file, variables, i64::MIN)
}

/// Loads the configuration as [`load`] does. Exceptions of rules that are over at `now_ms`, in milliseconds since the epoch, are faults.
///
/// # Errors
/// Returns [`ConfigError`]: what cannot be read, or everything that is wrong.
pub fn load_as_of(
    file: Option<&Path>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    now_ms: i64,
) -> Result<Settings, ConfigError> {
    let origin = file.map_or_else(|| "environment".to_owned(), |path| path.display().to_string());
    let text = match file {
        Some(path) => std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: origin.clone(), source })?,
        None => String::new(),
    };
    let defaults = settings::defaults()
        .map_err(|error| ConfigError::Syntax { origin: "the built-in defaults".to_owned(), reason: error.to_string() })?;
    let user = parse(&text, &origin, &defaults)?;
    let written = environment::over(user, &defaults, variables)?;
    let read = |path: &str| std::fs::read(path).map_err(|error| error.to_string());
    let settings = Settings::read_with_texts(&written.values, &written.texts, &defaults, now_ms);
    let settings = settings.and_then(|mut settings| {
        settings.policy.load_files(read)?;
        settings.kafka.load_property_files(read).map(|()| settings)
    });
    settings.map_err(|faults| {
        let source = Source { origin: &origin, text: &text, notes: &Settings::notes(&defaults) };
        let places = Places::of(&text).unwrap_or_default();
        let shown: Vec<_> = faults.0.iter().map(|fault| source.fault(fault, &places)).collect();
        ConfigError::Invalid { shown: shown.join("\n"), origin, faults }
    })
}

fn parse(text: &str, origin: &str, defaults: &Value) -> Result<Value, ConfigError> {
    settings::parse(text).map_err(|_| {
        let notes = Settings::notes(defaults);
        let reason = match Places::of(text) {
            Err(error) => Source { origin, text, notes: &notes }.syntax(&error),
            // The parser's own words quote what it found.
            Ok(_) => "it is no mapping of sections, or it is more than one document, or a key stands twice in it".to_owned(),
        };
        ConfigError::Syntax { origin: origin.to_owned(), reason }
    })
}
