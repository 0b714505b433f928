//! Tests that what is written from this package is up to date, and that alerts and sections of the runbook belong together.

use std::collections::BTreeSet;

use tollgate_monitoring::outputs::outputs;
use tollgate_monitoring::rules::alerts;
use tollgate_monitoring::runbook::{BASE_URL, BEGIN, END, anchor, table, url};

use super::support::{assert_none, path, read};

const RUNBOOK: &str = "docs/runbook.md";
/// What every section answers.
const PARTS: [&str; 5] = ["**Means.**", "**Users notice.**", "**Look at.**", "**Do.**", "**No fault if.**"];

/// Compares a file with the wanted text; writes it where that is asked for.
fn check_written(name: &str, wanted: &str) {
    if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
        std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        std::fs::write(path(name), wanted).unwrap();
    }
    let found = std::fs::read_to_string(path(name)).unwrap_or_default();
    assert!(found == wanted, "{name} is stale; `TOLLGATE_UPDATE_FIXTURES=1 cargo test -p tollgate-monitoring` writes it anew");
}

#[test]
fn files_are_as_they_are_written_from_here() {
    for (name, text) in outputs() {
        check_written(name, &text);
    }
}

#[test]
fn the_runbook_has_the_table_of_alerts() {
    let text = read(RUNBOOK);
    let (before, rest) = text.split_once(BEGIN).expect("the line before the table");
    let (_, after) = rest.split_once(END).expect("the line behind the table");
    check_written(RUNBOOK, &format!("{before}{BEGIN}\n\n{}\n{END}{after}", table()));
}

#[test]
fn the_operators_page_says_what_to_do_first() {
    let page = read("docs/running.md");
    let missing = alerts().into_iter().filter(|alert| !page.contains(&format!("](runbook.md#{})", anchor(&alert.name))));
    assert_none("docs/running.md has every alert", &missing.map(|alert| alert.name.to_owned()).collect::<Vec<_>>());
}

/// Returns the runbook's sections about alerts: heading and text.
fn sections(text: &str) -> Vec<(String, String)> {
    let sections = text.split("\n### ").skip(1).map(|section| section.split("\n## ").next().unwrap_or_default());
    sections
        .map(|section| section.split_once('\n').unwrap_or((section, "")))
        .map(|(head, body)| (head.to_owned(), body.to_owned()))
        .collect()
}

#[test]
fn each_alert_has_a_section_and_each_section_an_alert() {
    let text = read(RUNBOOK);
    let headings: Vec<String> = sections(&text).into_iter().map(|(heading, _)| heading).collect();
    let names: Vec<String> = alerts().iter().map(|alert| alert.name.to_owned()).collect();
    assert_eq!(headings, names, "the sections of {RUNBOOK} are the alerts, in the order of the rules");
    let anchors: BTreeSet<String> = headings.iter().map(|heading| anchor(heading)).collect();
    assert_eq!(anchors.len(), headings.len(), "no two sections share an anchor");
    for alert in alerts() {
        let link = url(&alert.name);
        let (page, anchor) = link.split_once('#').expect("an anchor");
        assert!(page == BASE_URL && page.ends_with(RUNBOOK) && anchors.contains(anchor), "{link}");
        assert_eq!(alert.runbook_url, link, "the runbook_url of {}", alert.name);
    }
}

#[test]
fn each_section_says_what_somebody_needs_who_is_woken() {
    let mut offenders = Vec::new();
    for (heading, body) in sections(&read(RUNBOOK)) {
        let places: Vec<Option<usize>> = PARTS.iter().map(|part| body.find(part)).collect();
        if places.iter().any(Option::is_none) || !places.is_sorted() {
            offenders.push(heading.clone());
        }
        let ends: Vec<usize> = places.iter().flatten().copied().skip(1).chain([body.len()]).collect();
        offenders.extend(
            places
                .iter()
                .flatten()
                .zip(&ends)
                .zip(PARTS)
                .filter(|((start, end), part)| **end < *start + part.len() + 20)
                .map(|(_, part)| format!("{heading}: {part} says nothing")),
        );
    }
    assert_none("a section has these parts in this order: Means, Users notice, Look at, Do, No fault if", &offenders);
}

#[test]
fn links_of_the_runbook_lead_somewhere() {
    let text = read(RUNBOOK);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter_map(|target| target.split_once('#'));
    let (mut offenders, mut seen) = (Vec::new(), 0);
    for (page, wanted) in targets {
        seen += 1;
        let page = if page.is_empty() { RUNBOOK.to_owned() } else { format!("docs/{page}") };
        let there = read(&page);
        let mut headings = there.lines().filter_map(|line| line.strip_prefix('#')).map(|rest| rest.trim_start_matches('#').trim());
        if !headings.any(|heading| anchor(heading) == wanted) {
            offenders.push(format!("{page}#{wanted}"));
        }
    }
    assert!(seen > alerts().len(), "only {seen} links were found");
    assert_none("a link of the runbook leads to a heading", &offenders);
}

#[test]
fn anchors_are_those_of_markdown() {
    assert_eq!(anchor("TollgateVerdictsLateFast"), "tollgateverdictslatefast");
    assert_eq!(anchor("Who is behind?"), "who-is-behind");
    assert_eq!(anchor("`a_b` and c-d (e)"), "a_b-and-c-d-e");
}

#[test]
fn names_are_distinct_and_alike() {
    let alerts = alerts();
    let names: BTreeSet<&str> = alerts.iter().map(|alert| &*alert.name).collect();
    assert_eq!(names.len(), alerts.len());
    let is_well_formed = |alert: &tollgate_monitoring::rules::Alert| {
        alert
            .name
            .strip_prefix("Tollgate")
            .is_some_and(|rest| rest.starts_with(char::is_uppercase) && rest.chars().all(char::is_alphabetic))
            && ["critical", "warning"].contains(&&*alert.severity)
            && !alert.holds.is_empty()
            && alert.summary.ends_with('.')
            && alert.description.ends_with('.')
            && !alert.summary.contains('\n')
    };
    let offenders: Vec<String> = alerts.iter().filter(|alert| !is_well_formed(alert)).map(|alert| alert.name.to_owned()).collect();
    assert_none("an alert is named Tollgate…, has a severity and a time, and its summary and description are sentences", &offenders);
}
