//! `tollgate dlq`: lists dead letters by reason, and sends them back to the topic that they came from.
//!
//! | file | what |
//! |---|---|
//! | `filter` | which letters are meant, and the reading of them |
//! | `letter` | one letter: where it came from and why it was refused |
//! | `groups` | counts of letters by reason, source, stage or time |
//! | `list` | `tollgate dlq list` |
//! | `redrive` | `tollgate dlq redrive`: what is sent back, and what is not |
//!
//! Nothing of a record's key and value is printed but their sizes.

mod filter;
mod groups;
mod letter;
mod list;
mod redrive;

use std::process::ExitCode;

use clap::Subcommand;

use tollgate_config::settings::Settings;

use crate::commands::shared::{Screen, start_quiet_logging};

#[derive(Debug, Subcommand)]
pub(super) enum DlqCommand {
    /// Dead letters: how many by reason, and the newest of them. Their keys and values are not shown
    List(list::ListArgs),
    /// Send dead letters back to the topic that they came from; without --execute, only say which
    Redrive(redrive::RedriveArgs),
}

pub(super) fn execute(command: &DlqCommand, settings: Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    start_quiet_logging(settings.log.clone(), "error")?;
    match command {
        DlqCommand::List(args) => list::execute(args, &settings.kafka, screen),
        DlqCommand::Redrive(args) => redrive::execute(args, &settings.kafka, screen),
    }
}
