//! `tollgate control`: switches for the whole fleet, as records of the controls topic. Each acts at once, in every worker.

mod history;
mod list;
mod listing;
mod passport;
mod read;
mod subject;
mod table;
mod worker_reports;
mod write;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Subcommand;

use tollgate_config::settings::Settings;

use self::listing::Listing;
use self::subject::Switch;
use self::worker_reports::{Purpose, WorkerReports};
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

/// Refuses to look up an id without every key that a worker has: the id may be suspended under that key.
///
/// # Errors
/// The controls topic cannot be read, or a worker has another key.
pub(super) fn check_keys_of_workers(settings: &Settings) -> anyhow::Result<()> {
    check_lookup(&read::read(&settings.kafka)?, settings)
}

fn check_lookup(listing: &Listing, settings: &Settings) -> anyhow::Result<()> {
    let checked = WorkerReports::of(listing.reports()).check_keys(&settings.kafka.group_id, settings.subject_keys.iter(), Purpose::LookUp);
    checked.map_err(|error| anyhow!("{error:#}, or name the subject as KIND/HASH"))
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
