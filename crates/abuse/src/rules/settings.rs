//! The section `abuse` of the configuration: the rules in force, those of the pack among them, and the bounds of the stage that counts by them.

use std::collections::BTreeSet;

use serde::ser::{Serialize, Serializer};
use serde_json::{Value, json};

use tollgate_core::codes::codes;
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::{Collector, Faults, Section, parse, put};

use super::digest::{version_of, written};
use super::read_rule::{ReadRule, Reading, read_rule};
use super::{AbuseRules, Mode, Rule, Step};

/// The most rules that can be written. The pack's come on top.
pub const RULES_MAX: usize = 256;
/// The longest lateness, in seconds: a day.
const LATENESS_SECONDS_MAX: u32 = 86_400;

codes! {
    /// What the rules that come with the program do.
    Pack {
        /// They are not in force.
        Off = "off",
        /// They raise alerts.
        Alert = "alert",
        /// Those with steps that suspend suspend, the others raise alerts.
        Enforce = "enforce",
    }
}

/// The section `abuse`.
#[derive(Debug, Clone)]
pub struct AbuseSettings {
    /// The rules in force: those of the pack that nobody has replaced, then those that are written, in their order.
    pub rules: AbuseRules,
    /// What the pack's rules do.
    pub pack: Pack,
    /// Whether deciding writes signals. Without them nothing is counted.
    pub signals: bool,
    /// The consumer group of the abuse stage; `None` is the group of deciding with `-abuse` behind it.
    pub group_id: Option<String>,
    /// How many members a worker has in that group.
    pub members: u32,
    /// A sentence for each place that names an id in clear without its tenant: where events have tenants, it stands for nobody.
    pub ids_without_tenant: Vec<String>,
    /// The rules that are written, with defaults filled in and ids hashed.
    written: Vec<Value>,
}

impl AbuseSettings {
    /// Reads the section. Ids in clear are hashed by `hasher`. `now_ms` is the time in milliseconds since the epoch: an exception that is
    /// over by then is a fault.
    #[must_use]
    pub fn read(section: &Section<'_>, hasher: &SubjectHasher, now_ms: i64) -> Self {
        let reading = Reading { hasher, now_ms };
        let read = read_rules(section, reading);
        let pack_mode = section.word("pack", &Pack::ALL.iter().map(|pack| (pack.as_str(), *pack)).collect::<Vec<_>>());
        let pack_mode = pack_mode.unwrap_or(Pack::Alert);
        let ids: BTreeSet<_> = read.iter().map(|read| read.rule.id.as_str()).collect();
        let mut rules: Vec<_> = pack(pack_mode).into_iter().filter(|rule| !ids.contains(rule.id.as_str())).collect();
        rules.extend(read.iter().map(|read| read.rule.clone()));
        let lateness_ms = i64::from(section.between("lateness_seconds", 1, LATENESS_SECONDS_MAX)) * 1_000;
        let subjects_max = usize::try_from(section.positive("subjects_per_partition_max")).unwrap_or(usize::MAX);
        Self {
            rules: AbuseRules { rules, lateness_ms, subjects_max },
            pack: pack_mode,
            signals: section.bool("signals"),
            group_id: section.optional_string("group_id"),
            members: section.positive("members"),
            ids_without_tenant: read.iter().flat_map(ReadRule::ids_without_tenant).collect(),
            written: read.iter().map(shown).collect(),
        }
    }
}

impl AbuseSettings {
    /// Returns whether anything is counted: deciding writes signals, and there are rules.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.signals && !self.rules.rules.is_empty()
    }
}

impl Serialize for AbuseSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = json!({
            "rules": self.written,
            "pack": self.pack.as_str(),
            "lateness_seconds": self.rules.lateness_ms / 1_000,
            "subjects_per_partition_max": self.rules.subjects_max,
            "signals": self.signals,
            "group_id": self.group_id,
            "members": self.members,
        });
        value.serialize(serializer)
    }
}

/// Reads the list of rules of a section.
pub(super) fn read_rules(section: &Section<'_>, reading: Reading<'_>) -> Vec<ReadRule> {
    let sections = section.mappings("rules").unwrap_or_default();
    if sections.len() > RULES_MAX {
        section.fault("rules", "too many rules", format!("write {RULES_MAX} at most"));
    }
    let mut ids = BTreeSet::new();
    let mut rules = Vec::with_capacity(sections.len());
    for section in &sections {
        let read = read_rule(section, reading);
        if !ids.insert(read.rule.id.clone()) && !read.rule.id.is_empty() {
            section.fault("id", "the id of another rule", "give each rule an id of its own");
        }
        rules.push(read);
    }
    rules
}

impl ReadRule {
    fn ids_without_tenant(&self) -> impl Iterator<Item = String> {
        let id = &self.rule.id;
        self.without_tenant.iter().map(move |place| {
            format!(
                "abuse rule {id}: {place} names an id without its tenant, so it stands for events without a tenant_id; if yours have one, \
                 write `tenant` beside it"
            )
        })
    }
}

/// Returns a rule as it is in force, with its texts for people.
fn shown(read: &ReadRule) -> Value {
    let mut value = written(&read.rule);
    for (key, text) in [("title", &read.title), ("description", &read.description)] {
        if let Some(text) = text {
            put(&mut value, key, json!(text));
        }
    }
    value
}

/// The pack's rules, in the form in which all rules are written.
pub const PACK: &str = include_str!("../../../../config/abuse-pack.yaml");

/// Returns the pack's rules.
///
/// # Errors
/// [`Faults`] if the embedded file is broken, which a test rules out.
fn read_pack() -> Result<Vec<ReadRule>, Faults> {
    let value = parse(PACK).map_err(|error| Faults::of("the pack", &error))?;
    let (none, faults) = (Value::Null, Collector::default());
    // The pack names no ids and has no exceptions.
    let reading = Reading { hasher: &SubjectHasher::new(None), now_ms: i64::MIN };
    let rules = read_rules(&Section::root(&value, &none, &faults), reading);
    faults.into_result(rules)
}

/// Returns the rules of the pack that are in force.
fn pack(pack: Pack) -> Vec<Rule> {
    if pack == Pack::Off {
        return Vec::new();
    }
    let in_force = |read: ReadRule| {
        let mut rule = read.rule;
        let suspends = rule.ladder.steps.iter().any(|step| matches!(step, Step::Suspend(_)));
        rule.mode = if pack == Pack::Enforce && suspends { Mode::Enforce } else { Mode::Alert };
        rule.version = version_of(&rule);
        rule
    };
    read_pack().unwrap_or_default().into_iter().map(in_force).collect()
}
