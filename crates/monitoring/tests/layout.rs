//! Tests the dashboard as Grafana needs it: what every panel must have, and that none lies on another.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_monitoring::panels::rows;
use tollgate_monitoring::rules::groups;
use yaml_rust2::{Yaml, YamlLoader};

use super::support::{assert_none, read};

const COLUMNS: u64 = 24;
/// The names that Grafana has for the units used here.
const UNITS: [&str; 6] = ["none", "s", "cps", "percentunit", "bytes", "Bps"];
/// What an expression may name besides the dashboard's own variables: Grafana puts these in itself.
const OF_GRAFANA: [&str; 2] = ["__rate_interval", "__range"];

fn dashboard() -> Value {
    serde_json::from_str(&read("config/grafana/tollgate.json")).unwrap()
}

fn panels(dashboard: &Value) -> &[Value] {
    dashboard["panels"].as_array().unwrap()
}

#[test]
fn the_dashboard_has_what_grafana_asks_for() {
    let dashboard = dashboard();
    assert_eq!((&dashboard["uid"], &dashboard["title"]), (&json!("tollgate"), &json!("Tollgate")));
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36 && dashboard["time"]["from"] == "now-3h" && dashboard["refresh"] == "30s");
    assert!(dashboard.get("id").is_none(), "an id belongs to one Grafana");
    let names: Vec<&str> = dashboard["templating"]["list"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["datasource", "namespace", "job", "instance"]);
    let link = dashboard["links"][0]["url"].as_str().unwrap();
    assert_eq!(link, tollgate_monitoring::runbook::BASE_URL);
}

#[test]
fn every_panel_has_what_grafana_asks_for() {
    let dashboard = dashboard();
    let (mut ids, mut offenders) = (BTreeSet::new(), Vec::new());
    for panel in panels(&dashboard) {
        let title = panel["title"].as_str().unwrap();
        if !ids.insert(panel["id"].as_u64().unwrap()) || title.is_empty() {
            offenders.push(format!("{title}: its id is not its own"));
        }
        if panel["type"] == "row" {
            continue;
        }
        let targets = panel["targets"].as_array().unwrap();
        let letters: BTreeSet<&str> = targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
        let from_variable = |value: &Value| value["datasource"] == json!({"type": "prometheus", "uid": "${datasource}"});
        let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap();
        for (is_well, what) in [
            (!targets.is_empty() && letters.len() == targets.len(), "its queries have letters of their own"),
            (from_variable(panel) && targets.iter().all(from_variable), "the data source is the one chosen at the top"),
            (UNITS.contains(&unit), "its unit is known"),
            (panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "it says how to read it"),
            (["timeseries", "stat", "bargauge"].contains(&panel["type"].as_str().unwrap()), "its type is known"),
        ] {
            if !is_well {
                offenders.push(format!("{title}: not so: {what}"));
            }
        }
    }
    assert_none("a panel is complete", &offenders);
}

/// What is not known of a panel is left out of the dashboard in silence.
#[test]
fn every_key_of_a_panel_is_known() {
    let file = YamlLoader::load_from_str(&read("crates/monitoring/src/panels.yml")).unwrap().remove(0);
    let keys = |yaml: &Yaml| yaml.as_hash().unwrap().keys().map(|key| key.as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let is_known = |panel: &Yaml| {
        let show = keys(&panel["show"]);
        keys(panel) == ["title", "description", "show", "queries"]
            && show.iter().all(|key| ["unit", "width", "look", "red_from"].contains(&&**key))
            && (panel["show"]["look"].is_badvalue() || ["stack", "number", "table"].contains(&panel["show"]["look"].as_str().unwrap()))
            && (panel["show"]["red_from"].is_badvalue() || panel["show"]["red_from"].as_f64().is_some())
    };
    let panels = file.as_vec().unwrap().iter().flat_map(|row| row["panels"].as_vec().unwrap());
    let offenders: Vec<_> = panels.filter(|panel| !is_known(panel)).map(|panel| format!("{:?}", panel["title"])).collect();
    assert_none("a panel has keys that are known, in their order, and `red_from` is written with a point", &offenders);
}

#[test]
fn expressions_use_variables_that_there_are() {
    let dashboard = dashboard();
    let own = dashboard["templating"]["list"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
    let known: BTreeSet<&str> = own.chain(OF_GRAFANA).collect();
    let (mut offenders, mut seen) = (Vec::new(), 0);
    for target in panels(&dashboard).iter().filter_map(|panel| panel["targets"].as_array()).flatten() {
        let expression = target["expr"].as_str().unwrap();
        let names =
            expression.split('$').skip(1).map(|rest| rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap());
        for name in names {
            seen += 1;
            offenders.extend((!known.contains(name)).then(|| format!("${name} in {expression}")));
        }
        // Whoever chooses one worker wants to see no other's figures.
        let is_chosen = expression.contains("$job") && (expression.contains("$instance") || expression.contains("ALERTS"));
        offenders.extend((!is_chosen || expression.contains('@')).then(|| format!("not limited to what is chosen: {expression}")));
    }
    assert!(seen > 200, "only {seen} variables were found");
    assert_none("an expression uses the variables that there are", &offenders);
}

#[test]
fn no_panel_lies_on_another_and_no_line_has_a_hole() {
    let dashboard = dashboard();
    let mut taken: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut offenders = Vec::new();
    for panel in panels(&dashboard) {
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|name| panel["gridPos"][name].as_u64().unwrap());
        let cells: Vec<(u64, u64)> = (y..y + h).flat_map(|row| (x..x + w).map(move |column| (row, column))).collect();
        if x + w > COLUMNS || w == 0 || h == 0 || cells.iter().any(|cell| !taken.insert(*cell)) {
            offenders.push(panel["title"].to_string());
        }
    }
    assert_none("a panel has its own place", &offenders);
    let height = taken.iter().map(|(row, _)| row + 1).max().unwrap();
    let holes: Vec<u64> = (0..height).filter(|row| (0..COLUMNS).any(|column| !taken.contains(&(*row, column)))).collect();
    assert_eq!(holes, [0; 0], "every line is full");
}

#[test]
fn the_dashboard_answers_the_questions_of_the_alerts() {
    let shown: Vec<String> = rows().into_iter().map(|row| row.question).collect();
    let asked: Vec<String> = groups().into_iter().map(|group| group.question).collect();
    assert_eq!(shown[1..=asked.len()], asked);
}
