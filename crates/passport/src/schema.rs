//! Checking a passport against the published schema: every fault, and how evaluation treats each.
//!
//! Evaluation is lenient, because documents in use do not follow the schema, including the standard's own examples. This check is the
//! strict side, for people who write passports. The tables below are the schema, with one line a field.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;

use tollgate_json::time::parse_timestamp;
use tollgate_json::{Parser, Shape, Text, Value};

use super::argument_names::are_alike;
use super::fields::{Malformed, item_path, member_path, quoted};
use super::rules::Limits;
use super::{Pack, Passport, PassportFault, SPEC_VERSION, document, unknown};

/// One fault of a passport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SchemaFault {
    /// The JSON path of the fault; empty for the document.
    pub path: String,
    /// What was found.
    pub found: String,
    /// What the schema or evaluation expects.
    pub expected: String,
    /// What evaluation does about it.
    pub effect: Cow<'static, str>,
}

impl SchemaFault {
    /// Returns the fault of a field, with what evaluation does about it.
    pub(super) fn new(Malformed { path, found, expected }: Malformed, effect: &'static str) -> Self {
        Self { path, found, expected, effect: effect.into() }
    }

    /// Returns whether only the schema has something against it: evaluation takes the field as it is written.
    #[must_use]
    pub fn is_formal(&self) -> bool {
        self.effect == EVALUATED
    }
}

/// The kind of value that a field must have.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Uuid,
    OneOf(&'static [&'static str]),
    Timestamp,
    /// A version: three numbers with dots between them.
    Version,
    Flag,
    Object,
    /// A whole number that is at least this one.
    Whole(u64),
    Texts,
    Currencies,
    Regions,
    Capabilities,
    /// Strings, or objects with an id.
    Recipients,
    /// An object that has, for each currency, an object of these whole numbers.
    Amounts(&'static [&'static str]),
    Limits,
}

/// Whether a field must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
    /// Only the standard's prose has the field; the schema forbids it.
    Prose,
    /// The standard does not know the field, and evaluation does.
    Ours,
}

const IGNORED: &str = "ignored by evaluation";
const SUSPENDED: &str = "denies every call: oap.passport_suspended";
const MISMATCH: &str = "denies every call: oap.passport_version_mismatch";
const NO_CAPABILITY: &str = "denies every call that needs a capability: oap.unknown_capability";
const INVALID: &str = "denies every call that needs a capability: oap.passport_invalid";
const NO_LIMITS: &str = "commands are denied (oap.command_not_allowed); other capabilities are not limited";
const UNUSABLE: &str = "denies every call: oap.passport_invalid";
const EVALUATED: &str = "evaluated all the same";
const FORBIDDEN: &str = "none: the schema forbids it; what only describes may stand below metadata";
const EXPIRY: &str = "denies every call unless never_expires is true: oap.passport_invalid";

