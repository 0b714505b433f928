//! `tollgate abuse top`: which rules fire, and who is found most often, from the alerts topic.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use tollgate_abuse::Action;

use tollgate_config::settings::Settings;

use super::alerts::{self, Alert};
use super::subject_counts;
use super::switches::{self, AllSwitches};
use crate::commands::shared::{
    Column, Hints, OutputArgs, OutputFormat, Screen, TITLE, Table, ago, hash_text, now_ms, number, quoted, read_since, shown, stamp, text,
};
use tollgate_operations::Topics;

/// What is said of a pause while the abuse stage has written no checkpoint.
const UNKNOWN: &str = "unknown";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
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
    /// Firings in grouped alerts, which name no subject.
    grouped: u64,
    subjects: usize,
    /// Alerts of suspensions.
    suspensions: u64,
    /// Since when it enforces nothing, because it would have suspended too many at once; [`UNKNOWN`] if it was paused once and the abuse
    /// stage has not told whether it is so still.
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
    text("rule"),
    text("mode"),
    number("firings"),
    number("alerts").wide(),
    number("grouped").wide(),
    number("subjects"),
    number("suspended"),
    text("last"),
    text("paused").wide(),
];

const SUBJECTS: &[Column] =
    &[text("kind"), text("hash"), number("firings"), number("alerts").wide(), text("suspended"), text("ago"), text("rules")];

pub(super) fn execute(args: &TopArgs, settings: &Settings, hints: &Hints, screen: Screen) -> anyhow::Result<ExitCode> {
    let topics = Topics::new(&settings.kafka)?;
    let (now_ms, mut counts) = (now_ms(), Counts::default());
    // A rule that was paused before may be so still.
    let is_recent = |alert: &Alert| alert.time_ms.is_none_or(|time_ms| time_ms >= args.since);
    let alerts = alerts::read(&topics, |alert| is_recent(alert) || is_pause(alert))?;
    // In the order in which they came.
    alerts.latest_first.iter().rev().for_each(|alert| counts.add(alert));
    let is_unknown = subject_counts::has_none(&topics)?;
    // Whether a rule is paused still is known to the stage alone. It is asked only if one ever was: its state may be large.
    if counts.rules.values().any(|(rule, _)| rule.paused.is_some()) {
        let paused = if is_unknown { None } else { Some(subject_counts::paused(&topics, &settings.abuse.rules)?) };
        counts.set_paused(paused.as_ref());
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
            rules.iter().filter_map(|rule| rule.pause(hints)).try_for_each(|sentence| writeln!(out, "{sentence}"))?;
            if !shown.is_empty() {
                writeln!(out, "\n{}", screen.paint(TITLE, "found most often"))?;
                subjects_table(shown, now_ms, format == OutputFormat::Wide).write(&mut out, screen, format)?;
            }
            let grouped = rules.iter().fold(0_u64, |all, rule| all.saturating_add(rule.grouped));
            if grouped > 0 {
                writeln!(out, "firings in grouped alerts, which name no subject: {grouped}")?;
            }
        }
    }
    let paused = rules.iter().filter(|rule| rule.paused.is_some()).count().to_string();
    let paused = if is_unknown { format!("{UNKNOWN}, because the abuse stage has written no checkpoint yet") } else { paused };
    let recent = alerts.latest_first.iter().filter(|alert| is_recent(alert)).count();
    say!("since {}: alerts {recent}, subjects {}, paused: {paused}", stamp(args.since), subjects.len());
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
        if alert.text("action") == Action::EnforcementResumed.as_str() {
            return;
        }
        let (firings, is_suspension) = (alert.firings(), alert.text("action") == Action::Suspended.as_str());
        // A pardon finds nobody. It may tell of firings before it that raised no alert.
        let is_alert = alert.text("action") != Action::Pardoned.as_str();
        if !is_alert && firings == 0 {
            return;
        }
        line.firings = line.firings.saturating_add(firings);
        if alert.is_grouped() {
            line.grouped = line.grouped.saturating_add(firings);
        }
        line.alerts += u64::from(is_alert);
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
        found.firings = found.firings.saturating_add(firings);
        found.alerts += u64::from(is_alert);
        found.rules.insert(rule);
        found.last_ms = found.last_ms.max(alert.time_ms);
    }

    /// Keeps of the pauses those that last, by what the stage has told. `None`: it has told nothing yet.
    fn set_paused(&mut self, paused: Option<&BTreeSet<String>>) {
        for (rule, _) in self.rules.values_mut().filter(|(rule, _)| rule.paused.is_some()) {
            match paused {
                None => rule.paused = Some(UNKNOWN.to_owned()),
                Some(paused) if !paused.contains(&rule.rule) => rule.paused = None,
                Some(_) => {}
            }
        }
        self.rules.retain(|_, (rule, _)| rule.alerts > 0 || rule.firings > 0 || rule.paused.is_some());
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
        let is_suspended = |name: &str| switches.0.get(name).is_some_and(|(_, said)| said.is_suspended_at(now_ms));
        let mut subjects: Vec<_> = self
            .subjects
            .into_values()
            .map(|line| SubjectLine { suspended: is_suspended(&line.subject), last: line.last_ms.map(stamp), ..line })
            .collect();
        subjects.sort_by(|one, other| (other.firings, &one.subject).cmp(&(one.firings, &other.subject)));
        (rules, subjects)
    }
}

