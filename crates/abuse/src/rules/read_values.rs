//! Reading the values of a field, in a detection or an exception.

use serde_json::Value;

use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::decide::signal::{Dimension, TEXT_BYTES_MAX};
use tollgate_core::settings::shape;

use super::ids::{HASH, Tenants, ValueFault, hashes_of};
use super::{Operator, contradictions};

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
///
/// # Errors
/// [`ValueFault`] says what is wrong with the first bad one.
pub(super) fn read_values(
    (dimension, operator): (Dimension, Operator),
    value: &Value,
    tenants: &Tenants<'_>,
    hasher: &SubjectHasher,
) -> Result<Vec<String>, ValueFault> {
    let strings = strings_of(value).ok_or_else(|| (shape(value), "write a string, or a list of strings".to_owned()))?;
    let mut values = Vec::new();
    for text in strings {
        match dimension.subject().and_then(tollgate_core::decide::signal::KeyKind::subject_kind) {
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
    let hash = tollgate_core::decide::controls::parse_hash(text.strip_prefix(HASH).unwrap_or(text));
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
    contradictions::of_value(dimension, operator, text).map_or_else(|| Ok(text.to_owned()), Err)
}
