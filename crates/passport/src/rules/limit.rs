//! Holding what a call asks for to one limit.

use super::super::denial::Denial;
use super::super::fields::{Amount, Field};

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