impl RuleLine {
    /// Returns what is to be said of a pause, in one line; `None` if there is nothing.
    fn pause(&self, hints: &Hints) -> Option<String> {
        let (since, rule) = (self.paused.as_ref()?, shown(&self.rule));
        let resume = hints.command(&format!("abuse resume {}", quoted(&rule)));
        Some(if since == UNKNOWN {
            format!("rule {rule} was paused, and whether it is so still is unknown; if it is, let it enforce again with: {resume}")
        } else {
            format!("rule {rule} is paused since {since}, for a tenant or for all; let it enforce again with: {resume}")
        })
    }
}

fn rules_table(rules: &[RuleLine], now_ms: i64) -> Table {
    let mut table = Table::new(RULES);
    for rule in rules {
        table.row(vec![
            rule.rule.clone(),
            if rule.paused.as_ref().is_some_and(|since| since != UNKNOWN) { "paused" } else { rule.mode.unwrap_or("") }.to_owned(),
            rule.firings.to_string(),
            rule.alerts.to_string(),
            rule.grouped.to_string(),
            rule.subjects.to_string(),
            rule.suspensions.to_string(),
            rule.last_ms.map_or_else(String::new, |time_ms| ago(time_ms, now_ms)),
            rule.paused.clone().unwrap_or_default(),
        ]);
    }
    table
}

