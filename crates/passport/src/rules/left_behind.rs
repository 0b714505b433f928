//! What lies below a folder that is moved, taken away or changed as a whole. In folders that hold what can be made again no repository and
//! nothing that is worth blocking is taken to lie.

use bash_commands::Below;

use super::super::path::trees::is_of_system;
use super::super::path::{NormalPath, PathSet};

/// Folders that builds leave behind, and that lie in no place that is worth blocking.
pub(super) const BUILT: [&str; 2] = ["__pycache__", "node_modules"];

/// Folders that hold what builds, tests and linters write, and are taken away as a whole, and files of fixed names that such programs write. No
/// repository is taken to lie in them.
const LEFT_BEHIND: &str = ".cache .coverage .eggs .eslintcache .gradle .mypy_cache .next .nox .nuxt .nyc_output .parcel-cache .pytest_cache \
     .ruff_cache .tox .turbo .venv .vite Cargo.lock Gemfile.lock Pipfile.lock _build bin build composer.lock coverage coverage.xml dist go.sum \
     htmlcov logs obj out package-lock.json playwright-report pnpm-lock.yaml poetry.lock site-packages target test-results tmp uv.lock venv \
     yarn.lock";

/// Returns whether a name is that of such a folder, or of a folder of which packages are built.
fn is_left_behind(name: &&str) -> bool {
    BUILT.contains(name) || LEFT_BEHIND.split_ascii_whitespace().any(|known| known == *name) || name.ends_with(".egg-info")
}

/// Returns a path as it is seen from the working folder, which lies in an allowed folder, and whether it is left behind there, or lies
/// below a folder that is. A folder such as `/tmp` is left behind where others are allowed beside it. Where no folder is allowed by its place, the
/// working folder may be any folder: then only the path's own name counts, unless it lies at the root.
fn seen(path: &NormalPath, allowed: Option<&PathSet>) -> (String, bool) {
    let parts = path.parts();
    let is_spare = |entry: &str| entry.trim_end_matches(['/', '*']).rsplit('/').next().is_some_and(|name| is_left_behind(&name));
    let behind = if path.is_relative() { Some(parts.clone()) } else { allowed.and_then(|allowed| allowed.behind(path, &is_spare)) };
    match behind {
        Some(rest) => (rest.join("/"), rest.iter().any(is_left_behind)),
        None => {
            let own = parts.iter().skip(1).rfind(|name| **name != "*");
            (parts.join("/"), own.is_some_and(is_left_behind))
        }
    }
}

/// Returns whether all patterns of names are those of such folders: whatever lies in these may be written.
pub(super) fn are_built(patterns: &[String]) -> bool {
    !patterns.is_empty() && patterns.iter().all(|pattern| BUILT.contains(&pattern.as_str()))
}

/// Returns whether names that are found by some patterns, or by none, could be those of folders above a blocked place.
pub(super) fn may_be_above(blocked: &PathSet, patterns: &[String]) -> bool {
    let is_part = |pattern: &String| {
        let last = last_name(pattern);
        // A folder may be found as `.`.
        last.trim_matches(['*', '?', '.']).is_empty() || blocked.has_part(&last)
    };
    patterns.is_empty() || patterns.iter().any(is_part)
}

/// Returns the last name of a pattern, in which two stars may stand for folders too.
pub(super) fn last_name(pattern: &str) -> String {
    let last = pattern.rsplit('/').next().unwrap_or_default();
    last.rsplit_once("**").map_or_else(|| last.to_owned(), |(_, end)| format!("*{end}"))
}

/// Returns whether a pattern finds only files whose names have a dot: one that is no choice of a set, behind all that may stand for a slash.
pub(super) fn has_extension(pattern: &str) -> bool {
    let name = pattern.rsplit('/').next().unwrap_or_default();
    let end = name.rsplit("**").next().unwrap_or_default();
    end.split('[').next().is_some_and(|front| front.contains('.')) || end.rsplit(']').next().is_some_and(|end| end.contains('.'))
}

/// Returns whether an entry ends with the name of a file: one with an extension, or `.env`. A version is no extension (`v1.0`).
fn names_file(entry: &str) -> bool {
    let last = entry.rsplit('/').next().unwrap_or_default();
    let extension = last.trim_start_matches('.').rsplit_once('.').map_or("", |(_, extension)| extension);
    last == ".env" || extension.contains(|char: char| char.is_alphabetic()) && !last.ends_with('*')
}

