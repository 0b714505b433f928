//! The name that was meant where a name is unknown.

use std::collections::BTreeSet;

/// How alike a name and the nearest known one are at least, for it to be worth naming.
const ALIKE_MIN: f64 = 0.8;

/// Returns the name that was meant, as far as a slip of the pen can be told.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let alike = known.into_iter().map(|known| (similarity(known, name), known)).filter(|(similarity, _)| *similarity >= ALIKE_MIN);
    alike.max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, known)| known)
}

/// Returns what is added to an error for the name that was meant; nothing if no known name is alike.
pub fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(name, known).map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default()
}

/// How many keys are listed. Of more, the most alike ones are.
const LISTED_MAX: usize = 12;

/// Returns the keys that a section takes, for people.
pub(super) fn known_keys(known: &BTreeSet<&str>, key: &str) -> String {
    let mut keys: Vec<_> = known.iter().copied().collect();
    if keys.is_empty() {
        return String::new();
    }
    let more = if keys.len() > LISTED_MAX { ", …" } else { "" };
    if keys.len() > LISTED_MAX {
        keys.sort_by(|left, right| similarity(right, key).total_cmp(&similarity(left, key)));
        keys.truncate(LISTED_MAX);
        keys.sort_unstable();
    }
    format!("; what can stand here is `{}`{more}", keys.join("`, `"))
}

fn similarity(left: &str, right: &str) -> f64 {
    strsim::jaro_winkler(left, right)
}
