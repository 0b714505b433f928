//! What lies below a path that is moved, taken away or changed as a whole.

use super::super::glob;
use super::super::links;
use super::super::shell_glob::ShellGlob;
use super::{NormalPath, PathSet, Root, in_home};

impl PathSet {
    /// Returns whether a place of an entry lies below a path, which may be a glob, as far as the entry is written out. A path that is relative may
    /// lie in every directory above the entry but the root.
    pub(crate) fn has_below(&self, path: &NormalPath, counts: &dyn Fn(&str) -> bool) -> bool {
        let parts = |path: &str| -> Vec<String> {
            path.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_ascii_lowercase).collect()
        };
        let globs: Vec<ShellGlob> = parts(&path.text).iter().map(|part| ShellGlob::new(part)).collect();
        let lies_below = |entry: &&String| {
            let names = parts(entry);
            let written = names.iter().take_while(|name| !glob::has_wildcards(name)).count();
            let first = usize::from(entry.starts_with('/'));
            let starts = if path.root == Root::Relative { first..=written } else { 0..=0 };
            ends_above(&globs, &names, entry.starts_with(['/', '~']))
                || starts.into_iter().any(|start| {
                    let rest = names.get(start..written).unwrap_or_default();
                    let is_above = globs.len() <= rest.len() && start + globs.len() < names.len();
                    is_above && globs.iter().zip(rest).all(|(glob, name)| glob.meets(name))
                })
        };
        // Whether an entry counts takes longer to say.
        self.entries.iter().filter(lies_below).any(|entry| counts(entry))
    }

    /// Returns whether an entry for any depth (`**`) could have a place below a path, which may be a glob. A path that is relative may lie
    /// anywhere.
    pub(crate) fn may_have_below(&self, path: &NormalPath, counts: &dyn Fn(&str) -> bool) -> bool {
        let lower = path.text.to_ascii_lowercase();
        let globs: Vec<ShellGlob> = lower.split('/').filter(|part| !matches!(*part, "" | ".")).map(ShellGlob::new).collect();
        let may_lie = |entry: &&String| {
            let Some((above, _)) = entry.split_once("**") else { return false };
            let names: Vec<String> =
                above.split('/').filter(|part| !part.is_empty()).map(|part| part.to_ascii_lowercase().replace('?', "*")).collect();
            path.root == Root::Relative || !entry.starts_with(['/', '~']) || globs.iter().zip(&names).all(|(glob, name)| glob.meets(name))
        };
        self.entries.iter().filter(may_lie).any(|entry| counts(entry))
    }

    /// Returns whether all entries lie below a folder by their text.
    pub(crate) fn lies_below(&self, folder: &str) -> bool {
        let is_below = |entry: &String| entry.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        !self.entries.is_empty() && self.entries.iter().all(is_below)
    }

    /// Returns whether a place that is written as an entry may lie in one of this set, by any name of it.
    pub(crate) fn may_hold(&self, entry: &str) -> bool {
        let entry = entry.to_ascii_lowercase();
        let mut names = links::names_of(&entry);
        names.push(entry.clone());
        self.entries.iter().any(|place| {
            let place = place.to_ascii_lowercase();
            let of_home = || Some(holds(&format!("/{}", in_home(&place)?), entry.strip_prefix('~')?));
            !place.starts_with('/') || names.iter().any(|name| holds(&place, name)) || of_home().unwrap_or(false)
        })
    }
}

/// Returns whether a place begins with the names of another one. A wildcard may be any name.
fn holds(place: &str, entry: &str) -> bool {
    let mut parts = entry.split('/');
    let is_open = |part: &str| glob::has_wildcards(part);
    let place = place.trim_end_matches('/').split('/');
    place.into_iter().all(|name| parts.next().is_none_or(|part| part == name || is_open(part) || is_open(name)))
}

/// Returns whether a place belongs to the system, or is a hidden one of a home: no working folder is taken to lie above it.
pub(crate) fn is_of_system(entry: &str) -> bool {
    const FOLDERS: [&str; 11] = ["bin", "boot", "dev", "etc", "lib", "lib64", "library", "proc", "run", "sbin", "sys"];
    let entry = entry.to_ascii_lowercase();
    let is_hidden = |rest: &str| rest.starts_with('.');
    let first = entry.strip_prefix('/').and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| FOLDERS.contains(&first)) || entry.strip_prefix("~/").or_else(|| in_home(&entry)).is_some_and(is_hidden)
}

/// Returns whether a path ends with names with which an entry for any depth begins, and behind which the entry goes on.
fn ends_above(path: &[ShellGlob], entry: &[String], is_rooted: bool) -> bool {
    let names = match entry.iter().position(|name| name == "**") {
        Some(at) => entry.get(at + 1..).unwrap_or_default(),
        None if is_rooted => return false,
        None => entry,
    };
    (1..names.len().min(path.len() + 1)).any(|count| {
        let end = path.get(path.len() - count..).unwrap_or_default();
        end.iter().zip(names).all(|(glob, name)| glob::has_wildcards(name) || glob.meets(name))
    })
}
