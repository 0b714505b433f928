//! `tollgate abuse top`: which rules fire, and who is found most often, from the alerts topic.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use tollgate_core::abuse::Action;

use crate::settings::Settings;

use super::super::output::{Column, OutputArgs, OutputFormat, Screen, TITLE, Table, ago, now_ms, read_since, stamp};
use super::super::topics::Topics;
use super::alerts::{self, Alert};
use super::standing;
use super::switches::{self, AllSwitches};

/// The digits of a hash that are shown unless every column is asked for.
const DIGITS: usize = 16;

#[derive(Debug, Args)]
pub(in crate::commands) struct TopArgs {
    /// Count alerts from then on: a duration before now such as 24h, or RFC 3339
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = read_since)]
    since: i64,
    /// How many subjects to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    output: OutputArgs,
}

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'l> {
    Rule(&'l RuleLine),
    Subject(&'l SubjectLine),
}

/// What a rule has found.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
struct RuleLine {
    rule: String,
    /// `shadow`, `alert` or `enforce`; nothing where the configuration does not have the rule.
    mode: Option<&'static str>,
    firings: u64,
    alerts: u64,
    subjects: usize,
    /// Alerts of suspensions.
    suspensions: u64,
    /// Since when it enforces nothing, because it would have suspended too many at once.
    paused: Option<String>,
    last: Option<String>,
    #[serde(skip)]
    last_ms: Option<i64>,
}

/// What was found of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct SubjectLine {
    subject: String,
    firings: u64,
    alerts: u64,
    rules: BTreeSet<String>,
    suspended: bool,
    last: Option<String>,
    #[serde(skip)]
    last_ms: Option<i64>,
}

/// What was counted.
#[derive(Debug, Default)]
struct Counts {
    rules: BTreeMap<String, (RuleLine, BTreeSet<String>)>,
    subjects: BTreeMap<String, SubjectLine>,
}

const RULES: &[Column] = &[
    Column::text("rule"),
    Column::text("mode"),
    Column::number("firings"),
    Column::number("alerts"),
    Column::number("subjects"),
    Column::number("suspensions"),
    Column::text("last"),
    Column::text("enforcement"),
];

const SUBJECTS: &[Column] = &[
    Column::text("kind"),
    Column::text("hash"),
    Column::number("firings"),
    Column::number("alerts"),
    Column::text("suspended"),
    Column::text("last"),
    Column::text("rules"),
];

pub(super) fn execute(args: &TopArgs, settings: &Settings, screen: Screen) -> anyhow::Result<ExitCode> {
    let topics = Topics::new(&settings.kafka)?;
    let (now_ms, mut counts) = (now_ms(), Counts::default());
    // A rule that was paused before may be so still.
    let is_recent = |alert: &Alert| alert.time_ms.is_none_or(|time_ms| time_ms >= args.since);
    let alerts = alerts::read(&topics, |alert| is_recent(alert) || is_pause(alert))?;
    // In the order in which they came.
    alerts.latest_first.iter().rev().for_each(|alert| counts.add(alert));
    // Whether a rule is paused still is known to the stage alone. It is asked only if one ever was: its state may be large.
    if counts.rules.values().any(|(rule, _)| rule.paused.is_some()) {
        let paused = standing::paused(&topics, &settings.abuse.rules)?;
        for (rule, _) in counts.rules.values_mut().filter(|(rule, _)| !paused.contains(&rule.rule)) {
            rule.paused = None;
        }
        counts.rules.retain(|_, (rule, _)| rule.alerts > 0 || rule.paused.is_some());
    }
    let (rules, subjects) = counts.into_lines(settings, &switches::read(&topics)?, now_ms);
    let shown = subjects.get(..args.limit.min(subjects.len())).unwrap_or_default();
    let mut out = BufWriter::new(std::io::stdout().lock());
    match args.output.format() {
        OutputFormat::Json => {
            rules.iter().try_for_each(|rule| line(&mut out, &Line::Rule(rule)))?;
            shown.iter().try_for_each(|subject| line(&mut out, &Line::Subject(subject)))?;
            out.flush()?;
        }
        format => {
            rules_table(&rules, now_ms).write(&mut out, screen, format)?;
            if !shown.is_empty() {
                writeln!(out, "\n{}", screen.paint(TITLE, "found most often"))?;
                subjects_table(shown, now_ms, format == OutputFormat::Wide).write(&mut out, screen, format)?;
            }
        }
    }
    let paused = rules.iter().filter(|rule| rule.paused.is_some()).count();
    let recent = alerts.latest_first.iter().filter(|alert| is_recent(alert)).count();
    say!("since {}: alerts {recent}, subjects {}, paused rules {paused}", stamp(args.since), subjects.len());
    Ok(ExitCode::SUCCESS)
}

