//! A cache of tool fingerprints: a fleet calls a few tools millions of times, and hashing a name takes far longer than finding it.

use std::collections::HashMap;

use crate::digest::Fingerprint;

/// How many names are remembered. Names come from outside, so their number is bounded; names beyond this many are hashed each time.
const NAMES_MAX: usize = 1_024;

/// The fingerprints of the tools that were named so far, up to a bound. The fingerprint of a name does not depend on what is remembered.
/// Names are not ours, so their hash is keyed.
#[derive(Debug, Default)]
pub struct Tools {
    known: HashMap<Box<str>, Fingerprint>,
}

impl Tools {
    /// Returns the fingerprint of a tool's name.
    pub fn fingerprint(&mut self, name: &str) -> Fingerprint {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let fingerprint = Fingerprint::of(name);
        if self.known.len() < NAMES_MAX {
            self.known.insert(name.into(), fingerprint);
        }
        fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_fingerprint_known_or_not_and_few_are_kept() {
        let mut tools = Tools::default();
        for number in (0..2 * NAMES_MAX).chain(0..2 * NAMES_MAX) {
            let name = format!("tool_{number}");
            assert_eq!(tools.fingerprint(&name), Fingerprint::of(&name));
        }
        assert_eq!(tools.known.len(), NAMES_MAX);
    }
}
