//! Holding what a call asks for to one limit.

use super::super::denial::Denial;
use super::super::fields::{Amount, Field, quoted};

/// Checks a call against a limit. A missing limit allows the call, and one that cannot be read denies it.
pub(super) fn check_limit<T>(limit: &Field<T>, check: impl FnOnce(&T) -> Result<(), Denial>) -> Result<(), Denial> {
    match limit {
        Field::Absent => Ok(()),
        Field::Valid(limit) => check(limit),
        Field::Malformed(malformed) => Err(Denial::invalid(malformed)),
    }
}

/// Compares an amount that the call asks for with the largest that is allowed. An amount that the call does not ask for is not compared.
/// What is asked for is looked for only where there is a limit.
pub(super) fn check_amount(
    limit: &Field<Amount>,
    asked: impl FnOnce() -> Result<Option<Amount>, Denial>,
    over: &'static str,
) -> Result<(), Denial> {
    check_limit(limit, |limit| match asked()? {
        Some(asked) if asked > *limit => Err(Denial::new("oap.limit_exceeded", over)),
        _ => Ok(()),
    })
}

/// Denies what is so.
pub(super) fn deny_if(is_so: bool, code: &'static str, what: &'static str) -> Result<(), Denial> {
    if is_so { Err(Denial::new(code, what)) } else { Ok(()) }
}

/// Denies what an entry of a list forbids, and names the entry.
pub(super) fn deny_found(found: Option<&str>, code: &'static str, what: &str) -> Result<(), Denial> {
    found.map_or(Ok(()), |entry| Err(Denial::new(code, format!("{what}: {}", quoted(entry)))))
}
