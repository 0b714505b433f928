//! What lies below a path that is moved, taken away or changed as a whole.

use super::super::glob;
use super::super::links;
use super::super::shell_glob::ShellGlob;
use super::{NormalPath, PathSet, in_home};

impl PathSet {
    /// Returns the components of a path behind the entry from the root or a home in which it lies, the deepest of several: nothing for an entry and
    /// for what lies above. Of entries that are spare only those count beside which there is no other. All components of a path that lies in no
    /// entry, and `None` where there is no entry.
    pub(crate) fn behind<'p>(&self, path: &'p NormalPath, is_spare: &dyn Fn(&str) -> bool) -> Option<Vec<&'p str>> {
        let is_rooted = |entry: &&String| entry.starts_with(['/', '~']) && parts(entry).next().is_some();
        let entries = || self.entries.iter().filter(is_rooted);
        entries().next()?;
        let components = path.parts();
        let globs: Vec<ShellGlob> = components.iter().map(|component| ShellGlob::new(component)).collect();
        let holds = |entry: &&String| globs.iter().zip(parts(entry)).all(|(glob, name)| glob.meets(&name.replace('?', "*")));
        let (spare, others): (Vec<&String>, Vec<&String>) = entries().filter(holds).partition(|entry| is_spare(entry));
        let are_spare = !spare.is_empty() && entries().all(|entry| is_spare(entry));
        let counted = if are_spare { spare } else { others };
        let deepest = counted.into_iter().map(|entry| parts(entry).count()).max().unwrap_or_default();
        Some(components.get(deepest..).unwrap_or_default().to_vec())
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

/// Returns whether a place begins with the names of another place. A wildcard may be any name, and two stars any names.
fn holds(place: &str, entry: &str) -> bool {
    let is_open = |part: &str| glob::has_wildcards(part);
    parts(place).zip(parts(entry)).all(|(name, part)| part == name || is_open(part) || is_open(name))
}

/// Returns whether a place belongs to the system, or is a hidden one of a home: no working folder is taken to lie above it.
pub(crate) fn is_of_system(entry: &str) -> bool {
    const FOLDERS: [&str; 11] = ["bin", "boot", "dev", "etc", "lib", "lib64", "library", "proc", "run", "sbin", "sys"];
    let entry = entry.to_ascii_lowercase();
    let is_hidden = |rest: &str| rest.starts_with('.');
    let first = entry.strip_prefix('/').and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| FOLDERS.contains(&first)) || entry.strip_prefix("~/").or_else(|| in_home(&entry)).is_some_and(is_hidden)
}

/// Returns the names of an entry up to its first `**`.
fn parts(entry: &str) -> impl Iterator<Item = &str> {
    entry.split('/').filter(|part| !matches!(*part, "" | ".")).take_while(|part| !part.contains("**"))
}
