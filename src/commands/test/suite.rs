//! A test file: the policy that it is about, and its cases.

use std::path::Path;

use serde_json::{Value, json};
use tollgate_core::decide::controls::{Controls, Subject, SubjectHasher};
use tollgate_core::decide::policy::PolicySettings;
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::settings::{Faults, Section, shape};

use super::answer::StubAnswer;
use super::expected::Expected;
use super::message::Message;
use crate::commands::shared::suites::{self, Outcome};
use tollgate_config::Document;
use tollgate_config::settings::SubjectKeys;

/// A policy on which cases are run.
#[derive(Debug)]
pub(super) struct Tested {
    /// Its name for people: the file that holds it.
    pub(super) name: String,
    pub(super) settings: PolicySettings,
    /// The topic of the records.
    pub(super) topic: String,
    /// The keys of subject hashes.
    pub(super) subject_keys: SubjectKeys,
}

/// A case: events that come to a fresh state, one after the other.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) why: Option<String>,
    /// The line of the file that it begins on.
    pub(super) line: usize,
    pub(super) controls: Vec<ControlRecord>,
    pub(super) steps: Vec<Step>,
}

/// A record of the controls topic.
#[derive(Debug, Clone)]
pub(super) struct ControlRecord {
    pub(super) key: String,
    pub(super) value: Option<String>,
}

/// One event, and what is expected of it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) message: Message,
    pub(super) expected: Expected,
    pub(super) answers: Vec<StubAnswer>,
}

impl suites::Tested for Tested {
    type Case = Case;

    fn name(&self) -> &str {
        &self.name
    }

    fn read(root: &Section<'_>, path: &Path) -> Option<Result<Self, String>> {
        // Nothing of the rest is read yet: the controls of the file depend on the policy's key.
        ["controls", "suspended", "cases"].into_iter().for_each(|key| root.pass_over(key));
        let folder = path.parent().unwrap_or(Path::new(""));
        match root.value("policy")? {
            Value::String(file) => Some(suites::load_named(path, "policy", file).map(|(settings, name)| {
                let (topic, subject_keys) = (settings.kafka.topics.events, settings.subject_keys);
                Tested { name, settings: settings.policy, topic, subject_keys }
            })),
            Value::Object(_) => {
                let value = root.value("policy")?;
                let read = |file: &str| std::fs::read(folder.join(file)).map_err(|error| error.to_string());
                let settings = PolicySettings::from_value(value)
                    .and_then(|mut settings| settings.load_files(read).map(|()| settings))
                    .map_err(|Faults(faults)| {
                        faults.into_iter().for_each(|fault| root.fault(&format!("policy.{}", fault.key), fault.found, fault.fix));
                    });
                let keys = ["/privacy/subject_key", "/privacy/subject_keys"].into_iter().filter_map(|key| value.pointer(key));
                let keys = keys.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
                let subject_keys = SubjectKeys::new(keys.filter_map(Value::as_str).map(str::to_owned).collect());
                let name = path.display().to_string();
                Some(Ok(Tested { name, settings: settings.ok()?, topic: TOPIC.to_owned(), subject_keys }))
            }
            other => {
                root.fault("policy", shape(other), "write the path of a configuration, or its sections as a mapping");
                None
            }
        }
    }

    fn read_cases(&self, root: &Section<'_>, document: &Document) -> Vec<Case> {
        root.pass_over("policy");
        read_cases(root, document, &self.subject_keys)
    }
}

impl suites::Case for Case {
    fn outcome(&self) -> Outcome {
        Outcome { name: self.name.clone(), why: self.why.clone(), line: self.line, failures: Vec::new() }
    }
}

/// The topic of records under a policy that stands in the test file.
const TOPIC: &str = "agent.events";

fn read_cases(root: &Section<'_>, document: &Document, subject_keys: &SubjectKeys) -> Vec<Case> {
    let shared = read_controls(root, subject_keys);
    let case = |place: usize, section: &Section<'_>| Case {
        name: section.string("name"),
        why: section.optional_string("why"),
        line: document.line_of(&format!("cases[{place}]")),
        controls: shared.iter().cloned().chain(read_controls(section, subject_keys)).collect(),
        steps: read_steps(section, document),
    };
    suites::read_cases(root, root.sections("cases"), "`name` and `events`", case)
}

fn read_steps(case: &Section<'_>, document: &Document) -> Vec<Step> {
    let step = |(place, step): (usize, Section<'_>)| Step {
        line: document.line_of(&step.path_of("event")),
        message: Message::read(&step, place + 1),
        expected: Expected::read(&step),
        answers: StubAnswer::read_all(&step),
    };
    let steps: Vec<_> = case.sections("events").into_iter().flatten().enumerate().map(step).collect();
    if steps.iter().all(|step| step.expected.is_anything()) {
        case.fault("events", "nothing that is expected", "write `expect` at one event or more");
    }
    steps
}

/// Reads the controls of a file or of a case: records of the controls topic, and suspended subjects by their ids.
fn read_controls(section: &Section<'_>, subject_keys: &SubjectKeys) -> Vec<ControlRecord> {
    let mut records = Vec::new();
    for entry in section.sections("controls").into_iter().flatten() {
        let record = ControlRecord { key: entry.string("key"), value: entry.value("value").map(Value::to_string) };
        let applied = Controls::new(subject_keys.iter()).apply(Some(record.key.as_bytes()), record.value.as_deref().map(str::as_bytes));
        if let Err(rejection) = applied {
            entry.fault("value", format!("{} (in {})", rejection.found, rejection.field), rejection.fix);
        }
        records.push(record);
    }
    let kinds = SubjectKind::ALL.map(|kind| (kind.as_str(), kind));
    for entry in section.sections("suspended").into_iter().flatten() {
        let (id, tenant) = (entry.string("id"), entry.optional_string("tenant").unwrap_or_default());
        let (reason, until) = (entry.optional_string("reason"), entry.optional_string("until"));
        let Some(kind) = entry.word("kind", &kinds) else {
            entry.fault("kind", "nothing", "write user, tenant, agent or thread");
            continue;
        };
        let hash = SubjectHasher::new(subject_keys.first()).hash(&Subject { kind, tenant: &tenant, id: &id });
        let mut value = json!({"type": "subject", "kind": kind.as_str(), "hash": hash.to_string(), "state": "suspended"});
        for (member, text) in [("reason", reason), ("until", until)] {
            if let (Some(text), Some(members)) = (text, value.as_object_mut()) {
                members.insert(member.to_owned(), text.into());
            }
        }
        let record = ControlRecord { key: format!("subject/{}/{hash}", kind.as_str()), value: Some(value.to_string()) };
        if let Err(rejection) =
            Controls::new(subject_keys.iter()).apply(Some(record.key.as_bytes()), record.value.as_deref().map(str::as_bytes))
        {
            entry.fault(rejection.field, rejection.found, rejection.fix);
        }
        records.push(record);
    }
    records
}
