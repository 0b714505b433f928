//! A cache of tool fingerprints: a fleet calls a few tools millions of times, and hashing a name takes far longer than finding it.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use tollgate_json::digest::Fingerprint;

/// How many places there are. Names come from outside, so their number is bounded.
const PLACES: usize = 1_024;

/// The fingerprints of tools that were named lately. The fingerprint of a name does not depend on what is remembered.
///
/// A quick hash assigns two places to each name. A name that finds both taken displaces one of the two. So a sender whose names fall on the
/// same places only has them hashed anew each time, as it would with ever new names.
#[derive(Debug, Default)]
pub struct Tools {
    /// The places, allocated when the first name is to be remembered.
    known: Vec<Option<(Box<str>, Fingerprint)>>,
}

impl Tools {
    /// Returns the fingerprint of a tool's name.
    pub fn fingerprint(&mut self, name: &str) -> Fingerprint {
        let places = places_of(name);
        let known = places.iter().filter_map(|place| self.known.get(*place)?.as_ref()).find(|(known, _)| **known == *name);
        if let Some((_, fingerprint)) = known {
            return *fingerprint;
        }
        let fingerprint = Fingerprint::of(name);
        self.known.resize(PLACES, None);
        let [first, second] = places;
        let place = if matches!(self.known.get(second), Some(None)) { second } else { first };
        if let Some(place) = self.known.get_mut(place) {
            *place = Some((name.into(), fingerprint));
        }
        fingerprint
    }
}

/// Returns the two places of a name, from both ends of its hash.
fn places_of(name: &str) -> [usize; 2] {
    let hash = FxBuildHasher.hash_one(name.as_bytes());
    [hash, hash >> 32].map(|part| usize::try_from(part % PLACES as u64).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_fingerprint_known_or_not_and_few_are_kept() {
        let mut tools = Tools::default();
        for number in (0..2 * PLACES).chain(0..2 * PLACES) {
            let name = format!("tool_{number}");
            assert_eq!(tools.fingerprint(&name), Fingerprint::of(&name));
        }
        assert_eq!(tools.known.len(), PLACES);
        assert!(tools.known.iter().flatten().count() > PLACES / 2);
    }

    #[test]
    fn the_names_of_a_fleet_are_nearly_all_remembered() {
        let mut tools = Tools::default();
        let names: Vec<_> = (0..100).map(|number| format!("mcp_server_tool_{number}")).collect();
        (0..2).for_each(|_| names.iter().for_each(|name| _ = tools.fingerprint(name)));
        let kept = tools.known.iter().flatten().filter(|(name, _)| names.iter().any(|known| **known == **name)).count();
        assert!(kept >= 98, "{kept} of 100");
    }
}
