//! `tollgate passport`: looking at passports.

mod check;
mod explain;

use std::process::ExitCode;

use clap::Subcommand;

use crate::settings::Settings;
use tollgate_core::policy::PolicySettings;

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

/// What is wrong with configured passports that were read and cannot be used. Calls that rely on them are denied.
pub(super) fn unusable(policy: &PolicySettings) -> impl Iterator<Item = String> {
    policy.passports().filter_map(|settings| {
        let ((key, path), fault) = settings.file().zip(settings.fault())?;
        Some(format!("{key}: {path} is no usable passport: {fault}; every call that relies on it is denied with oap.passport_invalid"))
    })
}
