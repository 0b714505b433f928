//! Checks that `config check` prints for many configurations what it has always printed, with the same version.

use super::*;

#[test]
fn effective_settings_and_versions_are_what_they_were() {
    let text = std::fs::read_to_string("crates/core/tests/fixtures/policy_versions.jsonl").unwrap();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() > 20, "only {} configurations", cases.len());
    check_each(
        cases,
        |case| case["name"].to_string(),
        |case| {
            let folder = tempfile::tempdir().unwrap();
            let write = |name: &str, text: &Value| std::fs::write(folder.path().join(name), text.as_str().unwrap()).unwrap();
            write("config.yaml", &case["config"]);
            case["files"].as_object().unwrap().iter().for_each(|(name, text)| write(name, text));
            let ran = run(tollgate().current_dir(folder.path()).args(["config", "check", "--config", "config.yaml"]), b"");
            assert_eq!(ran.stdout, format!("{}\n", serde_json::to_string_pretty(&case["effective"]).unwrap()));
            let version = format!("; policy_version {}\n", case["policy_version"].as_str().unwrap());
            // One names files that are not there: a worker would not start with them.
            let starts = case["name"] != "http with every option, failing open";
            assert!((ran.exit == Some(0)) == starts && ran.stderr.ends_with(&version), "{ran:?}");
        },
    );
}
