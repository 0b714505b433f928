//! The options of every command, and the configuration that they lead to.

use std::path::{Path, PathBuf};

use clap::Args;
use tollgate_config::load_as_of;
use tollgate_config::settings::Settings;

use super::UsageError;
use super::output::ColorChoice;

/// The options of every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Configuration file (YAML); without one the built-in defaults apply
    #[arg(short, long, global = true, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Brokers to begin with, separated by commas, over `kafka.brokers` of the configuration
    #[arg(short, long, global = true, value_name = "HOST:PORT,…")]
    pub(crate) brokers: Option<String>,
    /// Set a librdkafka property, over those of the configuration
    #[arg(short = 'X', global = true, value_name = "KEY=VALUE")]
    pub(crate) properties: Vec<String>,
    /// When to use colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
}

impl Common {
    /// Reads the configuration, overridden by the properties of the command line.
    ///
    /// # Errors
    /// The configuration cannot be read or is wrong, or a property is not written as `KEY=VALUE`, or the file of one cannot be read.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        self.settings_as_of(i64::MIN)
    }

    /// Reads the configuration as [`Common::settings`] does. Exceptions of rules that are over at `now_ms`, in milliseconds since the epoch,
    /// are faults.
    pub(crate) fn settings_as_of(&self, now_ms: i64) -> anyhow::Result<Settings> {
        let mut settings = load_as_of(self.config.as_deref().map(Path::new), std::env::vars_os(), now_ms)?;
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