/// The fields of a passport: name, presence, kind, and how evaluation treats a missing one and one of another kind.
#[rustfmt::skip]
const FIELDS: [(&str, Presence, Kind, &str, &str); 21] = [
    ("passport_id",     Presence::Required, Kind::Uuid,                                         IGNORED, IGNORED),
    ("kind",            Presence::Required, Kind::OneOf(&["template", "instance"]),             IGNORED, IGNORED),
    ("spec_version",    Presence::Required, Kind::OneOf(&[SPEC_VERSION]),                       MISMATCH, MISMATCH),
    ("owner_id",        Presence::Required, Kind::Text,                                         IGNORED, IGNORED),
    ("owner_type",      Presence::Required, Kind::OneOf(&["org", "user"]),                      IGNORED, IGNORED),
    ("assurance_level", Presence::Required, Kind::OneOf(&["L0", "L1", "L2", "L3", "L4KYC", "L4FIN"]), IGNORED, IGNORED),
    ("status",          Presence::Required, Kind::OneOf(&["draft", "active", "suspended", "revoked"]), SUSPENDED, SUSPENDED),
    ("capabilities",    Presence::Required, Kind::Capabilities,                                 NO_CAPABILITY, INVALID),
    ("limits",          Presence::Required, Kind::Limits,                                       NO_LIMITS, INVALID),
    ("regions",         Presence::Required, Kind::Regions,                                      IGNORED, IGNORED),
    ("created_at",      Presence::Required, Kind::Timestamp,                                    IGNORED, IGNORED),
    ("updated_at",      Presence::Required, Kind::Timestamp,                                    IGNORED, IGNORED),
    ("version",         Presence::Required, Kind::Version,                                      IGNORED, IGNORED),
    ("template_id",     Presence::Optional, Kind::Uuid,                                         IGNORED, IGNORED),
    ("parent_agent_id", Presence::Optional, Kind::Uuid,                                         IGNORED, IGNORED),
    ("metadata",        Presence::Optional, Kind::Object,                                       IGNORED, IGNORED),
    ("did",             Presence::Prose,    Kind::Text,                                         IGNORED, IGNORED),
    ("expires_at",      Presence::Prose,    Kind::Timestamp,                                    IGNORED, EXPIRY),
    ("never_expires",   Presence::Prose,    Kind::Flag,                                         IGNORED, IGNORED),
    ("not_before",      Presence::Ours,     Kind::Timestamp,                                    IGNORED, UNUSABLE),
    ("revoked",         Presence::Ours,     Kind::Flag,                                         IGNORED, UNUSABLE),
];

/// The limits that the published schema describes, by capability. Of these, only messages have rules here.
#[rustfmt::skip]
const LIMITS: [(&str, &str, Kind); 17] = [
    ("finance.payment.refund", "currency_limits",            Kind::Amounts(&["max_per_tx", "daily_cap"])),
    ("finance.payment.refund", "reason_codes",               Kind::Texts),
    ("finance.payment.refund", "idempotency_required",       Kind::Flag),
    ("data.export",            "max_rows",                   Kind::Whole(1)),
    ("data.export",            "allow_pii",                  Kind::Flag),
    ("data.export",            "allowed_collections",        Kind::Texts),
    ("messaging.send",         "msgs_per_min",               Kind::Whole(1)),
    ("messaging.send",         "msgs_per_day",               Kind::Whole(1)),
    ("messaging.send",         "allowed_recipients",         Kind::Recipients),
    ("messaging.send",         "approval_required",          Kind::Flag),
    ("payments.payout",        "supported_currencies",       Kind::Currencies),
    ("payments.payout",        "currency_limits",            Kind::Amounts(&["max_per_tx", "max_daily_amount"])),
    ("payments.payout",        "allowed_destination_types",  Kind::Texts),
    ("payments.payout",        "allowed_recipients",         Kind::Recipients),
    ("payments.payout",        "max_payouts_per_day",        Kind::Whole(1)),
    ("repo.release.publish",   "allowed_branches",           Kind::Texts),
    ("repo.release.publish",   "max_releases_per_day",       Kind::Whole(1)),
];

/// Returns whether the published schema describes limits of a capability.
pub(super) fn has_limits(capability: &str) -> bool {
    LIMITS.iter().any(|(known, ..)| *known == capability)
}

/// Returns the capabilities that have rules here or limits in the published schema, and the word for no capability.
pub fn known_capabilities() -> impl Iterator<Item = &'static str> {
    let described = LIMITS.iter().map(|(capability, ..)| *capability).filter(|capability| Pack::of(capability).is_none());
    Pack::ALL.into_iter().map(Pack::capability).chain(described).chain([super::NO_CAPABILITY])
}

/// Returns the members of a passport that are not known and may be meant to restrict.
pub(super) fn unknown_members(root: Value<'_>) -> impl Iterator<Item = Malformed> {
    unknown::members(root, |name| FIELDS.iter().any(|(known, ..)| *known == name))
}

