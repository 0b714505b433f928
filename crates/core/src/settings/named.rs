//! Things that a configuration selects by their names: `use: NAME`.

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
