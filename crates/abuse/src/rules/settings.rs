//! The section `abuse` of the configuration: the rules in force, those of the pack among them, and the bounds of the stage that counts by them.

use std::collections::BTreeSet;

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::{Section, put};

use super::digest::rule_json;
use super::pack::{pack_number, read_pack};
use super::read_rule::{ReadRule, Reading, read_rule};
use super::{AbuseRules, Pack, Rule};

/// The most rules that can be written. The pack's come on top.
pub const RULES_MAX: usize = 256;
/// The longest lateness, in seconds: a day.
const LATENESS_SECONDS_MAX: u32 = 86_400;

/// What is said of rules without signals.
const UNCOUNTED: &str = "abuse.signals is false, so that no rule counts what this worker decides, and the rules find nobody unless other workers \
                         write signals; write true, or `pack: off` and no rules";

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
    /// What the author of the section should know, as sentences: each place that names an id in clear without its tenant, which stands for
    /// nobody where events have tenants; and rules without signals that they could count.
    pub remarks: Vec<String>,
    /// What is changed of the pack's rules, by their ids.
    overrides: Map<String, Value>,
    /// The rules in force with their texts for people, in the order of `rules`.
    read: Vec<ReadRule>,
    /// How many of them are the pack's. They come first.
    from_pack: usize,
}

impl AbuseSettings {
    /// Reads the section. Ids in clear are hashed by `hasher`. `now_ms` is the time in milliseconds since the epoch: an exception that is
    /// over by then is a fault.
    #[must_use]
    pub fn read(section: &Section<'_>, hasher: &SubjectHasher, now_ms: i64) -> Self {
        let own = read_rules(section, Reading { hasher, now_ms });
        let ids: BTreeSet<_> = own.iter().map(|read| read.rule.id.as_str()).collect();
        let pack = read_pack(section, &ids);
        let mut remarks: Vec<_> = own.iter().flat_map(ReadRule::ids_without_tenant).collect();
        let from_pack = pack.rules.len();
        let read: Vec<_> = pack.rules.into_iter().chain(own).collect();
        let signals = section.bool("signals");
        if !signals && !read.is_empty() {
            remarks.push(UNCOUNTED.to_owned());
        }
        let lateness_ms = i64::from(section.between("lateness_seconds", 1, LATENESS_SECONDS_MAX)) * 1_000;
        let subjects_max = usize::try_from(section.positive("subjects_per_partition_max")).unwrap_or(usize::MAX);
        Self {
            rules: AbuseRules { rules: read.iter().map(|read| read.rule.clone()).collect(), lateness_ms, subjects_max },
            pack: pack.mode,
            signals,
            group_id: section.optional_string("group_id"),
            members: section.positive("members"),
            remarks,
            overrides: pack.overrides,
            read,
            from_pack,
        }
    }
}

impl AbuseSettings {
    /// Returns whether anything is counted: deciding writes signals, and there are rules.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.signals && !self.rules.rules.is_empty()
    }

    /// Returns each rule in force, with its JSON: as it is written, defaults filled in and ids hashed, with its version, where it is
    /// `from` (`pack` or `configuration`), and for each number that `overrides` changes, that number in the `pack` and `now`.
    pub fn listed(&self) -> impl Iterator<Item = (&Rule, Value)> {
        self.read.iter().enumerate().map(|(place, read)| {
            let mut value = shown(read);
            put(&mut value, "version", json!(read.rule.version.to_string()));
            put(&mut value, "from", json!(if place < self.from_pack { "pack" } else { "configuration" }));
            let changes = self.overrides.get(&read.rule.id).and_then(Value::as_object).into_iter().flatten();
            let changes: Map<_, _> = changes
                .filter_map(|(key, now)| Some((key.clone(), json!({"pack": pack_number(&read.rule.id, key)?, "now": now}))))
                .collect();
            if !changes.is_empty() {
                put(&mut value, "overridden", Value::Object(changes));
            }
            (&read.rule, value)
        })
    }

    /// Returns the ids of the pack's rules that an override switches off.
    pub fn switched_off(&self) -> impl Iterator<Item = &str> {
        self.overrides.iter().filter(|(_, changes)| changes.get("enabled") == Some(&json!(false))).map(|(id, _)| id.as_str())
    }
}

impl Serialize for AbuseSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = json!({
            "rules": self.read.iter().skip(self.from_pack).map(shown).collect::<Vec<_>>(),
            "overrides": self.overrides,
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
    let mut value = rule_json(&read.rule);
    for (key, text) in [("title", &read.title), ("description", &read.description)] {
        if let Some(text) = text {
            put(&mut value, key, json!(text));
        }
    }
    value
}
