//! Calls with which attackers got past a passport, honest calls that a passport refused, and command lines of which nearly all are allowed:
//! `tests/golden/attacks`; and the calls that the starter passport of a coding agent is made for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tollgate_json::{DEPTH_MAX, Parser, Text};
use tollgate_passport::{Passport, Terms, ToolInput, check_schema};

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

#[test]
fn the_starter_passport_of_a_coding_agent_allows_its_ordinary_calls() {
    let passport = std::fs::read("../../examples/passports/coding-agent.json").unwrap();
    let faults = check_schema(&passport).unwrap();
    assert!(faults.is_empty(), "{faults:?}");
    let passport = Arc::new(Passport::read(&passport).unwrap());
    let allows = |tool: &str, input: &Value| decide(&passport, tool, input).0;
    for line in [
        "git status --short && git diff --stat",
        "git log --oneline -5",
        "git add src/app.py && git commit -m 'Fix the pager'",
        "git switch -c fix/pager",
        "git push origin HEAD",
        "git diff main...HEAD | head -100",
        "cat src/app.py",
        "grep -rn 'def parse' src --include='*.py'",
        "find . -name '*.py'",
        "sed -n 1,80p src/app.py",
        "sed -i 's/a/b/' src/app.py",
        "cd /workspace && pytest -q tests/test_app.py",
        "npm run build > /tmp/build.log 2>&1",
        "cargo test --workspace",
        "mkdir -p src/new && touch src/new/mod.rs",
        "gh pr view 7",
    ] {
        assert!(allows("Bash", &json!({"command": line})), "{line}");
    }
    let patch = |path: &str| format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch");
    for (tool, input) in [
        ("Read", json!({"file_path": "src/app.py", "cwd": "/workspace"})),
        ("Edit", json!({"file_path": "/workspace/src/app.py", "old_string": "a", "new_string": "b"})),
        ("Grep", json!({"pattern": "TODO", "path": "/workspace/src"})),
        ("apply_patch", json!({"command": patch("src/app.py"), "cwd": "/workspace"})),
        ("WebFetch", json!({"url": "https://docs.python.org/3/", "prompt": "What is new?"})),
        ("Task", json!({"subagent_type": "Explore", "description": "Look", "prompt": "Look for the pager"})),
    ] {
        assert!(allows(tool, &input), "{tool} {input}");
    }
    for (tool, input) in [
        ("Bash", json!({"command": "rm -rf src"})),
        ("Bash", json!({"command": "git push --force origin main"})),
        ("Read", json!({"file_path": "/workspace/.env"})),
        ("Write", json!({"file_path": "/workspace/.git/hooks/pre-commit", "content": "x"})),
        ("apply_patch", json!({"command": patch(".github/workflows/ci.yml"), "cwd": "/workspace"})),
        ("WebFetch", json!({"url": "https://example.com/", "prompt": "x"})),
    ] {
        assert!(!allows(tool, &input), "{tool} {input}");
    }
}
