//! Labels whose values others choose, such as agents and policy servers: a label is held for ever, so their number is bounded.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;

/// How many tools get a label of their own.
pub const TOOLS_MAX: usize = 128;

/// A label that has a value of its own for the first few, and a common one for all others.
#[derive(Debug)]
pub struct BoundedLabel {
    values_max: usize,
    known: Mutex<FxHashSet<Box<str>>>,
}

impl BoundedLabel {
    /// The common value.
    pub const OTHER: &str = "other";

    /// Returns a label for so many values.
    #[must_use]
    pub fn new(values_max: usize) -> Self {
        Self { values_max, known: Mutex::default() }
    }

    /// Returns the value that stands for this one: itself, or the common one.
    pub fn of<'v>(&self, value: &'v str) -> &'v str {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(value) {
            return value;
        }
        if known.len() >= self.values_max {
            return Self::OTHER;
        }
        known.insert(value.into());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_bound_share_one() {
        let label = BoundedLabel::new(2);
        assert_eq!(["a", "b", "a", "c", "b"].map(|value| label.of(value)), ["a", "b", "a", "other", "b"]);
    }
}
