//! What a case expects: the alerts, all of them, and if it says so the controls.

use serde_json::{Map, Value, json};
use tollgate_abuse::{Level, Mode};
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::{Section, duration_text, shape};

use super::names::Ids;
use super::signals::read_at;
use tollgate_config::Document;

/// The words for what an alert is about.
const STATUSES: [(&str, &str); 3] = [("firing", "firing"), ("escalated", "escalated"), ("ended", "ended")];
/// What stands for a control that was taken back.
const NONE: &str = "none";

/// Something that is expected to come, with the fields that it has to have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expectation {
    /// The line of the file that it stands on.
    pub(super) line: usize,
    /// When it is expected, in milliseconds behind the beginning; `None` at any time.
    pub(super) at_ms: Option<i64>,
    /// The fields, as what comes is shown.
    pub(super) fields: Map<String, Value>,
}

pub(super) type ExpectedAlert = Expectation;
pub(super) type ExpectedControl = Expectation;

/// Reads the alerts that a case expects.
pub(super) fn read_alerts(case: &Section<'_>, document: &Document, hasher: &SubjectHasher) -> Vec<ExpectedAlert> {
    let read = |section: &Section<'_>| {
        let (mut fields, at_ms) = read_shared(section, hasher);
        for key in ["rule", "action", "message"] {
            note(&mut fields, key, section.optional_string(key).map(Value::from));
        }
        note(&mut fields, "status", section.word("status", &STATUSES).map(Value::from));
        let levels: Vec<_> = Level::ALL.iter().map(|level| (level.as_str(), level.as_str())).collect();
        note(&mut fields, "level", section.word("level", &levels).map(Value::from));
        let modes: Vec<_> = Mode::ALL.iter().map(|mode| (mode.as_str(), mode.as_str())).collect();
        note(&mut fields, "mode", section.word("mode", &modes).map(Value::from));
        for key in ["step", "suppressed"] {
            note(&mut fields, key, section.value(key).is_some().then(|| json!(section.u32(key))));
        }
        for key in ["count", "threshold"] {
            note(&mut fields, key, section.value(key).is_some().then(|| json!(section.fraction(key, u32::MAX))));
        }
        note(&mut fields, "group", section.value("group").cloned());
        Expectation { line: document.line_of(&section.path_of("rule")), at_ms, fields }
    };
    case.mappings("alerts").unwrap_or_default().iter().map(read).collect()
}

/// Reads the controls that a case expects.
pub(super) fn read_controls(case: &Section<'_>, document: &Document, hasher: &SubjectHasher) -> Vec<ExpectedControl> {
    let read = |section: &Section<'_>| {
        let (mut fields, at_ms) = read_shared(section, hasher);
        note(&mut fields, "rule", section.optional_string("rule").map(Value::from));
        note(&mut fields, "step", section.value("step").is_some().then(|| json!(section.u32("step"))));
        Expectation { line: document.line_of(&section.path_of("subject")), at_ms, fields }
    };
    case.mappings("controls").unwrap_or_default().iter().map(read).collect()
}

/// Reads the fields that alerts and controls share.
fn read_shared(section: &Section<'_>, hasher: &SubjectHasher) -> (Map<String, Value>, Option<i64>) {
    let mut fields = Map::new();
    if section.is_written("subject") {
        let found = section.value("subject");
        let ids = Ids::read(&section.section("subject"));
        match ids.only_subject(hasher) {
            Some((_, name)) => note(&mut fields, "subject", Some(name.into())),
            None => section.fault(
                "subject",
                found.map_or("nothing", shape),
                "write one subject, such as {user: alice, tenant: acme} or {tool: bash, args: x}",
            ),
        }
    }
    section.pass_over("subject");
    let at_ms = read_at(section, "at");
    note(&mut fields, "at", at_ms.map(|at_ms| duration_text(at_ms).into()));
    let is_none = section.value("until").and_then(Value::as_str) == Some(NONE);
    let until = if is_none { Some(NONE.into()) } else { read_at(section, "until").map(|until_ms| duration_text(until_ms).into()) };
    note(&mut fields, "until", until);
    (fields, at_ms)
}

fn note(fields: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        fields.insert(key.to_owned(), value);
    }
}
