//! A test file: the rules that it is about, and its cases.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use tollgate_abuse::{AbuseRules, AbuseSettings};
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::{Collector, Faults, Section, defaults};
use tollgate_json::time::parse_timestamp;

use super::expected::{ExpectedAlert, ExpectedControl, read_alerts, read_controls};
use super::signals::{Signals, read_at};
use crate::commands::shared::suites::{self, Outcome};
use tollgate_config::Document;
use tollgate_config::settings::Settings;

/// The time at which a case begins where it says nothing: 2026-01-01T00:00:00Z, in milliseconds since the epoch.
const START_MS: i64 = 1_767_225_600_000;

/// Rules on which cases are run.
#[derive(Debug)]
pub(super) struct Tested {
    /// Their name for people: the file that holds them.
    pub(super) name: String,
    pub(super) rules: Arc<AbuseRules>,
    pub(super) hasher: SubjectHasher,
}

/// A case: signals that come to a fresh state, and what is to follow from them.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) why: Option<String>,
    /// The line of the file that it begins on.
    pub(super) line: usize,
    /// When it begins, in milliseconds since the epoch.
    pub(super) start_ms: i64,
    /// Until when time goes on, in milliseconds behind the beginning.
    pub(super) end_ms: i64,
    pub(super) signals: Vec<Signals>,
    pub(super) alerts: Vec<ExpectedAlert>,
    /// The controls; `None` expects nothing of them.
    pub(super) controls: Option<Vec<ExpectedControl>>,
}

impl Tested {
    /// Returns the rules of a configuration.
    pub(super) fn of(settings: &Settings, name: &str) -> Self {
        let hasher = SubjectHasher::new(settings.subject_keys.first());
        Self { name: name.to_owned(), rules: Arc::new(settings.abuse.rules.clone()), hasher }
    }
}

impl suites::Tested for Tested {
    type Case = Case;

    fn name(&self) -> &str {
        &self.name
    }

    fn read(root: &Section<'_>, path: &Path) -> Option<Result<Self, String>> {
        root.pass_over("cases");
        match (root.optional_string("config"), root.is_written("rules")) {
            (Some(_), true) => {
                root.fault("rules", "both `config` and `rules`", "write one of them");
                None
            }
            (Some(file), false) => {
                root.refuse("pack", "`pack` beside `config`, which says it", "remove it");
                root.pass_over("pack");
                Some(suites::load_named(path, "config", &file).map(|(settings, name)| Tested::of(&settings, &name)))
            }
            (None, _) => {
                let pack = root.value("pack");
                if pack.is_none() && !root.is_written("rules") {
                    return None;
                }
                let section = json!({"rules": root.value("rules").unwrap_or(&json!([])), "pack": pack.unwrap_or(&json!("off"))});
                let rules = rules_of(root, &json!({"abuse": section}))?;
                Some(Ok(Tested { name: path.display().to_string(), rules: Arc::new(rules), hasher: SubjectHasher::new(None) }))
            }
        }
    }

    fn read_cases(&self, root: &Section<'_>, document: &Document) -> Vec<Case> {
        ["config", "rules", "pack"].into_iter().for_each(|key| root.pass_over(key));
        let case =
            |place: usize, section: &Section<'_>| read_case(section, document, document.line_of(&format!("cases[{place}]")), &self.hasher);
        suites::read_cases(root, root.mappings("cases"), "`name`, `signals` and `alerts`", case)
    }
}

impl suites::Case for Case {
    fn outcome(&self) -> Outcome {
        Outcome { name: self.name.clone(), why: self.why.clone(), line: self.line, failures: Vec::new() }
    }
}

/// Reads rules that stand in a test file as a configuration's.
fn rules_of(root: &Section<'_>, user: &Value) -> Option<AbuseRules> {
    const SECTION: &str = "abuse";
    let (defaults, faults) = (defaults().ok()?, Collector::default());
    let settings = AbuseSettings::read(&Section::root(user, &defaults, &faults).section(SECTION), &SubjectHasher::new(None), i64::MIN);
    let result = faults.into_result(settings.rules);
    result
        .map_err(|Faults(faults)| {
            for fault in faults {
                let key = fault.key.strip_prefix("abuse.").unwrap_or(&fault.key);
                root.fault(key, fault.found, fault.fix);
            }
        })
        .ok()
}

fn read_case(section: &Section<'_>, document: &Document, line: usize, hasher: &SubjectHasher) -> Case {
    let start_ms = section.optional_string("start").map(|start| {
        parse_timestamp(&start).unwrap_or_else(|| {
            section.fault("start", "a string that is no time", "write one such as 2026-01-01T00:00:00Z");
            START_MS
        })
    });
    let signals: Vec<_> = section.mappings("signals").unwrap_or_default().iter().map(Signals::read).collect();
    if signals.is_empty() {
        section.fault("signals", "nothing", "write what happens, such as [{at: 0s, signal: denial, user: alice}]");
    }
    if !section.is_written("alerts") {
        section.fault("alerts", "nothing", "write the alerts that are expected, all of them, or []");
    }
    let alerts = read_alerts(section, document, hasher);
    let controls = section.is_written("controls").then(|| read_controls(section, document, hasher));
    section.pass_over("controls");
    let last = |signals: &Signals| signals.at(signals.count.saturating_sub(1)).0;
    let expected = alerts.iter().filter_map(|alert| alert.at_ms);
    let expected = expected.chain(controls.iter().flatten().filter_map(|control| control.at_ms));
    let end_ms = signals.iter().map(last).chain(expected).max().unwrap_or_default().max(read_at(section, "end").unwrap_or_default());
    let (name, why) = (section.string("name"), section.optional_string("why"));
    Case { name, why, line, start_ms: start_ms.unwrap_or(START_MS), end_ms, signals, alerts, controls }
}
