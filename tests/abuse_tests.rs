//! Tests `tollgate abuse test`: the examples of the documentation pass and make every rule of the pack fire, failures are shown side by side,
//! and mistakes in test files are found before anything runs.

use std::path::Path;

use crate::support::{Ran, check_mistakes, run, tollgate};
use serde_json::{Value, json};
use tempfile::TempDir;

const EXAMPLES: &str = "docs/abuse-examples";

/// Runs `tollgate abuse test` on one file with this text.
fn test(text: &str, arguments: &[&str]) -> Ran {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("a_test.yaml"), text).unwrap();
    run(tollgate().args(["abuse", "test", "a_test.yaml"]).args(arguments).current_dir(folder.path()), b"")
}

#[test]
fn the_examples_pass_and_every_rule_of_the_pack_fires() {
    let junit = tempfile::NamedTempFile::new().unwrap();
    let path = junit.path().to_str().unwrap();
    let ran = run(tollgate().args(["abuse", "test", EXAMPLES, "--coverage", "--junit", path, "--json"]), b"");
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    let (cases, coverage): (Vec<_>, Vec<_>) = ran.json_lines().into_iter().partition(|line| line.get("case").is_some());
    assert!(cases.len() >= 20 && cases.iter().all(|case| case["passed"] == true), "{cases:?}");
    let fired = coverage[0]["coverage"].as_array().unwrap();
    let of_pack = fired.iter().filter(|rule| rule["fired"].as_u64().unwrap() > 0).map(|rule| rule["rule"].as_str().unwrap());
    let of_pack: std::collections::BTreeSet<_> = of_pack.collect();
    assert_eq!(coverage[0]["percent"], 100);
    assert_eq!(of_pack.len(), 10, "the nine rules of the pack, and one of one's own: {of_pack:?}");
    let xml = std::fs::read_to_string(junit.path()).unwrap();
    assert!(xml.contains(&format!("tests=\"{}\" failures=\"0\"", cases.len())) && !xml.contains("<failure"), "{xml}");
}

/// What the documentation shows is a file that is run.
#[test]
fn the_page_shows_the_file() {
    let page = std::fs::read_to_string("docs/abuse-rules.md").unwrap();
    let file = std::fs::read_to_string(Path::new(EXAMPLES).join("own_test.yaml")).unwrap();
    assert!(page.contains(&format!("```yaml\n{file}```")), "docs/abuse-rules.md shows another text than the example");
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
