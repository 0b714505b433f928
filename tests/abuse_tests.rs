//! Tests `tollgate abuse test`: the examples of the documentation pass and make every rule of the pack fire, failures are shown side by side,
//! and mistakes in test files are found before anything runs.

use crate::support::{self, Ran, check_examples, check_mistakes};
use serde_json::{Value, json};

/// Runs `tollgate abuse test` on one file with this text.
fn test(text: &str, arguments: &[&str]) -> Ran {
    support::test(&["abuse", "test"], text, arguments)
}

/// What the documentation shows is a file that is run.
#[test]
fn the_examples_pass_and_every_rule_of_the_pack_fires() {
    let reached = check_examples(&["abuse", "test"], "docs/abuse-examples", 20, ("docs/abuse-rules.md", "own_test.yaml"));
    let rules = reached["coverage"].as_array().unwrap().iter().filter(|rule| rule["fired"].as_u64().unwrap() > 0);
    let fired: std::collections::BTreeSet<_> = rules.map(|rule| rule["rule"].as_str().unwrap()).collect();
    assert_eq!(fired.len(), 10, "the nine rules of the pack, and one of one's own: {fired:?}");
}

const RULES: &str = "rules:
  - {id: r, detection: {signal: denial}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 2}}}
";

/// Returns a file with one case.
fn case(body: &str) -> String {
    format!("{RULES}cases:\n  - name: one\n    why: because\n{body}")
}

const TWO: &str = "    signals: [{at: 0s, signal: denial, user: alice, tool: bash, repeat: {count: 2, every: 1m}}]\n";

#[test]
fn a_failure_is_shown_side_by_side() {
    let text = case(&format!("{TWO}    alerts:\n      - {{rule: r, subject: {{user: alice}}, at: 2m, step: 1}}\n      - {{rule: x}}\n"));
    let ran = test(&text, &[]);
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    let shown = "\
FAILED  a_test.yaml: 1 of 1 case failed

one
  why: because
  alert 1, a_test.yaml:8
    field  expected  got
    at     \"2m\"      \"1m\"
  alert 2, a_test.yaml:9
    field  expected  got
    rule   \"x\"       no alert
";
    assert!(ran.stdout.starts_with(shown), "{}\n---\n{shown}", ran.stdout);
    let unexpected: Value = test(&case(&format!("{TWO}    alerts: []\n")), &["--json"]).json_lines().remove(0);
    assert_eq!(unexpected["passed"], false);
    assert_eq!(unexpected["failures"][0]["alert"], 1);
    assert_eq!(unexpected["failures"][0]["differences"][0], json!({"field": "rule", "expected": "no alert", "got": "\"r\""}));
}

#[test]
fn rules_that_no_case_made_fire_are_named() {
    let text = case("    signals: [{at: 0s, signal: denial, user: alice}]\n    alerts: []\n");
    let ran = test(&text, &["--coverage-min", "1%"]);
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("never fired: r\n") && ran.stderr.contains("--coverage-min asks for 1 %"), "{ran:?}");
    assert_eq!(test(&text, &[]).exit, Some(0));
}

#[test]
fn mistakes_are_found_with_their_places_before_anything_runs() {
    check_mistakes("abuse", |file| test(file, &[]));
}
