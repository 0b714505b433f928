//! `tollgate abuse rules`: the rules that are in force, those of the pack among them, and one of them in words.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use tollgate_abuse::{AbuseSettings, Baseline, Correlation, FieldTest, Mode, Operator, Pack, Ratio, Rule, Step};
use tollgate_core::settings::{duration_text, nearest};

use crate::commands::shared::{Column, OutputArgs, OutputFormat, Screen, TITLE, Table, UsageError, shown, text};

#[derive(Debug, Args)]
pub(crate) struct RulesArgs {
    /// Say in words what one rule does, and who changed each of its numbers
    #[arg(long, value_name = "ID")]
    explain: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

const COLUMNS: &[Column] = &[
    text("rule"),
    text("counts"),
    text("by"),
    text("fires at"),
    text("within"),
    text("does"),
    text("from"),
    text("steps").wide(),
    text("fields").wide(),
    text("title").wide(),
];

pub(super) fn execute(args: &RulesArgs, settings: &AbuseSettings, screen: Screen) -> anyhow::Result<ExitCode> {
    let listed: Vec<_> = settings.listed().collect();
    if let Some(id) = &args.explain {
        let Some((rule, value)) = listed.iter().find(|(rule, _)| rule.id == *id) else {
            return Err(not_in_force(id, settings).into());
        };
        let mut out = std::io::stdout().lock();
        match args.output.format() {
            OutputFormat::Json => writeln!(out, "{value}")?,
            _ => out.write_all(explained(rule, value, settings, screen).as_bytes())?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    args.output.print(screen, listed.iter().map(|(_, value)| value), |_| table(&listed))?;
    let off: Vec<_> = settings.switched_off().collect();
    let off = if off.is_empty() { String::new() } else { format!("; off by abuse.overrides: {}", off.join(", ")) };
    let signals = if settings.signals { "" } else { "; nothing is counted, because abuse.signals is false" };
    say!("rules in force: {}; the pack is {}{off}{signals}", listed.len(), settings.pack.as_str());
    Ok(ExitCode::SUCCESS)
}

fn not_in_force(id: &str, settings: &AbuseSettings) -> UsageError {
    let ids: Vec<_> = settings.rules.rules.iter().map(|rule| rule.id.as_str()).collect();
    let fix = match nearest(id, ids.iter().copied()) {
        _ if settings.switched_off().any(|off| off == id) => "abuse.overrides switches it off".to_owned(),
        Some(nearest) => format!("write {nearest}"),
        None if ids.is_empty() => "no rule is in force".to_owned(),
        None => format!("those in force are {}", ids.join(", ")),
    };
    UsageError(format!("--explain: found the id of no rule that is in force; {fix}"))
}

fn table(listed: &[(&Rule, Value)]) -> Table {
    let mut table = Table::new(COLUMNS);
    for (rule, value) in listed {
        table.row(vec![
            rule.id.clone(),
            rule.detection.signal.as_str().to_owned(),
            by(rule),
            fires_at(&rule.correlation),
            duration_text(rule.timespan_ms),
            rule.mode.as_str().to_owned(),
            from(value).to_owned(),
            steps(rule),
            fields(rule),
            value.get("title").and_then(Value::as_str).unwrap_or_default().to_owned(),
        ]);
    }
    table
}

/// Returns where a rule is from, in a word.
fn from(rule: &Value) -> &'static str {
    match (is_from_pack(rule), rule.get("overridden")) {
        (true, Some(_)) => "pack, changed",
        (true, None) => "pack",
        (false, _) => "own",
    }
}

fn is_from_pack(rule: &Value) -> bool {
    rule.get("from").and_then(Value::as_str) == Some("pack")
}

/// Returns what a rule counts apart.
fn by(rule: &Rule) -> String {
    let dimensions = rule.group_by.dimensions.iter().map(|dimension| dimension.as_str());
    [rule.group_by.kind.as_str()].into_iter().chain(dimensions).collect::<Vec<_>>().join(", ")
}

/// Returns the fields that a signal has to have to count.
fn fields(rule: &Rule) -> String {
    let field = |field: &FieldTest| {
        let operator = if field.operator == Operator::Equals { String::new() } else { format!(" {}", field.operator.as_str()) };
        format!("{}{operator} {}", field.dimension.as_str(), field.values.join("|"))
    };
    rule.detection.fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn steps(rule: &Rule) -> String {
    let step = |step: &Step| match step {
        Step::Warn => "warn".to_owned(),
        Step::Suspend(suspension_ms) => duration_text(*suspension_ms),
    };
    rule.ladder.steps.iter().map(step).collect::<Vec<_>>().join(", ")
}

fn does(rule: &Rule) -> &'static str {
    match rule.mode {
        Mode::Shadow => "counts in metrics only",
        Mode::Alert => "raises alerts",
        Mode::Enforce => "raises alerts and suspends",
    }
}

fn fires_at(correlation: &Correlation) -> String {
    match correlation {
        Correlation::EventCount { gte } => gte.to_string(),
        Correlation::ValueCount { field, gte } => format!("{gte} {} values", field.as_str()),
        Correlation::ValueSum { gte } => format!("a sum of {gte}"),
        Correlation::Ratio(ratio) => format!("{} of {}", ratio.gte, ratio.over.as_str()),
        Correlation::Baseline(baseline) => format!("{} × median", baseline.factor),
    }
}

/// Returns a rule in words: what it counts, when it fires and what follows, each with who changed it.
fn explained(rule: &Rule, value: &Value, settings: &AbuseSettings, screen: Screen) -> String {
    let text = |key: &str| shown(value.get(key).and_then(Value::as_str).unwrap_or_default()).into_owned();
    let mut lines = vec![format!("{}: {}", screen.paint(TITLE, &rule.id), text("title"))];
    lines.extend(value.get("description").map(|_| format!("why: {}", text("description"))));
    lines.push(format!("from: {}", if is_from_pack(value) { "the pack" } else { "abuse.rules" }));
    let fields = fields(rule);
    let fields = if fields.is_empty() { fields } else { format!(" with {fields}") };
    lines.push(format!("counts: {}{fields}, for each {}", rule.detection.signal.as_str(), by(rule)));
    lines.extend(thresholds(&rule.correlation).into_iter().map(|(key, says)| format!("{says}{}", changed(value, key))));
    lines.push(format!("within: {}{}", duration_text(rule.timespan_ms), changed(value, "timespan")));
    lines.push(format!("does: {}{}", does(rule), why_mode(rule, value, settings)));
    if !rule.ladder.steps.is_empty() {
        let decay = duration_text(rule.ladder.decay_ms);
        lines.push(format!("steps: {} (durations are suspensions); each {decay} without a firing is a step back", steps(rule)));
    }
    lines.push(format!("repeats: a repeat at the same step raises no alert of its own for {}", duration_text(rule.suppress_ms)));
    if !rule.exceptions.is_empty() {
        lines.push(format!("exceptions: {}; `-o json` has them", rule.exceptions.len()));
    }
    lines.push(format!("version: {}", rule.version));
    lines.iter().map(|line| format!("{}\n", shown(line))).collect()
}

/// Returns why a rule of the pack has its mode.
fn why_mode(rule: &Rule, value: &Value, settings: &AbuseSettings) -> String {
    match (is_from_pack(value), settings.pack, rule.mode) {
        (false, ..) => String::new(),
        (true, Pack::Enforce, Mode::Alert) => ", because it has no step that suspends".to_owned(),
        (true, pack, _) => format!(", as abuse.pack is {}", pack.as_str()),
    }
}

/// Returns what an override says of a number: what the number is in the pack.
fn changed(rule: &Value, key: &str) -> String {
    let pack = rule.pointer(&format!("/overridden/{key}/pack"));
    let pack = pack.map(|pack| pack.as_str().map_or_else(|| pack.to_string(), str::to_owned));
    pack.map_or_else(String::new, |pack| format!(" (changed by abuse.overrides; the pack has {pack})"))
}

/// Returns a line for each number at which a rule fires, with the key that overrides it.
fn thresholds(correlation: &Correlation) -> Vec<(&'static str, String)> {
    match correlation {
        Correlation::EventCount { gte } => vec![("threshold", format!("fires at: {gte} signals"))],
        Correlation::ValueCount { field, gte } => vec![("threshold", format!("fires at: {gte} different values of {}", field.as_str()))],
        Correlation::ValueSum { gte } => vec![("threshold", format!("fires at: a sum of {gte}"))],
        Correlation::Ratio(Ratio { over, gte, min, for_ms }) => vec![
            ("threshold", format!("fires at: a share of {gte} of {}", over.as_str())),
            ("min", format!("needs: {min} of {} at least", over.as_str())),
            ("for", format!("holds for: {}", duration_text(*for_ms))),
        ],
        Correlation::Baseline(Baseline { factor, floor, history_ms, warmup_ms, for_ms }) => vec![
            ("factor", format!("fires at: {factor} times the median of its own timespans of the last {}", duration_text(*history_ms))),
            ("floor", format!("at least: {floor}")),
            ("warmup", format!("known for: {}", duration_text(*warmup_ms))),
            ("for", format!("holds for: {}", duration_text(*for_ms))),
        ],
    }
}