/// Returns every fault of a passport, in the order of the tables. What only some readers find ambiguous is not a fault.
///
/// # Errors
/// [`PassportFault`] if the text is not a passport at all.
pub fn check(text: &[u8]) -> Result<Vec<SchemaFault>, PassportFault> {
    let mut parser = Parser::new();
    let root = document::read(&mut parser, text)?;
    let mut faults = Faults::default();
    for (name, presence, kind, missing, mistyped) in FIELDS {
        match (root.get(name), presence) {
            (None, Presence::Required) => faults.push(name, "nothing", describe(kind), missing),
            (None, _) => {}
            (Some(value), _) => {
                faults.effect = mistyped;
                if presence == Presence::Ours {
                    let found = "a field that the standard does not know";
                    faults.push(name, found, FORBIDDEN.to_owned(), EVALUATED);
                }
                if presence == Presence::Prose {
                    let effect = if matches!(name, "expires_at" | "never_expires") { EVALUATED } else { IGNORED };
                    faults.push(name, "a field that only the standard's prose knows", FORBIDDEN.to_owned(), effect);
                }
                faults.value(value, name, kind);
            }
        }
    }
    let restricting: HashSet<String> = unknown_members(root).map(|unknown| unknown.path).collect();
    for (key, _) in root.members() {
        let Some(key) = key.as_text().and_then(Text::into_str) else { continue };
        if !FIELDS.iter().any(|(name, ..)| *name == key) {
            let path = member_path("", &key);
            let effect = if restricting.contains(&path) { UNUSABLE } else { IGNORED };
            faults.push(&path, "an unknown field", Limits::place_of(&key).unwrap_or_else(|| meant(&key)), effect);
        }
    }
    // Added are the limits that the schema leaves open and the rules cannot read.
    for fault in Passport::read(text)?.limit_faults() {
        if !faults.found.iter().any(|known| known.path == fault.path) {
            faults.found.push(fault);
        }
    }
    Ok(faults.found)
}

/// Returns what to write in place of an unknown field.
fn meant(key: &str) -> String {
    let is_end = ["expires", "expiry", "expiration", "expiresat", "validuntil"].iter().any(|end| are_alike(key, end));
    if is_end { "no such field: write expires_at".to_owned() } else { FORBIDDEN.to_owned() }
}

#[derive(Debug, Default)]
struct Faults {
    found: Vec<SchemaFault>,
    /// How evaluation treats the field that is being checked.
    effect: &'static str,
}

impl Faults {
    fn push(&mut self, path: &str, found: &str, expected: String, effect: &'static str) {
        self.found.push(SchemaFault { path: path.to_owned(), found: found.to_owned(), expected, effect: effect.into() });
    }

    fn mistyped(&mut self, value: Value<'_>, path: &str, kind: Kind) {
        let found = match value.as_text().and_then(Text::into_str) {
            Some(text) => format!("{:?}", quoted(&text)),
            None => value.shape().to_string(),
        };
        self.push(path, &found, describe(kind), self.effect);
    }

    fn value(&mut self, value: Value<'_>, path: &str, kind: Kind) {
        let text = value.as_text().and_then(Text::into_str);
        let is_text = |check: fn(&str) -> bool| text.as_deref().is_some_and(check);
        let is_right = match kind {
            Kind::Text => text.is_some(),
            Kind::Uuid => is_text(is_uuid),
            Kind::OneOf(words) => text.as_deref().is_some_and(|text| words.contains(&text)),
            Kind::Timestamp => is_text(|text| parse_timestamp(text).is_some()),
            Kind::Version => is_text(is_version),
            Kind::Flag => value.as_bool().is_some(),
            Kind::Object => value.is_object(),
            Kind::Whole(least) => whole(value).is_some_and(|number| number >= least),
            Kind::Texts | Kind::Currencies | Kind::Regions | Kind::Capabilities | Kind::Recipients => value.shape() == Shape::Array,
            Kind::Amounts(_) | Kind::Limits => value.is_object(),
        };
        if !is_right {
            return self.mistyped(value, path, kind);
        }
        match kind {
            Kind::Amounts(names) => self.amounts(value, path, names),
            Kind::Limits => self.limits(value),
            _ => value.items().enumerate().for_each(|(index, item)| self.item(item, &item_path(path, index), kind)),
        }
    }

