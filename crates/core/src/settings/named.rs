//! What configuration chooses by name: `use: NAME`.

use super::Section;

/// Something that configuration can name.
pub trait Named {
    /// Returns the name, as configuration, verdicts and metrics spell it.
    fn name(&self) -> &'static str;

    /// Returns other names that mean the same, such as the class that another system has for it.
    fn aliases(&self) -> &'static [&'static str];
}

/// Returns the one of `known` that `use` names; a class path names its class behind the last colon. An unknown name is a fault that lists
/// those that are known; `what` says what they are, as in `detector`.
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

/// Returns names as a choice between them.
fn alternatives(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing: none is known".to_owned(),
    }
}
