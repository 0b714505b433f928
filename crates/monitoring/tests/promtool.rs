//! Tests the rules with Prometheus' own tool: they are well formed, and they fire when they should, by the cases beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;

use promql_parser::parser::{Expr, parse};
use tollgate_monitoring::rules::{alerts, groups};
use yaml_rust2::{Yaml, YamlLoader};

use super::support::{assert_none, path, promtool, read};

const RULES: &str = "config/prometheus/alerts.yml";
const CASES: [&str; 2] = ["config/prometheus/alerts_test.yml", "config/prometheus/alerts_day_test.yml"];

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[test]
fn prometheus_takes_the_rules() {
    let output = promtool(&["check", "rules", "--lint-fatal", RULES]);
    let count: usize = groups().iter().map(|group| group.recordings.len() + group.alerts.len()).sum();
    assert!(output.status.success() && said(&output).contains(&format!("{count} rules found")), "{}", said(&output));
}

#[test]
fn alerts_fire_when_they_should() {
    let output = promtool(&[&["test", "rules"][..], &CASES].concat());
    assert!(output.status.success(), "{}", said(&output));
}

/// With a threshold that is never reached, the same cases fail.
#[test]
fn the_cases_can_fail() {
    let folder = tempfile::tempdir().unwrap();
    let changed = read(RULES).replace("tollgate_controls_stale_seconds) > 30", "tollgate_controls_stale_seconds) > 30000");
    assert_ne!(changed, read(RULES));
    std::fs::write(folder.path().join("alerts.yml"), changed).unwrap();
    std::fs::copy(path(CASES[0]), folder.path().join("alerts_test.yml")).unwrap();
    let output = promtool(&["test", "rules", folder.path().join("alerts_test.yml").to_str().unwrap()]);
    assert!(!output.status.success() && said(&output).contains("TollgateControlsStale"), "{}", said(&output));
}

/// Returns, for each alert that a case names, the sets of labels that it fires with; an empty set stands for a time at which it does not.
fn cases() -> BTreeMap<String, Vec<BTreeSet<String>>> {
    let mut found: BTreeMap<String, Vec<BTreeSet<String>>> = BTreeMap::new();
    let documents: Vec<Yaml> = CASES.iter().map(|name| YamlLoader::load_from_str(&read(name)).unwrap().remove(0)).collect();
    let cases = documents.iter().flat_map(|document| document["tests"].as_vec().unwrap());
    for check in cases.flat_map(|case| case["promql_expr_test"].as_vec().unwrap()) {
        let name = labels(check["expr"].as_str().unwrap()).remove("alertname").expect("a check names its alert");
        let fires = found.entry(name).or_default();
        let samples = check["exp_samples"].as_vec().unwrap();
        fires.extend(samples.iter().map(|sample: &Yaml| labels(sample["labels"].as_str().unwrap()).into_keys().collect()));
        if samples.is_empty() {
            fires.push(BTreeSet::new());
        }
    }
    found
}

/// Returns the labels of a selector.
fn labels(selector: &str) -> BTreeMap<String, String> {
    let Ok(Expr::VectorSelector(selector)) = parse(selector) else { panic!("{selector} is no selector") };
    selector.matchers.matchers.into_iter().map(|matcher| (matcher.name, matcher.value)).collect()
}

#[test]
fn each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() {
    let mut cases = cases();
    let mut offenders = Vec::new();
    for alert in alerts() {
        let fires = cases.remove(&*alert.name).unwrap_or_default();
        if !fires.iter().any(BTreeSet::is_empty) || fires.iter().all(BTreeSet::is_empty) {
            offenders.push(alert.name.to_owned());
        }
    }
    offenders.extend(cases.into_keys().map(|name| format!("{name}: no such alert")));
    assert_none("an alert has a case in which it fires and one in which it does not", &offenders);
}

/// A template that names a label which the alert does not have leaves a hole in the sentence.
#[test]
fn sentences_name_labels_that_the_alert_has() {
    let (cases, mut offenders, mut seen) = (cases(), Vec::new(), 0);
    for alert in alerts() {
        for text in [alert.summary, alert.description] {
            for label in text
                .split("$labels.")
                .skip(1)
                .map(|rest| rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap())
            {
                seen += 1;
                let lacks_it = |labels: &&BTreeSet<String>| !labels.is_empty() && !labels.contains(label);
                offenders.extend(cases[&*alert.name].iter().find(lacks_it).map(|_| format!("{}: {label}", alert.name)));
            }
        }
    }
    assert!(seen > 20, "only {seen} labels were found");
    assert_none("a sentence names labels that the alert has whenever it fires", &offenders);
}
