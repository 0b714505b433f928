//! The options of a command line that lead to a configuration and its brokers.

use std::path::PathBuf;

use clap::Args;
use tollgate_config::load_as_of;
use tollgate_config::settings::Settings;

/// An argument that no configuration could make right. Arguments are not quoted, since one may be a password in the wrong place.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

// A doc comment would become the text of the commands that take the options.
#[derive(Debug, Default, Args)]
#[allow(missing_docs, reason = "the comments of the fields are the help of the options")]
pub struct Connection {
    /// Configuration file (YAML); without one the built-in defaults apply
    #[arg(short, long, global = true, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    pub config: Option<PathBuf>,
    /// Brokers to begin with, separated by commas, over `kafka.brokers` of the configuration
    #[arg(short, long, global = true, value_name = "HOST:PORT,…")]
    pub brokers: Option<String>,
    /// Set a librdkafka property, over those of the configuration
    #[arg(short = 'X', global = true, value_name = "KEY=VALUE")]
    pub properties: Vec<String>,
}

impl Connection {
    /// Reads the configuration, overridden by the options.
    ///
    /// # Errors
    /// The configuration cannot be read or is wrong, or a property is not written as `KEY=VALUE`, or the file of a property cannot be read.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        self.settings_as_of(i64::MIN)
    }

    /// Reads the configuration as [`Connection::settings`] does. Exceptions of rules that are over at `now_ms`, in milliseconds since the epoch,
    /// are faults.
    ///
    /// # Errors
    /// As [`Connection::settings`].
    pub fn settings_as_of(&self, now_ms: i64) -> anyhow::Result<Settings> {
        let mut settings = load_as_of(self.config.as_deref(), std::env::vars_os(), now_ms)?;
        for assignment in &self.properties {
            settings.kafka.set_property(assignment).map_err(UsageError)?;
        }
        if !self.properties.is_empty() {
            settings.kafka.load_property_files(|path| std::fs::read(path).map_err(|error| error.to_string()))?;
        }
        if let Some(brokers) = &self.brokers {
            settings.kafka.set_brokers(brokers).map_err(UsageError)?;
        }
        Ok(settings)
    }
}
