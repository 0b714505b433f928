//! `tollgate loops report`: presets side by side over recorded runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use tollgate_config::settings::Settings;
use tollgate_recordings::loops::{LoopReport, Row, Verdict, read_labels};

use super::{NAMED_MAX, named, read_conversations, read_events, with_event};
use crate::commands::shared::{Column, OutputArgs, REJECTED, Screen, Table, number, text};

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The runs: captures (.jsonl, .jsonl.zst), what `eval` reads, `-` for stdin, or folders of conversations with their verdicts
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Labels of threads for precision and recall, a JSON object a line: {"thread_id","verdict"}, a verdict being loop, soft_loop or
    /// productive
    #[arg(long, value_name = "FILE")]
    judged: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

const COLUMNS: &[Column] = &[
    text("preset"),
    number("threads"),
    number("warned"),
    number("refused"),
    number("halted"),
    number("lost by refusal"),
    number("lost by halt"),
    number("loops found"),
    number("soft loops"),
    number("productive harmed"),
    number("precision").wide(),
    number("recall").wide(),
    number("spared"),
];

pub(super) fn execute(args: &ReportArgs, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    let (rows, is_whole) = report(args, settings)?;
    args.output.print(screen, rows.iter(), |_| {
        let mut table = Table::new(COLUMNS);
        rows.iter().for_each(|row| table.row(cells(row)));
        table
    })?;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(REJECTED) })
}

/// Returns the report, and whether each line held an event.
fn report(args: &ReportArgs, settings: &Settings) -> anyhow::Result<(Vec<Row>, bool)> {
    let (mut report, mut labels, mut is_whole) = (LoopReport::new()?, BTreeMap::new(), true);
    for file in &args.files {
        if file.is_dir() {
            read_folder(file, settings, &mut report, &mut labels)?;
        } else {
            is_whole &= read_events(file, settings, |event| report.note(event))?;
        }
    }
    if let Some(judged) = &args.judged {
        let unreadable = || format!("{}: cannot be read", judged.display());
        let text = std::fs::read_to_string(judged).with_context(unreadable)?;
        let read = read_labels(&text).with_context(|| judged.display().to_string())?;
        say_unknown(&report.unknown(&read), read.len());
        labels.extend(read);
    }
    Ok((report.rows(&labels), is_whole))
}

/// Says how many labels are of threads that are not among the runs, and names some of these threads.
fn say_unknown(unknown: &[&str], labels: usize) {
    if unknown.is_empty() {
        return;
    }
    let named = named(unknown.iter().copied());
    let more = if unknown.len() > NAMED_MAX { ", …" } else { "" };
    say!(
        "tollgate: --judged: {} of {labels} labels are of threads without a call in the files, and count nowhere: {named}{more}",
        unknown.len()
    );
}

/// Reads the conversations of a folder, with their verdicts.
fn read_folder(
    folder: &std::path::Path,
    settings: &Settings,
    report: &mut LoopReport,
    labels: &mut BTreeMap<String, Verdict>,
) -> anyhow::Result<()> {
    for (name, conversation) in read_conversations(folder)? {
        labels.insert(name, conversation.verdict);
        for event in &conversation.events {
            with_event(event, settings, |event| report.note(event))?;
        }
    }
    Ok(())
}

fn cells(row: &Row) -> Vec<String> {
    let percent = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let counts = [row.threads, row.warned, row.denied, row.halted, row.new_denied, row.new_cut_off].map(|count| count.to_string());
    let judged = row.judged.map_or_else(
        || vec!["–".to_owned(); 6],
        |judged| {
            let of = |part: usize, whole: usize| format!("{part} of {whole}");
            vec![
                of(judged.loops_found, judged.loops),
                of(judged.soft_loops_found, judged.soft_loops),
                of(judged.productive_harmed, judged.productive),
                percent(judged.precision),
                percent(judged.recall),
                percent(judged.spared),
            ]
        },
    );
    [row.preset.to_owned()].into_iter().chain(counts).chain(judged).collect()
}
