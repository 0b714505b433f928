//! Reading the values of a field, in a detection or an exception. A subject is an id in clear, which is hashed when it is read, or the hash.

use serde_json::Value;

use tollgate_core::decide::controls::{Subject, SubjectHasher};
use tollgate_core::decide::ids::is_no_id;
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::decide::signal::{Dimension, KeyKind, TEXT_BYTES_MAX};
use tollgate_core::decide::tools::is_foreign;
use tollgate_core::settings::shape;
use tollgate_json::digest::Digest;

use super::{Operator, fields};

/// The most values of one field.
pub(super) const VALUES_MAX: usize = 256;

/// Returns the strings that a value is: itself, or the elements of a list.
pub(super) fn strings_of(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(items) if !items.is_empty() => items.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// Returns the values of a field, sorted, with subjects as hex digits of their hashes.
pub(super) fn read_values(
    (dimension, operator): (Dimension, Operator),
    value: &Value,
    tenants: &Tenants<'_>,
    hasher: &SubjectHasher,
) -> Result<Vec<String>, ValueFault> {
    let strings = strings_of(value).ok_or_else(|| (shape(value), "write a string, or a list of strings".to_owned()))?;
    let mut values = Vec::new();
    for text in strings {
        match dimension.subject().and_then(KeyKind::subject_kind) {
            Some(kind) => values.extend(hashes_of(kind, text, tenants, hasher)?),
            None if dimension == Dimension::ArgsHash => values.push(args_hash_of(text)?),
            None => values.push(text_of(dimension, operator, text)?),
        }
    }
    values.sort_unstable();
    values.dedup();
    if values.len() > VALUES_MAX {
        return Err(("too many values", format!("write {VALUES_MAX} at most; an id counts once for each tenant beside it")));
    }
    Ok(values)
}

fn args_hash_of(text: &str) -> Result<String, ValueFault> {
    let hash = Digest::parse(text.strip_prefix(HASH).unwrap_or(text));
    hash.map(|hash| hash.to_string())
        .ok_or_else(|| ("a string that is no hash of arguments", "write the 64 hex digits that signals and verdicts have".to_owned()))
}

fn text_of(dimension: Dimension, operator: Operator, text: &str) -> Result<String, ValueFault> {
    if text.is_empty() {
        return Err(("an empty string", "write a string of at least one character".to_owned()));
    }
    if text.len() > TEXT_BYTES_MAX {
        let fix = format!("write {TEXT_BYTES_MAX} bytes at most; in signals a longer one stands as `sha256:` and its digest");
        return Err(("a longer string", fix));
    }
    if text.contains(['*', '?']) {
        let fix = "write `|startswith`, `|endswith` or `|contains` behind the field's name".to_owned();
        return Err(("a wildcard", fix));
    }
    let is_tool = dimension == Dimension::Tool && operator == Operator::Equals;
    if is_no_id(text) || (is_tool && is_foreign(text)) {
        return Err((
            "a text that no signal has there",
            "write it as signals and verdicts have it, without blanks and signs around it".to_owned(),
        ));
    }
    fields::fault_of_value(dimension, operator, text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// The subjects whose ids are hashed within their tenant.
const WITHIN_TENANTS: [Dimension; 3] = [Dimension::User, Dimension::Agent, Dimension::Thread];
/// What stands before an id in clear.
const ID: &str = "id:";
/// What stands before a hash.
pub(super) const HASH: &str = "hash:";
/// The word of a step that is an alert.
pub(super) const WARN: &str = "warn";

/// What is wrong with a value, and what to write.
pub(super) type ValueFault = (&'static str, String);

/// The tenants beside a field, within which its ids are hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tenants<'v> {
    /// These ids; the empty one alone where no tenant is named.
    Ids(Vec<&'v str>),
    /// Hashes, within which nothing can be hashed.
    Hashes,
}

impl<'v> Tenants<'v> {
    /// Returns the tenants that the values of a field `tenant` name.
    pub(super) fn of(values: &[&'v str]) -> Self {
        if values.is_empty() {
            return Self::Ids(vec![""]);
        }
        let ids: Option<Vec<_>> = values.iter().map(|value| value.strip_prefix(ID)).collect();
        ids.map_or(Self::Hashes, Self::Ids)
    }
}

/// Returns whether fields name an id in clear that is hashed within its tenant, and no tenant. `value` gives the value of a field.
pub(super) fn is_without_tenant<'v>(value: impl Fn(Dimension) -> Option<&'v Value>) -> bool {
    let is_id = |value: &&str| value.starts_with(ID);
    let has_id = |dimension: &Dimension| value(*dimension).and_then(strings_of).is_some_and(|values| values.iter().any(is_id));
    value(Dimension::Tenant).is_none() && WITHIN_TENANTS.iter().any(has_id)
}

/// Returns the hashes, in hex digits, that a value of a subject's field stands for: one for each tenant beside it.
pub(super) fn hashes_of(kind: SubjectKind, value: &str, tenants: &Tenants<'_>, hasher: &SubjectHasher) -> Result<Vec<String>, ValueFault> {
    if let Some(hash) = value.strip_prefix(HASH) {
        let hash = Digest::parse(hash).ok_or_else(|| ("a hash that is not 64 lower-case hex digits", "write all of it".to_owned()))?;
        return Ok(vec![hash.to_string()]);
    }
    let Some(id) = value.strip_prefix(ID).filter(|id| !id.is_empty()) else {
        let name = kind.as_str();
        return Err(("a string that is neither an id nor a hash", format!("write `id:` and the {name}'s id, or `hash:` and its hash")));
    };
    if is_no_id(id) {
        let fix = "write each id as the events carry it, without patterns and blanks at its ends, or `hash:` and its hash".to_owned();
        return Err(("an id that nobody has", fix));
    }
    match (kind, tenants) {
        (SubjectKind::Tenant, _) => Ok(vec![hasher.hash(&Subject { kind, tenant: "", id }).to_string()]),
        (_, Tenants::Ids(ids)) => Ok(ids.iter().map(|tenant| hasher.hash(&Subject { kind, tenant, id }).to_string()).collect()),
        (_, Tenants::Hashes) => Err((
            "an id beside a tenant's hash, within which it cannot be hashed",
            "write the tenant as `id:` and its id, or this as `hash:` and its hash".to_owned(),
        )),
    }
}
