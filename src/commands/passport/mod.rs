//! `tollgate passport`: looking at passports.

mod check;
mod suggest;

use std::process::ExitCode;

use clap::Subcommand;

use tollgate_config::settings::Settings;

#[derive(Debug, Subcommand)]
pub(super) enum PassportCommand {
    /// Every fault of a passport against the published schema, and what evaluation makes of it
    Check(check::CheckArgs),
}

pub(super) fn execute(command: &PassportCommand, settings: &Settings) -> anyhow::Result<ExitCode> {
    match command {
        PassportCommand::Check(args) => check::execute(args, &settings.policy),
    }
}
