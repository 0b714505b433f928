//! Blocked places that a search leaves out: `find . -name '*.ts' -not -path './private/*'`.

use bash_commands::{FileOperand, HIDDEN_ONES};

use super::super::glob;
use super::super::path::{NormalPath, PathSet};
use super::super::shell_glob::ShellGlob;
use super::left_behind::last_name;

/// Returns whether a search below a folder leaves out a blocked place, with all that lies below it: in every working folder that is allowed. The
/// place itself is found where only what lies below it is left out, unless names are looked for by patterns that do not match its name.
pub(super) fn is_left_out(entry: &str, folder: &FileOperand, allowed: Option<&PathSet>, patterns: &[String]) -> bool {
    let place = entry.strip_suffix("/**").unwrap_or(entry).trim_end_matches('/');
    let (is_anywhere, place) = place.strip_prefix("**/").map_or((!place.starts_with('/'), place), |name| (true, name));
    let name = place.rsplit('/').next().unwrap_or_default();
    if name.is_empty() || glob::has_wildcards(place) || place.starts_with('~') {
        return false;
    }
    folder.left_out.iter().any(|left_out| {
        let (path, is_inside) = left_out.strip_suffix("/*").map_or((left_out.as_str(), false), |path| (path, true));
        let is_open = |is_itself: bool| is_itself && is_inside && may_be_found(name, patterns);
        match path.strip_prefix("**/") {
            Some(other) => other == name && !is_open(true),
            None if is_anywhere => false,
            None => lies_in(place, path, allowed).is_some_and(|is_itself| !is_open(is_itself)),
        }
    })
}

/// Returns whether a place is a path or lies below the path, seen from every allowed folder above the place, and whether it is the path in the view
/// of some. `None` if it lies elsewhere in the view of some, or no folder above is allowed.
fn lies_in(place: &str, path: &str, allowed: Option<&PathSet>) -> Option<bool> {
    let below = |seen: &str| seen.strip_prefix(path).filter(|rest| rest.is_empty() || rest.starts_with('/')).map(str::is_empty);
    if path.starts_with('/') {
        return below(place);
    }
    let is_allowed = |folder: &str| {
        let allowed = allowed.filter(|allowed| allowed.is_elsewhere());
        allowed.is_none_or(|allowed| allowed.find(&NormalPath::new(folder)).is_some())
    };
    let folders = place.match_indices('/').filter(|(at, _)| *at > 0).filter_map(|(at, _)| Some((place.get(..at)?, place.get(at + 1..)?)));
    let views: Option<Vec<bool>> = folders.filter(|(folder, _)| is_allowed(folder)).map(|(_, seen)| below(seen)).collect();
    views.filter(|views| !views.is_empty()).map(|views| views.contains(&true))
}

/// Returns whether some pattern of names may match a name, or none holds the names.
fn may_be_found(name: &str, patterns: &[String]) -> bool {
    let finds = |pattern: &str| ShellGlob::new(&last_name(pattern).to_ascii_lowercase()).meets(&name.to_ascii_lowercase());
    let matches = |pattern: &String| pattern == HIDDEN_ONES || finds(pattern);
    patterns.is_empty() || patterns.iter().any(matches)
}
