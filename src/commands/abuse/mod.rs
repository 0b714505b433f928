//! `tollgate abuse`: rules against abuse.

mod test;

use std::process::ExitCode;

use clap::Subcommand;

use super::output::Screen;
use crate::settings::Settings;

#[derive(Debug, Subcommand)]
pub(super) enum AbuseCommand {
    /// Unit tests of rules: signals at times in files, expected alerts against those that come
    Test(test::TestArgs),
}

pub(super) fn execute(command: &AbuseCommand, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    match command {
        AbuseCommand::Test(args) => test::execute(args, settings, screen),
    }
}
