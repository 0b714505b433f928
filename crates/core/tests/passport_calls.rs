//! Calls with which attackers got past a passport, honest calls that a passport refused, and command lines of which nearly all are allowed:
//! `tests/golden/attacks`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tollgate_json::{DEPTH_MAX, Parser, Text};
use tollgate_passport::{Passport, Terms, ToolInput};

use super::passport::{NOW, decide_with};

/// A line of `calls.jsonl`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    passport: String,
    tool: String,
    input: Value,
    expect: String,
    why: String,
}

fn read(file: &str) -> String {
    std::fs::read_to_string(format!("tests/golden/attacks/{file}")).unwrap()
}

/// Returns whether a call may run, and why.
fn decide(passport: &Arc<Passport>, tool: &str, input: &Value) -> (bool, String) {
    let (text, mut parser) = (input.to_string(), Parser::new());
    let input = ToolInput::Value(parser.parse(text.as_bytes(), DEPTH_MAX).unwrap());
    let decision = decide_with(Some(Ok(Arc::clone(passport))), Terms::default(), Some(NOW), tool, &input);
    (decision.allow, decision.reasons[0].message.to_string())
}

#[test]
fn attacks_are_denied_and_honest_calls_are_allowed() {
    let passports: BTreeMap<String, Value> = serde_json::from_str(&read("passports.json")).unwrap();
    let passport = |(name, passport): (String, Value)| (name, Arc::new(Passport::read(passport.to_string().as_bytes()).unwrap()));
    let passports: BTreeMap<String, Arc<Passport>> = passports.into_iter().map(passport).collect();
    let cases: Vec<Case> = read("calls.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let wrong = |case: &Case| {
        let (allow, message) = decide(&passports[&case.passport], &case.tool, &case.input);
        let is_wrong = allow != (case.expect == "allow");
        is_wrong.then(|| format!("{}: expected {}, {message:?}: {:.200} ({})", case.name, case.expect, case.input.to_string(), case.why))
    };
    let wrong: Vec<String> = cases.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty() && cases.len() > 100, "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// The share of honest command lines that a wide list of commands may refuse.
const REFUSED_MAX: f64 = 0.03;

#[test]
fn nearly_all_honest_command_lines_are_allowed() {
    let passports: BTreeMap<String, Value> = serde_json::from_str(&read("passports.json")).unwrap();
    let passport = Arc::new(Passport::read(passports["honest_wide"].to_string().as_bytes()).unwrap());
    let lines: Vec<String> = serde_json::from_str(&read("honest.json")).unwrap();
    let refused = lines.iter().filter_map(|line| {
        let text = json!({"command": line}).to_string();
        let input = ToolInput::Encoded(Text::plain(text.as_bytes()));
        let decision = decide_with(Some(Ok(Arc::clone(&passport))), Terms::default(), Some(NOW), "bash", &input);
        (!decision.allow).then(|| format!("{line:?}: {}", decision.reasons[0].message))
    });
    let refused: Vec<String> = refused.collect();
    #[expect(clippy::cast_precision_loss, reason = "there are a few hundred lines")]
    let share = refused.len() as f64 / lines.len() as f64;
    println!("{} of {} lines are refused:\n{}", refused.len(), lines.len(), refused.join("\n"));
    assert!(lines.len() >= 250 && share <= REFUSED_MAX, "{share:.3} of the lines are refused:\n{}", refused.join("\n"));
}
