//! `tollgate abuse`: what the abuse stage has found and done, from its topics alone, and what operators can ask it for.

mod alerts;
mod blocklist;
mod explain;
mod known;
mod pardon;
mod requests;
mod resume;
mod rules;
mod show;
mod subject_counts;
mod switches;
mod test;
mod top;

use std::process::ExitCode;

use clap::Subcommand;

use tollgate_config::settings::Settings;

use crate::commands::shared::suites::SuiteArgs;
use crate::commands::shared::{Hints, Screen, start_quiet_logging};

#[derive(Debug, Subcommand)]
pub(super) enum AbuseCommand {
    /// Is a subject suspended, why, and what else is known of it; its id is hashed here and never leaves this process
    Show(show::ShowArgs),
    /// Have the abuse stage forget what a subject has done, and end its suspension
    Pardon(pardon::PardonArgs),
    /// Let a rule enforce again that stopped because it would have suspended too many at once
    Resume(resume::ResumeArgs),
    /// Who is suspended now, by which rule, until when
    Blocklist(blocklist::BlocklistArgs),
    /// Which rules fire, and who is found most often
    Top(top::TopArgs),
    /// Which rules are in force, the pack's and one's own; with `--explain ID` one of them in words
    Rules(rules::RulesArgs),
    /// Unit tests of rules: signals at times in files, expected alerts against those that come
    Test(SuiteArgs),
}

pub(super) fn execute(command: &AbuseCommand, settings: Settings, hints: &Hints, screen: Screen) -> anyhow::Result<ExitCode> {
    start_quiet_logging(settings.log.clone(), "error")?;
    match command {
        AbuseCommand::Show(args) => show::execute(args, &settings, hints, screen),
        AbuseCommand::Pardon(args) => pardon::execute(args, &settings, hints),
        AbuseCommand::Resume(args) => resume::execute(args, &settings, hints),
        AbuseCommand::Blocklist(args) => blocklist::execute(args, &settings.kafka, screen),
        AbuseCommand::Top(args) => top::execute(args, &settings, hints, screen),
        AbuseCommand::Rules(args) => rules::execute(args, &settings.abuse, screen),
        AbuseCommand::Test(args) => test::execute(args, &settings, screen),
    }
}
