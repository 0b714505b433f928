//! `tollgate abuse blocklist`: who is suspended now, by which rule, and until when.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use tollgate_config::settings::KafkaSettings;

use super::alerts::field_text;
use super::known::controls;
use super::switches::{self, AllSwitches};
use crate::commands::shared::{Column, OutputArgs, OutputFormat, Screen, Table, ago, hash_text, now_ms, number, shown, text};
use tollgate_operations::Topics;

#[derive(Debug, Args)]
pub(crate) struct BlocklistArgs {
    /// Operators' suspensions and exemptions too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    output: OutputArgs,
}

const COLUMNS: &[Column] =
    &[text("kind"), text("hash"), text("state"), text("by"), number("step").wide(), text("until"), text("reason"), text("alert").wide()];

/// Who is suspended, and by whom.
#[derive(Debug, Default)]
struct Blocklist {
    lines: Vec<Value>,
    /// Suspensions in force by rule.
    rules: BTreeMap<String, u64>,
    operators: u64,
    exempt: u64,
}

pub(super) fn execute(args: &BlocklistArgs, kafka: &KafkaSettings, screen: Screen) -> anyhow::Result<ExitCode> {
    let topics = Topics::new(kafka)?;
    let now_ms = now_ms();
    let list = Blocklist::of(&switches::read(&topics)?, args.all, now_ms);
    args.output.print(screen, &list.lines, |format| list.table(format == OutputFormat::Wide, now_ms))?;
    say!("{}", list.summary());
    Ok(ExitCode::SUCCESS)
}

impl Blocklist {
    /// Returns who is suspended at a time. What is over is left out, as is what operators say unless `all` is asked for.
    fn of(all: &AllSwitches, with_operators: bool, now_ms: i64) -> Self {
        let mut list = Self::default();
        for (key, said) in all.0.values() {
            let machines = said.machines_at(now_ms);
            if let Some(machines) = machines {
                *list.rules.entry(machines.rule.clone()).or_default() += 1;
            }
            let is_suspended = said.is_suspended_by_operators(now_ms);
            list.operators += u64::from(is_suspended);
            list.exempt += u64::from(said.is_exempt(now_ms));
            let is_said = is_suspended || said.is_exempt(now_ms);
            let is_shown = |line: &Value| match line.get("by").and_then(Value::as_str) {
                Some("rule") => machines.is_some(),
                Some("unreadable") => said.is_suspended_at(now_ms),
                _ => with_operators && is_said,
            };
            list.lines.extend(controls(*key, said).into_iter().filter(is_shown));
        }
        list
    }

    fn table(&self, is_wide: bool, now_ms: i64) -> Table {
        let mut table = Table::new(COLUMNS);
        for line in &self.lines {
            let text = |field: &str| field_text(line, field).into_owned();
            let subject = text("subject");
            let (kind, hash) = subject.split_once('/').unwrap_or(("-", "-"));
            let hash = hash_text(hash, is_wide);
            let until = text("until");
            let away = tollgate_json::time::parse_timestamp(&until).map(|time_ms| ago(time_ms, now_ms));
            let until = match away {
                Some(away) if is_wide => format!("{until} ({away})"),
                away => away.unwrap_or(until),
            };
            // A rule is named by its id.
            let by = if line.get("rule").is_some_and(Value::is_string) { text("rule") } else { text("by") };
            table.row(vec![kind.to_owned(), hash, text("state"), by, text("step"), until, text("reason"), text("alert_id")]);
        }
        table
    }

    fn summary(&self) -> String {
        let total: u64 = self.rules.values().sum();
        let rules: Vec<_> = self.rules.iter().map(|(rule, count)| format!("{} {count}", shown(rule))).collect();
        let rules = if rules.is_empty() { String::new() } else { format!(" ({})", rules.join(", ")) };
        format!("suspended by rules: {total}{rules}, by operators: {}, exempt: {}", self.operators, self.exempt)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::decide::controls::{AbuseSuspension, HoldsUntil, SubjectState};
    use tollgate_core::decide::signal::{KeyKind, SubjectKey};
    use tollgate_json::digest::Digest;

    use super::super::switches::Switches;
    use super::*;

    #[test]
    fn who_is_suspended_now_is_listed_and_nobody_else() {
        let machines = |until_ms| Some(AbuseSuspension { until_ms, rule: "r".to_owned(), step: Some(1), alert_id: None });
        let suspended = Some(SubjectState::Suspended(HoldsUntil::default()));
        let exempt = Some(SubjectState::Exempt(HoldsUntil::default()));
        let mut all = AllSwitches::default();
        for (id, switches) in [
            ("caught", Switches { machines: machines(100), ..Switches::default() }),
            ("over", Switches { machines: machines(10), ..Switches::default() }),
            ("exempt", Switches { operators: exempt, machines: machines(100), unreadable: None }),
            ("both", Switches { operators: suspended.clone(), machines: machines(100), unreadable: None }),
            ("operators", Switches { operators: suspended, ..Switches::default() }),
        ] {
            let key = SubjectKey { kind: KeyKind::User, hash: Digest::of(id.as_bytes()) };
            all.0.insert(id.to_owned(), (key, switches));
        }
        let by = |list: &Blocklist| list.lines.iter().map(|line| line["by"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        let list = Blocklist::of(&all, false, 50);
        assert_eq!(
            (by(&list), list.summary().as_str()),
            (vec!["rule".to_owned(); 2], "suspended by rules: 2 (r 2), by operators: 2, exempt: 1")
        );
        let mut list = Blocklist::of(&all, true, 50);
        assert_eq!(by(&list), ["operator", "rule", "rule", "operator", "operator"]);
        let rows = list.table(true, 50).lines(true, 200);
        assert_eq!(rows.len(), 6);
        assert!(rows[2].contains("  r  ") && rows[2].contains("1970-01-01T00:00:00.100Z (now)"), "{rows:?}");
        assert!(rows[1].ends_with("  operator"), "{rows:?}");
        for lines in list.lines.iter_mut().filter(|line| line["rule"].is_string()) {
            lines["rule"] = "safety-stop-user-day".into();
        }
        let rows = list.table(false, 50).lines(false, 80);
        assert!(rows.len() == 6 && rows[2].contains("  safety-stop-user-day  now"), "{rows:?}");
    }

    #[test]
    fn the_id_of_a_foreign_rule_steers_no_terminal() {
        let rules = [("r\u{1b}]0;x\u{7}\nsuspended by rules: 0".to_owned(), 1)].into();
        let list = Blocklist { rules, ..Blocklist::default() };
        assert_eq!(list.summary(), "suspended by rules: 1 (r?]0;x??suspended by rules: 0 1), by operators: 0, exempt: 0");
    }
}
