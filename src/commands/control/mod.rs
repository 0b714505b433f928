//! `tollgate control`: switches for the whole fleet, as records of the controls topic. Each acts at once, in every worker.

mod history;
mod list;
mod passport;
mod subject;
mod table;
mod write;

use std::process::ExitCode;

use clap::Subcommand;

use tollgate_config::settings::Settings;

use self::subject::Switch;
use crate::commands::shared::{Hints, Screen, start_quiet_logging};

#[derive(Debug, Subcommand)]
pub(super) enum ControlCommand {
    /// Block every tool call of a subject from now on; its id is hashed here and never leaves this process
    Suspend(subject::SwitchArgs),
    /// Let the abuse stage not suspend a subject, whatever its rules say
    Exempt(subject::SwitchArgs),
    /// Lift a subject's suspension, or its exemption
    Resume(subject::ResumeArgs),
    /// Set and remove the passports of agents
    Passport {
        #[command(subcommand)]
        command: passport::PassportCommand,
    },
    /// What is in force, and what was refused
    List(list::ListArgs),
    /// Who has switched what, when and why, for one subject or for all
    History(history::HistoryArgs),
}

pub(super) fn execute(command: &ControlCommand, settings: Settings, hints: &Hints, screen: Screen) -> anyhow::Result<ExitCode> {
    start_quiet_logging(settings.log.clone(), "error")?;
    match command {
        ControlCommand::Suspend(args) => subject::switch(Switch::Suspended, args, &settings),
        ControlCommand::Exempt(args) => subject::switch(Switch::Exempt, args, &settings),
        ControlCommand::Resume(args) => subject::resume(args, &settings, hints),
        ControlCommand::Passport { command } => passport::execute(command, &settings.kafka, hints),
        ControlCommand::List(args) => list::execute(args, &settings.kafka, screen),
        ControlCommand::History(args) => history::execute(args, &settings, screen),
    }
}