    /// Checks an item of a list.
    fn item(&mut self, item: Value<'_>, path: &str, list: Kind) {
        let text = item.as_text().and_then(Text::into_str);
        match list {
            Kind::Texts if text.is_none() => self.mistyped(item, path, Kind::Text),
            Kind::Currencies if !text.as_deref().is_some_and(is_currency) => self.push_item(item, path, "three capital letters"),
            Kind::Regions if !text.as_deref().is_some_and(is_region) => self.push_item(item, path, "a country such as US or US-CA"),
            Kind::Recipients if text.is_none() && item.get("id").and_then(|id| id.as_text()).is_none() => {
                self.push_item(item, path, "a string, or an object with an id");
            }
            Kind::Capabilities => self.capability(item, path),
            _ => {}
        }
    }

    fn push_item(&mut self, item: Value<'_>, path: &str, expected: &str) {
        self.push(path, &item.shape().to_string(), expected.to_owned(), self.effect);
    }

    fn capability(&mut self, item: Value<'_>, path: &str) {
        const GRANTS_NOTHING: &str =
            "grants nothing; a call that needs a capability that is not granted elsewhere is denied: oap.passport_invalid";
        let entry = match super::read_entry(item, path) {
            Ok(entry) => entry,
            Err(Malformed { path, found, expected }) => return self.push(&path, &found, expected, GRANTS_NOTHING),
        };
        if !is_capability(&entry.id) {
            let expected = "lower-case words with dots between them".to_owned();
            self.push(&member_path(path, "id"), &format!("{:?}", quoted(&entry.id)), expected, "taken as it is; there are no wildcards");
        }
        if let Some(params) = entry.params.filter(|_| Pack::of(&entry.id).is_some()) {
            let expected = "limits of the capability, under limits".to_owned();
            self.push(&params, "parameters that may limit it", expected, "denies every call that needs this capability: oap.policy_error");
        }
    }

    fn amounts(&mut self, value: Value<'_>, path: &str, names: &[&str]) {
        for (currency, amounts) in value.members() {
            let Some(currency) = currency.as_text().and_then(Text::into_str) else { continue };
            let path = member_path(path, &currency);
            for name in names.iter().filter(|_| is_currency(&currency)) {
                if let Some(amount) = amounts.get(name).filter(|amount| whole(*amount).is_none()) {
                    self.mistyped(amount, &member_path(&path, name), Kind::Whole(0));
                }
            }
        }
    }

    fn limits(&mut self, limits: Value<'_>) {
        for (capability, name, kind) in LIMITS {
            let section = limits.get(capability);
            if let Some(value) = section.and_then(|section| section.get(name)) {
                let has_rules = Pack::of(capability).is_some();
                self.effect = if has_rules { "denies every call that needs this capability: oap.passport_invalid" } else { IGNORED };
                self.value(value, &member_path(&member_path("limits", capability), name), kind);
            }
        }
    }
}

fn describe(kind: Kind) -> String {
    match kind {
        Kind::Text => "a string".to_owned(),
        Kind::Uuid => "a UUID".to_owned(),
        Kind::OneOf(words) => words.join(", ").replacen(", ", " or ", usize::from(words.len() == 2)),
        Kind::Timestamp => "an RFC 3339 timestamp".to_owned(),
        Kind::Version => "a version such as 1.0.0".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Object | Kind::Limits => "an object".to_owned(),
        Kind::Whole(least) => format!("a whole number of {least} or more"),
        Kind::Texts => "an array of strings".to_owned(),
        Kind::Currencies => "an array of currencies".to_owned(),
        Kind::Regions => "an array of countries such as US or US-CA".to_owned(),
        Kind::Capabilities => "an array of objects with an id".to_owned(),
        Kind::Recipients => "an array of strings, or of objects with an id".to_owned(),
        Kind::Amounts(_) => "an object of amounts by currency".to_owned(),
    }
}

fn whole(value: Value<'_>) -> Option<u64> {
    let is_number = value.shape() == Shape::Number;
    std::str::from_utf8(value.source()).ok().filter(|_| is_number)?.parse().ok()
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(is_hex)
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_currency(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn is_region(text: &str) -> bool {
    let is_part = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_uppercase());
    text.split_once('-').map_or_else(|| is_part(text), |(country, part)| is_part(country) && is_part(part))
}

fn is_capability(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    text.split('.').all(is_word)
}
