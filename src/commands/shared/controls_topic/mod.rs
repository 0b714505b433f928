//! The controls topic, as commands read it whole: the listing of its last records, and the reports of the workers in it.

mod listing;
mod read;
mod worker_reports;

use anyhow::anyhow;

use tollgate_config::settings::Settings;

pub(crate) use listing::{Listing, compact};
pub(crate) use read::{read, read_in_time};
pub(crate) use worker_reports::{Purpose, WaitArgs, WorkerReports, Written};

/// Refuses to look up an id without every key that a worker has: the id may be suspended under that key.
///
/// # Errors
/// The controls topic cannot be read, or a worker has another key.
pub(crate) fn check_keys_of_workers(settings: &Settings) -> anyhow::Result<()> {
    check_lookup(&read(&settings.kafka)?, settings)
}

/// Refuses a lookup as [`check_keys_of_workers`] does, by a listing that is read already.
///
/// # Errors
/// A worker has another key.
pub(crate) fn check_lookup(listing: &Listing, settings: &Settings) -> anyhow::Result<()> {
    let checked = WorkerReports::of(listing.reports()).check_keys(&settings.kafka.group_id, settings.subject_keys.iter(), Purpose::LookUp);
    checked.map_err(|error| anyhow!("{error:#}, or name the subject as KIND/HASH"))
}
