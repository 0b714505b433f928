//! `tollgate eval`: reads events, or records as other programs print them, and writes their verdicts as JSONL, in order and in constant
//! memory.

mod evaluation;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use tollgate_core::controls::{CONTROL_BYTES_MAX, Controls};
use tollgate_core::policy::Policy;

use crate::capture::{Column, Decider, Format, Line, Reader, open, read_line};
use crate::metrics::Metrics;
use crate::settings::Settings;

use super::process;
use evaluation::Evaluation;

/// The exit code if a line was rejected.
const REJECTED: u8 = 3;
const BUFFER_BYTES: usize = 256 * 1024;

#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// Events as JSONL, or records as kcat -J, kafka-console-consumer.sh or a capture print them; `-` or nothing is stdin
    file: Option<PathBuf>,
    /// The format of the lines; each line tells it by itself
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    format: Format,
    /// Which columns kafka-console-consumer.sh was told to print before the value
    #[arg(long, value_enum, value_delimiter = ',', value_name = "COLUMN,…")]
    columns: Option<Vec<Column>>,
    /// Controls to decide under, as JSONL: {"key": "…", "value": {…} or null}, applied in order before the first event
    #[arg(long, value_name = "FILE")]
    controls: Option<PathBuf>,
}

pub(super) fn execute(args: &EvalArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    if args.columns.is_some() && !matches!(args.format, Format::Auto | Format::Console) {
        anyhow::bail!("--columns: found with another format; only the lines of kafka-console-consumer.sh have columns: --format console");
    }
    let lines = open(args.file.as_deref().unwrap_or(Path::new("-")))?;
    settings.policy.unusable().for_each(|fault| say!("tollgate: {fault}"));
    let runtime = process::runtime()?;
    let _entered = runtime.enter();
    let controls = Controls::new(settings.subject_key.as_deref());
    let refused = args.controls.as_deref().map_or(Ok(0), |path| apply_controls(path, &controls))?;
    let policy = Arc::new(Policy::under(&settings.policy, Arc::new(controls)));
    let servers = process::policy_servers(&settings.policy, &Metrics::new()?)?;
    let mut evaluation = Evaluation::new(&settings.kafka.topics.events, Decider::new(policy, servers));
    let verdicts = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
    let rejected = refused + evaluation.run(lines, Reader::new(args.format, args.columns.clone()), verdicts)?;
    Ok(if rejected > 0 { ExitCode::from(REJECTED) } else { ExitCode::SUCCESS })
}

/// Applies the controls of a file, and returns how many lines were refused. Each refusal is reported and changes nothing.
fn apply_controls(path: &Path, controls: &Controls) -> anyhow::Result<u64> {
    let name = path.display();
    let mut lines = open(path)?;
    let (mut line, mut refused) = (Vec::new(), 0);
    for number in 1_u64.. {
        let applied = match read_line(&mut lines, &mut line, CONTROL_BYTES_MAX).with_context(|| format!("{name}: cannot be read"))? {
            Line::End => break,
            Line::Whole if line.trim_ascii().is_empty() => continue,
            // The part kept of a line that is too long is still longer than a record may be, and is refused for that.
            Line::Whole | Line::TooLong => controls.apply_line(&line),
        };
        if let Err(rejection) = applied {
            refused += 1;
            let (code, field, found, fix) = (rejection.code.as_str(), rejection.field, rejection.found, rejection.fix);
            let report = serde_json::json!({"file": path, "line": number, "code": code, "field": field, "found": found, "fix": fix});
            writeln!(io::stderr(), "{report}")?;
        }
    }
    Ok(refused)
}
