//! `tollgate signals`: looking at what providers send.

mod explain;

use std::process::ExitCode;

use clap::Subcommand;

use super::shared::output::Screen;
use tollgate_config::settings::Settings;

#[derive(Debug, Subcommand)]
pub(super) enum SignalsCommand {
    /// What is read in a provider's body, which rule speaks, and what the configuration makes of it
    Explain(explain::ExplainArgs),
}

pub(super) fn execute(command: &SignalsCommand, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    match command {
        SignalsCommand::Explain(args) => explain::execute(args, &settings.policy, screen),
    }
}
