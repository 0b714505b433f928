//! Ordinary lines of agents: nearly all of them are decided by rule, and not refused as unproven.

use std::collections::BTreeMap;

use bash_commands::{CommandRules, analyse};
use serde::Deserialize;

/// A line of `ordinary.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    command: String,
    kind: String,
}

fn lines() -> Vec<Line> {
    let text = std::fs::read_to_string("tests/commands/ordinary.jsonl").unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The code of what cannot be decided.
const UNPROVEN: &str = "oap.command_unproven";

/// The share of lines that must be decided by rule.
const SHARE_MIN: f64 = 0.97;

/// Every program of the lines is on the list, so that whatever is refused is refused as unproven.
#[test]
fn ordinary_lines_are_decided_by_rule() {
    let lines = lines();
    let commands = lines.iter().flat_map(|line| analyse(&line.command).commands);
    let programs: Vec<String> = commands.filter_map(|command| command.words.first()?.as_known().map(str::to_owned)).collect();
    let rules = CommandRules::new(Some(&programs), &[]);
    let (mut unproven, mut kinds) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for line in &lines {
        let findings = rules.check(&line.command).findings;
        if let Some(finding) = findings.iter().find(|finding| finding.code() == UNPROVEN) {
            unproven.push(format!("{}: {:?}\n    {}", line.kind, line.command, finding.message()));
            *kinds.entry(&line.kind).or_default() += 1;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "there are a few hundred lines")]
    let share = 1.0 - unproven.len() as f64 / lines.len() as f64;
    println!("{} of {} lines are unproven ({kinds:?}):\n{}", unproven.len(), lines.len(), unproven.join("\n"));
    assert!(lines.len() >= 300 && share >= SHARE_MIN, "{share:.4} of the lines are decided by rule");
}
