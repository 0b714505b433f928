//! `tollgate state show`: prints one thread's state on stdout, for people or as JSON.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;

use tollgate_config::settings::KafkaSettings;
use tollgate_config::topics::TopicRole;

use super::lookup::look_up;
use super::{ThreadArgs, shown, warn_of_other_owner};
use crate::commands::shared::{OutputArgs, OutputFormat, Screen};
use tollgate_operations::Topics;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    thread: ThreadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn execute(args: &ShowArgs, kafka: &KafkaSettings, screen: Screen) -> anyhow::Result<ExitCode> {
    let topics = Topics::new(kafka)?;
    let topic = topics.find(TopicRole::State)?;
    let known = look_up(&topics, topic, args.thread.partition_in(topic)?, &args.thread.thread_id)?;
    if let Some(owner) = known.owner() {
        warn_of_other_owner(kafka, owner);
    }
    let Some(view) = known.view()? else { bail!("{}; --partition N looks in another partition", known.absence()) };
    let mut out = std::io::stdout().lock();
    match args.output.format() {
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&view)?)?,
        format => shown::write(&mut out, &serde_json::to_value(&view)?, screen, format)?,
    }
    Ok(ExitCode::SUCCESS)
}
