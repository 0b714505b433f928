//! Checks the policy's version for many configurations, as it has been since verdicts carry one. A change of code must change none of them:
//! every verdict would then claim to be decided by another policy.

use tollgate_core::decide::guardrail::PROVIDERS;
use tollgate_core::decide::policy::{Policy, PolicySettings, Registry};
use tollgate_core::decide::safety::DETECTORS;
use tollgate_core::settings;
use tollgate_fixtures::cases;

#[test]
fn versions_are_what_they_were() {
    let cases = cases::jsonl("tests/fixtures/policy_versions.jsonl");
    assert!(cases.len() > 20, "only {} configurations", cases.len());
    let mut versions = std::collections::BTreeSet::new();
    for case in &cases {
        let mut settings = PolicySettings::from_yaml(case["config"].as_str().unwrap()).unwrap();
        settings.load_files(|path| Ok(case["files"][path.trim_start_matches("./")].as_str().expect(path).as_bytes().to_vec())).unwrap();
        let policy = Policy::new(&settings);
        assert_eq!(policy.version(), case["policy_version"], "{}", case["name"]);
        versions.insert(policy.version().to_owned());
    }
    assert!(versions.len() > cases.len() / 2, "most of these decide differently");
}

/// Each detector and provider that is built in stands in one of the configurations.
#[test]
fn every_name_is_covered() {
    let cases = cases::jsonl("tests/fixtures/policy_versions.jsonl");
    let texts: Vec<String> = cases.iter().map(|case| case["config"].as_str().unwrap().to_owned()).collect();
    let names: Vec<_> = Registry::builtin().names().collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let fix = format!(
            "no configuration in crates/core/tests/fixtures/policy_versions.jsonl uses {name}: add a line with name, config and files, and run \
             TOLLGATE_UPDATE_FIXTURES=1 cargo test --test integration -- config::versions"
        );
        assert!(texts.iter().any(|text| text.contains(name)), "{fix}");
    }
}

/// Users look for detectors and providers in the example.
#[test]
fn every_built_in_stands_in_the_example() {
    let example = include_str!("../../../config/example.yaml");
    let uses: Vec<_> = example.lines().filter_map(|line| line.split_once("use: ")?.1.split_whitespace().next()).collect();
    let names = DETECTORS.iter().map(|detector| detector.name).chain(PROVIDERS.iter().map(|provider| provider.name));
    let missing: Vec<_> = names.filter(|name| !uses.contains(name)).collect();
    assert!(missing.is_empty(), "no entry of config/example.yaml says `use:` with {missing:?}: add an entry, or a comment that shows it");
}

/// A default that is left out and one that is written give the same version.
#[test]
fn written_defaults_change_nothing() {
    let version = |text: &str| Policy::new(&PolicySettings::from_yaml(text).unwrap()).version().to_owned();
    let all: String = {
        let defaults = settings::defaults().unwrap();
        let ours = ["safety_finish_reason", "guardrails", "tool_loop_guardrails", "limits"];
        ours.iter().map(|section| format!("{section}: {}\n", defaults[section])).collect()
    };
    assert_eq!(version(&all), version(""));
}
