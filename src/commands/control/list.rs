//! `tollgate control list`: what is in force and what was refused, as JSONL.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use crate::settings::KafkaSettings;

use super::written::read;

pub(super) fn execute(kafka: &KafkaSettings) -> anyhow::Result<ExitCode> {
    let listing = read(kafka)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in listing.lines() {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    let (in_force, refused) = listing.counts();
    let refused_text = if refused > 0 { format!(", refused records: {refused}") } else { String::new() };
    say!("controls in force: {in_force}{refused_text}");
    Ok(if refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
