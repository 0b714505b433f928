//! Checks that `config check` prints for many configurations what it has always printed, with the same version.
//! `TOLLGATE_UPDATE_FIXTURES=1` writes what it prints into the fixture, for a new configuration in it or a new key: read the difference.

use super::*;

const FIXTURE: &str = "crates/core/tests/fixtures/policy_versions.jsonl";

/// Runs `config check` on a case's configuration, beside the case's files.
fn check_case(case: &Value) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &Value| std::fs::write(folder.path().join(name), text.as_str().unwrap()).unwrap();
    write("config.yaml", &case["config"]);
    case["files"].as_object().unwrap().iter().for_each(|(name, text)| write(name, text));
    run(tollgate().current_dir(folder.path()).args(["config", "check", "--config", "config.yaml"]), b"")
}

fn update(case: &Value) -> String {
    let ran = check_case(case);
    let (_, version) = ran.stderr.trim_end().rsplit_once("; policy_version ").unwrap();
    let effective: Value = serde_json::from_str(&ran.stdout).unwrap();
    // The name, the configuration and the files come first, as they are written by hand.
    format!(
        r#"{{"name":{},"config":{},"files":{},"policy_version":{},"effective":{effective}}}"#,
        case["name"],
        case["config"],
        case["files"],
        json!(version)
    )
}

#[test]
fn effective_settings_and_versions_are_what_they_were() {
    let cases = jsonl(FIXTURE);
    assert!(cases.len() > 20, "only {} configurations", cases.len());
    if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
        let lines: Vec<_> = cases.iter().map(|case| update(case) + "\n").collect();
        return std::fs::write(FIXTURE, lines.concat()).unwrap();
    }
    check_each(
        cases,
        |case| case["name"].to_string(),
        |case| {
            let ran = check_case(case);
            assert_eq!(ran.stdout, format!("{}\n", serde_json::to_string_pretty(&case["effective"]).unwrap()));
            let version = format!("; policy_version {}\n", case["policy_version"].as_str().unwrap());
            // One names files that are not there: a worker would not start with them.
            let starts = case["name"] != "http with every option, failing open";
            assert!((ran.exit == Some(0)) == starts && ran.stderr.ends_with(&version), "{ran:?}");
        },
    );
}
