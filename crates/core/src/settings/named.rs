//! Names in a configuration: things that it selects by `use: NAME`, and the name that was meant where one is unknown.

use std::collections::BTreeSet;

use super::Section;

/// A thing that configuration can name.
pub trait Named {
    /// Returns the name, as configuration, verdicts and metrics write it.
    fn name(&self) -> &'static str;

    /// Returns other names for it, such as the class that another system has for it.
    fn aliases(&self) -> &'static [&'static str];
}

/// Returns the element of `known` that `use` names. A class path names its class behind the last colon. An unknown name is a fault that
/// lists the known ones. `what` says what they are, as in `detector`.
pub fn find<'d, D: Named>(entry: &Section<'_>, what: &str, known: &[&'d D]) -> Option<&'d D> {
    let written = entry.string("use");
    if written.is_empty() {
        return None;
    }
    let name = written.rsplit(':').next().unwrap_or_default();
    let found = known.iter().find(|known| known.name() == name || known.aliases().contains(&name));
    if found.is_none() {
        let names: Vec<_> = known.iter().map(|known| format!("`{}`", known.name())).collect();
        entry.fault("use", format!("an unknown {what}"), format!("write {}", alternatives(&names)));
    }
    found.copied()
}

/// Returns the names as a choice in words.
fn alternatives(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing: none is known".to_owned(),
    }
}

/// How alike a name and the nearest known one are at least, for it to be worth naming.
const ALIKE_MIN: f64 = 0.8;

/// Returns the name that was meant, as far as a slip of the pen can be told.
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let alike = known.into_iter().map(|known| (similarity(known, name), known)).filter(|(similarity, _)| *similarity >= ALIKE_MIN);
    alike.max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, known)| known)
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