fn subjects_table(subjects: &[SubjectLine], now_ms: i64, is_wide: bool) -> Table {
    let mut table = Table::new(SUBJECTS);
    for line in subjects {
        let (kind, hash) = line.subject.split_once('/').unwrap_or(("-", "-"));
        let hash = hash_text(hash, is_wide);
        table.row(vec![
            kind.to_owned(),
            hash,
            line.firings.to_string(),
            line.alerts.to_string(),
            if line.suspended { "yes" } else { "" }.to_owned(),
            line.last_ms.map_or_else(String::new, |time_ms| ago(time_ms, now_ms).trim_end_matches(" ago").to_owned()),
            line.rules.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tollgate_core::event::record::Partition;

    use super::*;
    use tollgate_config::load;

    fn alert(fields: &Value) -> Alert {
        let (key, value) = (format!("user/{}", "ab".repeat(32)), fields.to_string());
        Alert::read((Partition(0), 0), Some(0), Some(key.as_bytes()), Some(value.as_bytes())).unwrap()
    }

    fn counted(alerts: &[Value]) -> (Vec<RuleLine>, Vec<SubjectLine>) {
        let mut counts = Counts::default();
        alerts.iter().for_each(|fields| counts.add(&alert(fields)));
        counts.into_lines(&load(None, []).unwrap(), &AllSwitches::default(), 0)
    }

    #[test]
    fn numbers_of_foreign_alerts_are_never_too_large_to_add() {
        let large = json!({"rule": "r", "suppressed": u64::MAX});
        let grouped = json!({"rule": "r", "status": "grouped", "count": u64::MAX, "suppressed": u64::MAX});
        let (rules, subjects) = counted(&[large.clone(), large, grouped]);
        assert_eq!((rules[0].firings, subjects[0].firings, rules[0].alerts), (u64::MAX, u64::MAX, 3));
        assert_eq!(rules[0].grouped, u64::MAX);
    }

    #[test]
    fn a_pardon_finds_nobody() {
        let pardon = |suppressed| json!({"rule": "r", "status": "ended", "action": "pardoned", "suppressed": suppressed});
        let (rules, subjects) = counted(&[pardon(0)]);
        assert_eq!((rules.iter().map(|rule| rule.alerts).sum::<u64>(), subjects.len()), (0, 0));
        let (rules, subjects) = counted(&[json!({"rule": "r", "status": "firing"}), pardon(2)]);
        assert_eq!((rules[0].firings, rules[0].alerts), (3, 1));
        assert_eq!((subjects[0].firings, subjects[0].alerts), (3, 1));
    }

    #[test]
    fn the_tables_fit_a_terminal_of_80_columns() {
        let id = "a-rule-whose-id-has-24-c".to_owned();
        let rule = RuleLine {
            rule: id.clone(),
            mode: Some("enforce"),
            firings: 1_234_567,
            alerts: 123_456,
            subjects: 12_345_678,
            suspensions: 123_456_789,
            last_ms: Some(0),
            ..RuleLine::default()
        };
        let subject = SubjectLine {
            subject: format!("tenant/{}", "ab".repeat(32)),
            firings: 1_234_567,
            alerts: 123_456,
            rules: [id.clone(), format!("b{id}").chars().take(24).collect()].into(),
            suspended: true,
            last: None,
            last_ms: Some(0),
        };
        let minutes = 59 * 60_000;
        let rules = rules_table(&[rule], minutes).lines(false, 80);
        assert_eq!(rules[1], "a-rule-whose-id-has-24-c  enforce  1234567  12345678  123456789  59 min ago");
        let subjects = subjects_table(&[subject], minutes, false).lines(false, 80);
        assert_eq!(subjects[1], "tenant  abababababababab  1234567  yes        59 min  a-rule-whose-id-has-24-c,");
        assert_eq!((rules.len(), subjects.len(), subjects[2].trim()), (2, 3, "ba-rule-whose-id-has-24-"));
        assert!(rules.iter().chain(&subjects).all(|line| line.chars().count() <= 80), "{rules:?} {subjects:?}");
    }

    #[test]
    fn a_pause_names_the_command_that_ends_it() {
        let mut counts = Counts::default();
        for rule in ["r", "x;y", "over"] {
            counts.add(&alert(&json!({"rule": rule, "action": "enforcement_paused"})));
        }
        counts.set_paused(Some(&["r".to_owned(), "x;y".to_owned()].into()));
        let said: Vec<_> = counts.rules.values().filter_map(|(rule, _)| rule.pause(&Hints::default())).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(
            said[0]
                .ends_with("since 1970-01-01T00:00:00.000Z, for a tenant or for all; let it enforce again with: tollgate abuse resume r")
        );
        assert!(said[1].ends_with("tollgate abuse resume 'x;y'"), "{said:?}");
        counts.set_paused(None);
        let said: Vec<_> = counts.rules.values().filter_map(|(rule, _)| rule.pause(&Hints::default())).collect();
        assert!(said.len() == 2 && said[0].contains("whether it is so still is unknown"), "{said:?}");
    }
}