/// Returns whether a blocked place lies below a path, or may do so. Nobody looks in repositories for files by a name with an extension.
/// `allowed` are the allowed places, in one of which the working folder lies, and `is_meant` says which blocked places are looked at.
pub(super) fn has_blocked(
    blocked: &PathSet,
    allowed: Option<&PathSet>,
    path: &NormalPath,
    (below, is_meant): (Below, &dyn Fn(&str) -> bool),
) -> bool {
    let is_rooted = |entry: &str| entry.starts_with(['/', '~']);
    let is_tracked = matches!(below, Below::Searched | Below::Tracked | Below::Committed);
    let is_near = |entry: &str| {
        let is_here = || allowed.filter(|allowed| allowed.is_elsewhere()).is_none_or(|allowed| allowed.may_hold(entry));
        !path.is_relative() || !is_rooted(entry) || !(is_tracked && is_of_system(entry)) && is_here()
    };
    let in_repository = |entry: &str| entry.split('/').any(|part| part.eq_ignore_ascii_case(".git"));
    // Names that are found and written have been chosen by patterns that find no blocked name, and below a file nothing lies.
    let is_file = |entry: &str| below == Below::Searched && names_file(entry);
    // What has been committed is believed, as it is where branches change, but a place that is known to lie there is blocked for that too.
    let is_believed = |entry: &str| below == Below::Committed && entry.split_once("**").is_some_and(|(_, rest)| !rest.is_empty());
    let is_out = |entry: &str| is_tracked && in_repository(entry) || is_file(entry) || is_believed(entry);
    let counts = |entry: &str| is_meant(entry) && is_near(entry) && !is_out(entry);
    // What moves is blocked at its new place too, if it is blocked at any depth of all places that may be used.
    let is_left = |entry: &str| {
        let above = entry.split("/**").next().unwrap_or_default();
        counts(entry) && is_rooted(entry) && !allowed.is_some_and(|allowed| allowed.lies_below(above))
    };
    let (here, is_left_behind) = seen(path, allowed);
    let has_below = |is_written, counts: &dyn Fn(&str) -> bool| blocked.has_below(path, &here, is_written, counts);
    let may_hold = match below {
        Below::Stays | Below::Moves | Below::Sent | Below::Unnamed | Below::Committed => false,
        Below::Comes | Below::Lands => has_below(false, &is_left),
        Below::Fills | Below::Given => has_below(false, &counts),
        Below::Changes | Below::Searched | Below::Tracked => !is_left_behind && has_below(false, &counts),
    };
    // What goes to a folder in which the working folder lies goes into the folder, by its own name. Else the whole folder is taken.
    let is_into = here.is_empty() && below == Below::Lands;
    has_below(is_into || !here.is_empty(), &|entry| counts(entry) && (is_rooted(entry) || !is_into)) || may_hold
}

#[cfg(test)]
mod tests {
    use super::super::super::path::Purpose;
    use super::*;

    fn set(entries: &[&str], purpose: Purpose) -> PathSet {
        PathSet::new(entries.iter().map(|entry| (*entry).to_owned()).collect(), purpose, "p").unwrap()
    }

    fn holds(entry: &str, allowed: Option<&[&str]>, path: &str, below: Below) -> bool {
        let allowed = allowed.map(|allowed| set(allowed, Purpose::Allow));
        has_blocked(&set(&[entry], Purpose::Block), allowed.as_ref(), &NormalPath::new(path), (below, &|_| true))
    }

    /// What is taken as a whole, and what is changed, is held to an entry in all its forms, from the root as from the working folder.
    #[test]
    fn entries_and_folders_of_all_forms_meet() {
        for entry in ["clients/f", "./clients/f", "**/clients/f", "**/clients/f/**", "/w/clients/f", "/w/**/clients/f"] {
            for path in ["/", "/w", "/w/clients", "/w/c*", "/*/clients", ".", "clients", "client?"] {
                for below in [Below::Moves, Below::Sent, Below::Given, Below::Changes, Below::Searched] {
                    assert!(holds(entry, Some(&["/w"]), path, below), "{entry} {path} {below:?}");
                }
            }
            for path in ["/w/src", "src", "/w/client[0-9]"] {
                assert!(!holds(entry, Some(&["/w"]), path, Below::Moves), "{entry} {path}");
                assert_eq!(holds(entry, Some(&["/w"]), path, Below::Changes), entry != "/w/clients/f", "{entry} {path}");
            }
        }
        assert!(!holds("**/.env", Some(&["/w"]), "/w", Below::Lands) && holds("/w/.env", Some(&["/w"]), "/w", Below::Lands));
        assert!(holds("/w/**/f", Some(&["/w/ws"]), "/w/ws", Below::Moves) && holds("/**/f", Some(&["/w/ws"]), ".", Below::Moves));
        for (entry, path) in [("~/x/y", "/home/u/x"), ("/data/*/raw", "/data/a"), ("a/b/**", "/v/a")] {
            assert!(holds(entry, None, path, Below::Moves), "{entry} {path}");
        }
    }

    #[test]
    fn only_what_lies_in_the_working_folder_is_left_behind() {
        for (allowed, path) in [
            (Some(["/build/app"].as_slice()), "/build/app/db"),
            (Some(&["/build/app"]), "/build/app"),
            (Some(&["/build"]), "/build/db"),
            (Some(&["/build/**"]), "/build/*"),
            (Some(&["/tmp/*/w"]), "/tmp/x/w/db"),
            (Some(&["/w", "/w/target/v"]), "/w/target/v/db"),
            (None, "/build/app/db"),
            (None, "/build"),
        ] {
            assert!(holds("**/.git", allowed, path, Below::Changes), "{allowed:?} {path}");
        }
        for (allowed, path) in [
            (Some(["/build/app"].as_slice()), "/build/app/dist"),
            (Some(&["/build/app"]), "/build/app/node_modules/x"),
            (Some(&["/build/app"]), "target/debug"),
            (Some(&["/w", "/tmp"]), "/tmp/x"),
            (None, "/w/app/dist/*"),
        ] {
            assert!(!holds("**/.git", allowed, path, Below::Changes), "{allowed:?} {path}");
        }
    }
}
