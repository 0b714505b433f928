//! How a text begins that some reader takes for a path, and where a path climbs. Every rule asks here, so that no two of them differ.

/// The most components `..` that are followed in one path.
pub(super) const CLIMBS_MAX: usize = 16;

/// Characters that some readers leave out around a path, or that say that one follows.
pub(super) const AROUND: [char; 8] = ['"', '\'', '`', '@', '=', '<', '>', '\u{feff}'];

/// Returns how often `..` stands in a path.
pub(super) fn count_parents(path: &str) -> usize {
    parents(path).count()
}

/// Returns the components `..` of a path, with their places in it.
pub(super) fn parents(path: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let placed = path.split('/').map(move |component| {
        let start = at;
        at += component.len() + 1;
        (start, component)
    });
    placed.filter(|(_, component)| *component == "..")
}

/// Returns whether a component of a text is `..`, behind a slash of either kind.
pub(super) fn climbs(text: &str) -> bool {
    text.split(['/', '\\']).any(|component| component == "..")
}

/// Returns a text without blanks and what some readers leave out around a path.
pub(super) fn bare(text: &str) -> &str {
    text.trim().trim_matches(AROUND).trim()
}

/// Returns what stands behind the letter of a drive and its colon.
pub(super) fn behind_drive(text: &str) -> Option<&str> {
    text.strip_prefix(|first: char| first.is_ascii_alphabetic())?.strip_prefix(':')
}

/// Returns whether a text begins with the scheme of a file's address.
pub(super) fn is_file_address(text: &str) -> bool {
    text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// Returns the path of an address of a file, whatever host it names; another text as it stands.
pub(super) fn without_scheme(text: &str) -> &str {
    let Some(rest) = text.get(5..).filter(|_| is_file_address(text)) else { return text };
    match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest),
        None => rest,
    }
}

/// Returns whether a text begins as a path at the root, of a home or of the folder above.
pub(super) fn is_rooted(text: &str) -> bool {
    text.starts_with(['/', '~']) || text.starts_with("../")
}

/// Returns whether a text begins at the root, of a drive or of a home, or as the address of a file, or climbs or names the folder at hand.
pub(super) fn is_path(text: &str) -> bool {
    is_led(text) || text.starts_with("./") || climbs(text)
}

/// Returns whether a text begins as a path to some reader: as [`is_path`] says, with a dot, a variable or percent signs, or behind another scheme.
pub(super) fn is_begun(text: &str) -> bool {
    let is_encoded = text.get(..3).is_some_and(|first| ["%2f", "%2e", "%5c", "%7e"].contains(&first.to_ascii_lowercase().as_str()));
    let named = text.strip_prefix('%').and_then(|rest| rest.split_once('%')).map(|(name, _)| name).filter(|name| !name.is_empty());
    let is_name = |name: &str| name.chars().all(|char| char.is_alphanumeric() || "_()".contains(char));
    let next = text.strip_prefix('$').and_then(|rest| rest.chars().next());
    let is_variable = next.is_some_and(|next| next.is_alphabetic() || "{_(".contains(next)) || named.is_some_and(is_name);
    let is_file = || text.to_ascii_lowercase().contains("file:/");
    is_led(text) || text.starts_with('.') || is_encoded || is_variable && text.contains(['/', '\\']) || is_file()
}

fn is_led(text: &str) -> bool {
    let has_blank = || text.contains(char::is_whitespace);
    // Of several words the sign means about.
    let is_home = |rest: &str| rest.chars().next().is_none_or(|next| matches!(next, '/' | '\\') || next.is_alphabetic() && !has_blank());
    text.starts_with(['/', '\\'])
        || text.strip_prefix('~').is_some_and(is_home)
        || behind_drive(text).is_some_and(|rest| rest.starts_with(['/', '\\']))
        || is_file_address(text)
}
