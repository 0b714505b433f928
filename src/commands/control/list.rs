//! `tollgate control list`: what is in force and what was refused, as a table or as JSONL.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Args;

use tollgate_config::settings::KafkaSettings;

use super::table::table;
use crate::commands::shared::controls_topic::read;
use crate::commands::shared::{OutputArgs, OutputFormat, Screen};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn execute(args: &ListArgs, kafka: &KafkaSettings, screen: Screen) -> anyhow::Result<ExitCode> {
    let listing = read(kafka)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    match args.output.format() {
        OutputFormat::Json => {
            for line in listing.lines() {
                writeln!(out, "{line}")?;
            }
            out.flush()?;
        }
        format => table(listing.lines(), format == OutputFormat::Wide).write(&mut out, screen, format)?,
    }
    let (in_force, refused) = listing.counts();
    let refused_text = if refused > 0 { format!(", refused records: {refused}") } else { String::new() };
    say!("controls in force: {in_force}{refused_text}");
    Ok(if refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
