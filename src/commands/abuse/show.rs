//! `tollgate abuse show`: is a subject suspended, why, and what else is known of it.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Args;

use tollgate_config::settings::Settings;

use super::alerts::{Alert, field_text};
use super::explain::{UNKNOWN, because, verdict};
use super::known::{SubjectReport, controls};
use super::subject_counts::SubjectCounts;
use crate::commands::shared::SubjectArgs;
use crate::commands::shared::controls_topic::check_keys_of_workers;
use crate::commands::shared::{Column, Hints, OutputArgs, OutputFormat, Screen, TITLE, Table, ago, number, shown, text};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// How many alerts to show, the latest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    #[command(flatten)]
    output: OutputArgs,
}

const CONTROLS: &[Column] =
    &[text("by"), text("state"), text("until"), text("rule"), number("step"), text("reason"), text("alert").wide(), text("subject").wide()];

const ALERTS: &[Column] = &[
    text("when"),
    text("rule"),
    text("level"),
    text("status"),
    text("mode"),
    number("count"),
    number("step"),
    text("action"),
    text("until"),
    text("what").wide(),
    text("alert").wide(),
];

const COUNTS: &[Column] =
    &[text("rule"), text("group"), number("count"), number("of"), text("step"), text("a step down at"), text("suspended until")];

pub(super) fn execute(args: &ShowArgs, settings: &Settings, hints: &Hints, screen: Screen) -> anyhow::Result<ExitCode> {
    let subject = args.subject.resolve(settings)?;
    if subject.is_hashed {
        check_keys_of_workers(settings)?;
    }
    let known = SubjectReport::read(subject, settings)?;
    let sentences = verdict(&known, &settings.abuse.rules, hints);
    let mut out = BufWriter::new(std::io::stdout().lock());
    match args.output.format() {
        OutputFormat::Json => {
            writeln!(out, "{}", known.to_json(&sentences, args.limit))?;
            out.flush()?;
        }
        format => {
            writeln!(out, "{}", screen.paint(TITLE, &known.subject.name()))?;
            sentences.lines().try_for_each(|sentence| writeln!(out, "{}", shown(sentence)))?;
            let controls: Vec<_> = known.switches.iter().flat_map(|(key, said)| controls(*key, said)).collect();
            section(&mut out, "controls", &controls_table(&controls), (controls.len(), screen, format))?;
            let alerts: Vec<_> = known.alerts.iter().take(args.limit).collect();
            section(&mut out, "alerts", &alerts_table(&alerts, &known, settings), (alerts.len(), screen, format))?;
            match &known.counts {
                Some(counts) => {
                    let rows = counts.iter().map(|counts| counts.view.counters.len()).sum();
                    section(&mut out, "counted, as of the last checkpoint", &counts_table(counts), (rows, screen, format))?;
                }
                // The verdict says so too where there is nothing else to say.
                None if !sentences.contains(UNKNOWN) => {
                    writeln!(out, "\n{UNKNOWN}")?;
                    out.flush()?;
                }
                None => {}
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a table under a title, unless it is empty.
fn section(out: &mut impl Write, title: &str, table: &Table, (rows, screen, format): (usize, Screen, OutputFormat)) -> std::io::Result<()> {
    if rows == 0 {
        return out.flush();
    }
    writeln!(out, "\n{}", screen.paint(TITLE, title))?;
    table.write(out, screen, format)
}

fn controls_table(controls: &[serde_json::Value]) -> Table {
    let mut table = Table::new(CONTROLS);
    for control in controls {
        let text = |field: &str| field_text(control, field).into_owned();
        table.row(["by", "state", "until", "rule", "step", "reason", "alert_id", "subject"].map(text).into());
    }
    table
}

fn alerts_table(alerts: &[&Alert], known: &SubjectReport, settings: &Settings) -> Table {
    let mut table = Table::new(ALERTS);
    for alert in alerts {
        let rule = settings.abuse.rules.rules.iter().find(|rule| alert.text("rule") == rule.id);
        let mut row = vec![alert.time_ms.map_or_else(|| "-".to_owned(), |time_ms| ago(time_ms, known.now_ms))];
        row.extend(["rule", "level", "status", "mode", "count", "step", "action", "until"].map(|field| alert.text(field).into_owned()));
        row.extend([because(alert, rule), alert.text("alert_id").into_owned()]);
        table.row(row);
    }
    table
}

fn counts_table(counts: &[SubjectCounts]) -> Table {
    let mut table = Table::new(COUNTS);
    for counted in counts.iter().flat_map(|counts| &counts.view.counters) {
        table.row(vec![
            counted.rule.clone(),
            counted.group.clone(),
            counted.count.to_string(),
            counted.threshold.to_string(),
            counted.step.map_or_else(String::new, |step| format!("{step} of {}", counted.steps)),
            counted.descends.clone().unwrap_or_default(),
            counted.until.clone().unwrap_or_default(),
        ]);
    }
    table
}
