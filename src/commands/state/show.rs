//! `tollgate state show`: prints one thread's state on stdout.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;

use crate::settings::KafkaSettings;

use super::super::topics::Topics;
use super::lookup::look_up;
use super::{ThreadArgs, warn_of_other_owner};

#[derive(Debug, Args)]
pub(in crate::commands) struct ShowArgs {
    #[command(flatten)]
    thread: ThreadArgs,
}

pub(super) fn execute(args: &ShowArgs, kafka: &KafkaSettings) -> anyhow::Result<ExitCode> {
    let topics = Topics::new(kafka)?;
    let topic = topics.state()?;
    let known = look_up(&topics, topic, args.thread.partition_in(topic)?, &args.thread.thread_id)?;
    if let Some(owner) = known.owner() {
        warn_of_other_owner(kafka, owner);
    }
    let Some(view) = known.view()? else { bail!("{}; --partition N looks in another partition", known.absence()) };
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&view)?)?;
    Ok(ExitCode::SUCCESS)
}