/// Returns whether an alert says that a rule enforces nothing any more.
fn is_pause(alert: &Alert) -> bool {
    alert.text("action") == Action::EnforcementPaused.as_str()
}

fn line(out: &mut impl Write, line: &Line<'_>) -> anyhow::Result<()> {
    Ok(writeln!(out, "{}", serde_json::to_string(line)?)?)
}

impl Counts {
    /// Counts an alert.
    fn add(&mut self, alert: &Alert) {
        let rule = alert.text("rule").into_owned();
        if rule.is_empty() {
            return;
        }
        let (line, subjects) = self.rules.entry(rule.clone()).or_default();
        line.rule.clone_from(&rule);
        if is_pause(alert) {
            line.paused = Some(alert.time_ms.map(stamp).unwrap_or_default());
            return;
        }
        let (firings, is_suspension) = (alert.firings(), alert.text("action") == Action::Suspended.as_str());
        line.firings += firings;
        line.alerts += 1;
        line.suspensions += u64::from(is_suspension);
        line.last_ms = line.last_ms.max(alert.time_ms);
        let Some(subject) = alert.subject().map(|key| key.to_string()) else { return };
        subjects.insert(subject.clone());
        let found = self.subjects.entry(subject.clone()).or_insert_with(|| SubjectLine {
            subject,
            firings: 0,
            alerts: 0,
            rules: BTreeSet::new(),
            suspended: false,
            last: None,
            last_ms: None,
        });
        found.firings += firings;
        found.alerts += 1;
        found.rules.insert(rule);
        found.last_ms = found.last_ms.max(alert.time_ms);
    }

    /// Returns the rules and the subjects, those with most firings first.
    fn into_lines(self, settings: &Settings, switches: &AllSwitches, now_ms: i64) -> (Vec<RuleLine>, Vec<SubjectLine>) {
        let mode = |id: &str| settings.abuse.rules.rules.iter().find(|rule| rule.id == id).map(|rule| rule.mode.as_str());
        let mut rules: Vec<_> = self
            .rules
            .into_values()
            .map(|(line, subjects)| RuleLine { mode: mode(&line.rule), subjects: subjects.len(), last: line.last_ms.map(stamp), ..line })
            .collect();
        rules.sort_by(|one, other| (other.firings, &one.rule).cmp(&(one.firings, &other.rule)));
        let is_suspended = |name: &str| {
            switches.0.get(name).is_some_and(|(_, said)| said.machines_at(now_ms).is_some() || said.is_suspended_by_operators(now_ms))
        };
        let mut subjects: Vec<_> = self
            .subjects
            .into_values()
            .map(|line| SubjectLine { suspended: is_suspended(&line.subject), last: line.last_ms.map(stamp), ..line })
            .collect();
        subjects.sort_by(|one, other| (other.firings, &one.subject).cmp(&(one.firings, &other.subject)));
        (rules, subjects)
    }
}

fn rules_table(rules: &[RuleLine], now_ms: i64) -> Table {
    let mut table = Table::new(RULES);
    for rule in rules {
        let paused = rule.paused.as_ref().map(|since| format!("paused since {since}: tollgate abuse resume {}", rule.rule));
        table.row(vec![
            rule.rule.clone(),
            rule.mode.unwrap_or("").to_owned(),
            rule.firings.to_string(),
            rule.alerts.to_string(),
            rule.subjects.to_string(),
            rule.suspensions.to_string(),
            rule.last_ms.map_or_else(String::new, |time_ms| ago(time_ms, now_ms)),
            paused.unwrap_or_default(),
        ]);
    }
    table
}

fn subjects_table(subjects: &[SubjectLine], now_ms: i64, is_wide: bool) -> Table {
    let mut table = Table::new(SUBJECTS);
    for line in subjects {
        let (kind, hash) = line.subject.split_once('/').unwrap_or(("-", "-"));
        let hash = if is_wide { hash.to_owned() } else { hash.chars().take(DIGITS).collect() };
        table.row(vec![
            kind.to_owned(),
            hash,
            line.firings.to_string(),
            line.alerts.to_string(),
            if line.suspended { "yes" } else { "" }.to_owned(),
            line.last_ms.map_or_else(String::new, |time_ms| ago(time_ms, now_ms)),
            line.rules.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}
