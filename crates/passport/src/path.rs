//! Paths: normalised by their text alone, and sets of places in which they are looked up.

use rustc_hash::FxHashMap;

use super::beginning::{CLIMBS_MAX, parents};
use super::fields::{Malformed, is_expression, item_path};
use super::glob::{self, Case, GlobIndex, Wildcards};
use super::links;
use super::look_alike::{is_ambiguous, plain_spelling};
use super::shell_glob::{ShellGlob, crossed, may_climb};

/// The place where a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Absolute,
    /// `~`, or `~user`.
    Home,
    /// The working directory, which events do not report.
    Relative,
}

/// A path without `.`, `..`, empty components and a slash at its end: `/a/b`, `~/a`, `a/b`, or `/`, `~` and `.` for the roots.
///
/// The text alone does not tell where `..` leads, since the directory that it leaves may be a link: `/var/run/..` is `/` where `/var/run`
/// leads to `/run`. So the path is in an allowed set only if the directories that each `..` leaves and leads to are, and in a blocked one
/// also if what stands behind a `..` would be, taken from the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NormalPath {
    root: Root,
    text: String,
    /// Whether it leaves its root by `..`, so that its destination is unknown.
    pub(super) climbs: bool,
    /// The places that each `..` leaves and leads to, if nothing is a link.
    passed: Vec<String>,
    /// What stands behind each `..`, taken from the root.
    behind: Vec<String>,
}

impl NormalPath {
    /// Reads a path that a shell may expand: a component that can be `..` leads nobody knows where.
    pub(super) fn of_glob(glob: &str) -> Self {
        let climbs = |text: &String| text.split('/').any(may_climb);
        let path = Self::new(glob);
        Self { climbs: path.climbs || bash_commands::braces(glob).iter().any(climbs), ..path }
    }

    pub(super) fn new(path: &str) -> Self {
        let behind = |(at, _)| absolute(path.get(at + 3..).unwrap_or_default());
        let behind = parents(path).take(CLIMBS_MAX).map(behind).collect();
        let mut climbs = false;
        let root = match path.bytes().next() {
            Some(b'/') => Root::Absolute,
            Some(b'~') => Root::Home,
            _ => Root::Relative,
        };
        // The home directory is itself a component, which `..` cannot remove.
        let bottom = usize::from(root == Root::Home);
        let mut components: Vec<&str> = Vec::new();
        let mut passed = Vec::new();
        for component in path.split('/') {
            match component {
                "" | "." => {}
                ".." if components.len() > bottom => {
                    let leaves = joined(root, &components);
                    // What is above a link of the system is what is above the place that it leads to.
                    climbs |= links::is_link(&leaves);
                    passed.push(leaves);
                    // In zsh two stars may be no folder, or several.
                    climbs |= components.pop().is_some_and(|left| left.contains("**"));
                    passed.push(joined(root, &components));
                }
                // The directory above `/` is `/`.
                ".." => climbs |= root != Root::Absolute,
                _ => components.push(component),
            }
        }
        passed.truncate(2 * CLIMBS_MAX);
        Self { root, text: joined(root, &components), climbs, passed, behind }
    }

    /// Returns the folder that it lies in; the root of a path that is one component.
    pub(super) fn folder(&self) -> Self {
        let root = if self.root == Root::Absolute { "/" } else { "." };
        Self::new(above(&self.text).unwrap_or(root))
    }

    /// Returns its components; `~` is one.
    pub(super) fn parts(&self) -> Vec<&str> {
        self.text.split('/').filter(|part| !matches!(*part, "" | ".")).collect()
    }

    /// Returns whether it starts in the working directory.
    pub(super) fn is_relative(&self) -> bool {
        self.root == Root::Relative
    }

    /// Returns the last component; empty for a root.
    pub(super) fn name(&self) -> &str {
        let name = self.text.rsplit('/').next().unwrap_or_default();
        if name == "." || name.starts_with('~') && name.len() == self.text.len() { "" } else { name }
    }
}

/// Returns the text of a path that starts at the root.
fn absolute(path: &str) -> String {
    let mut components: Vec<&str> = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => drop(components.pop()),
            _ => components.push(component),
        }
    }
    joined(Root::Absolute, &components)
}

fn joined(root: Root, components: &[&str]) -> String {
    match root {
        Root::Absolute => format!("/{}", components.join("/")),
        _ if components.is_empty() => ".".to_owned(),
        // A name that begins with `~` is not the home directory, which starts with it.
        Root::Relative if components.first().is_some_and(|first| first.starts_with('~')) => format!("./{}", components.join("/")),
        _ => components.join("/"),
    }
}

/// Returns a place and every directory above it, up to its root.
fn places(root: Root, text: &str) -> impl Iterator<Item = &str> {
    let top = match root {
        Root::Absolute => Some("/"),
        Root::Relative => Some("."),
        Root::Home => None,
    };
    std::iter::successors(Some(text), |place| above(place)).chain(top)
}

/// Returns the directory above a place, or `None` if that is the root.
fn above(place: &str) -> Option<&str> {
    place.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty())
}

/// The purpose of a set, which decides about paths whose destination is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A path in the set may be used. A path with an unknown destination is not in it.
    Allow,
    /// A path in the set may not be used. A path with an unknown destination is in it, and so is a relative one that is in it from any
    /// directory outside.
    Block,
    /// The same for places of every system, so that a relative path is only taken as if it stood at the root.
    Guard,
}

/// The longest entry of a set, in bytes, and the most components that it may have. What an entry blocks is kept once for each of its components,
/// so that its memory is the product of both.
const ENTRY_BYTES_MAX: usize = 1_024;
const ENTRY_COMPONENTS_MAX: usize = 64;

/// A set of places, given as directories, files and globs.
#[derive(Debug)]
pub(super) struct PathSet {
    purpose: Purpose,
    entries: Vec<String>,
    everywhere: Option<usize>,
    places: FxHashMap<String, usize>,
    globs: GlobIndex,
    /// What globs are compared with, of a set that blocks.
    blocked: Vec<globs::BlockedForm>,
    is_elsewhere: bool,
    weight: usize,
}

impl PathSet {
    /// Returns the set of the entries of a list, which is at `path` in the passport. `*` and `**` alone cover everything.
    pub(super) fn new(entries: Vec<String>, purpose: Purpose, path: &str) -> Result<Self, Malformed> {
        let mut everywhere = None;
        let mut places = FxHashMap::default();
        let mut globs: Vec<(String, usize)> = Vec::new();
        let mut blocked = Vec::new();
        for (tag, entry) in entries.iter().enumerate() {
            let malformed = |found: String, expected: String| Err(Malformed::new(item_path(path, tag), found, expected));
            if let Some(character) = glob::unsupported(entry) {
                return malformed(format!("a pattern with `{character}`"), "`*`, `**` and `?` as the only wildcards".to_owned());
            }
            if entry.len() > ENTRY_BYTES_MAX || entry.split('/').count() > ENTRY_COMPONENTS_MAX {
                let found = format!("a path of {} bytes and {} components", entry.len(), entry.split('/').count());
                let expected = format!("at most {ENTRY_BYTES_MAX} bytes and {ENTRY_COMPONENTS_MAX} components");
                return malformed(found, expected);
            }
            if let Some(form) = no_path(entry).filter(|_| purpose != Purpose::Guard) {
                let expected = "a path or a text of paths, such as /srv/data or ~/.ssh".to_owned();
                return malformed(format!("an entry that is the path of nothing: {form}"), expected);
            }
            if matches!(entry.as_str(), "*" | "**" | "/**" | "**/*") {
                everywhere.get_or_insert(tag);
            }
            let normal = NormalPath::new(entry);
            match purpose {
                Purpose::Allow if glob::has_wildcards(entry) => globs.push((normal.text, tag)),
                // An entry whose destination is unknown allows nothing.
                Purpose::Allow if normal.climbs => {}
                Purpose::Allow => drop(places.entry(normal.text).or_insert(tag)),
                Purpose::Block | Purpose::Guard => {
                    // A name beyond ASCII is looked up in its plain spelling too, as paths are.
                    let plain = plain_spelling(entry).filter(|_| !entry.is_ascii()).map(|plain| NormalPath::new(&plain));
                    let others = links::places_of(&normal.text.to_ascii_lowercase());
                    for normal in others.iter().map(|place| NormalPath::new(place)).chain(plain).chain([normal]) {
                        if !glob::has_wildcards(entry) {
                            places.entry(normal.text.to_ascii_lowercase()).or_insert(tag);
                        }
                        let meant = blocked_globs(&normal);
                        if purpose == Purpose::Block {
                            let rooted = Some(below(&normal.text)).filter(|_| normal.root == Root::Absolute);
                            blocked.extend(meant.iter().chain(&rooted).flat_map(|glob| globs::BlockedForm::of(glob, entry)));
                            globs.extend(ends(&normal.text).map(|end| (below(end), tag)));
                        }
                        globs.extend(meant.into_iter().map(|glob| (glob, tag)));
                    }
                }
            }
        }
        let case = if purpose == Purpose::Allow { Case::Sensitive } else { Case::Ignored };
        let index = GlobIndex::new(globs.iter().map(|(glob, tag)| (glob.as_str(), *tag)), Wildcards::WithinComponent, case);
        let is_elsewhere = !entries.is_empty() && entries.iter().all(|entry| entry.starts_with(['/', '~']));
        let weight = index.weight();
        Ok(Self { purpose, entries, everywhere, places, globs: index, blocked, is_elsewhere, weight })
    }

    /// Returns how many patterns a component of a path may be compared with: see [`GlobIndex::weight`].
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    /// Returns how many entries there are.
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Returns the entry that covers a path.
    pub(super) fn find(&self, path: &NormalPath) -> Option<&str> {
        let found = match self.purpose {
            Purpose::Allow => self.everywhere.or_else(|| if path.climbs { None } else { self.find_allowed(path) }),
            Purpose::Block | Purpose::Guard => self.everywhere.or_else(|| self.find_blocked(path)),
        };
        found.and_then(|tag| self.entries.get(tag)).map(String::as_str)
    }

    /// Returns whether a glob could find a name with which an entry ends. A name behind other names is found by a glob of the last of them: what
    /// is asked is whether any component of the glob could be the last literal name of an entry.
    pub(super) fn may_be_found_by(&self, glob: &str) -> bool {
        let components = glob.split('/').filter(|component| component.contains(['*', '?', '[']));
        components.map(ShellGlob::new).any(|component| self.last_names().any(|name| component.meets(name)))
    }

    /// Returns whether a component of a pattern of names, other than one that finds every name, could be the last literal name of an entry.
    pub(super) fn is_asked_for_by(&self, pattern: &str) -> bool {
        let mut components = pattern.split('/').map(ShellGlob::new).filter(|component| !component.is_anything());
        components.any(|component| self.last_names().any(|name| component.meets(name)))
    }

    /// Returns whether a pattern of names looks for a name with which an entry ends: one of its components is that name, or is a glob that finds
    /// it although it is hidden.
    pub(super) fn is_named_by(&self, pattern: &str) -> bool {
        let names = |component: &str| {
            let glob = ShellGlob::new(component);
            let is_hidden = |name: &str| name.starts_with('.') && !glob.is_anything() && glob.finds(name);
            self.last_names().any(|name| name.eq_ignore_ascii_case(component) || is_hidden(name))
        };
        crossed(pattern).iter().flat_map(|pattern| pattern.split('/')).any(names)
    }

    /// Returns whether a name of a file or folder, which may be a glob, could be a part of an entry: what lies below it may be blocked.
    pub(super) fn has_part(&self, name: &str) -> bool {
        let glob = ShellGlob::new(name);
        let parts = self.entries.iter().flat_map(|entry| entry.split('/')).filter(|part| !part.is_empty() && !glob::has_wildcards(part));
        parts.into_iter().any(|part| glob.meets(part))
    }

    /// Returns whether all entries lie at the root or a home, so that a path below the working folder is in none by its text.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Returns the last literal names of the entries.
    fn last_names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| last_name(entry))
    }

    fn lookup(&self, root: Root, text: &str) -> Option<usize> {
        places(root, text).find_map(|place| self.places.get(place).copied()).or_else(|| self.globs.find(text))
    }

    fn find_allowed(&self, path: &NormalPath) -> Option<usize> {
        let stays = path.passed.iter().all(|place| self.covers(path.root, place).is_some());
        self.covers(path.root, &path.text).filter(|_| stays)
    }

    /// Returns the entry for a place. A link of the system that is not itself listed leads out of the directory that is, so what it leads to
    /// has to be listed too.
    fn covers(&self, root: Root, place: &str) -> Option<usize> {
        let found = self.lookup(root, place)?;
        let stays = links::led_out_of(place).is_none_or(|(link, target)| {
            let names_link = self.entries.get(found).is_some_and(|entry| entry.starts_with(link));
            names_link || self.lookup(Root::Absolute, &target).is_some()
        });
        stays.then_some(found)
    }

    fn find_blocked(&self, path: &NormalPath) -> Option<usize> {
        let text = path.text.to_ascii_lowercase();
        // The working directory may be the root.
        let at_root = (path.root == Root::Relative).then(|| format!("/{text}"));
        let behind = path.behind.iter().map(|text| text.to_ascii_lowercase());
        let absolute = (path.root == Root::Absolute).then(|| text.clone());
        let relative = (path.root != Root::Absolute).then(|| self.lookup(path.root, &text)).flatten();
        relative.or_else(|| {
            absolute.into_iter().chain(at_root).chain(behind).find_map(|text| {
                let names = links::places_of(&text);
                std::iter::once(&text).chain(&names).find_map(|text| self.lookup(Root::Absolute, text))
            })
        })
    }
}

/// Returns in which form an entry is written where no path that tools are given is meant by it.
fn no_path(entry: &str) -> Option<&'static str> {
    let is_rule =
        entry.ends_with(')') && entry.split_once('(').is_some_and(|(name, _)| name.starts_with(|first: char| first.is_ascii_uppercase()));
    // Some folders of Windows are called so, such as `$RECYCLE.BIN`.
    let is_dollar_name = entry.starts_with('$') && entry.split('/').next().is_some_and(|first| first.contains('.'));
    let forms = [
        (entry.trim() != entry || entry.contains(char::is_control), "it has blanks around it, or a control character"),
        (entry.starts_with(['"', '\'', '`']), "it is in quotes"),
        (entry != ".*" && is_expression(entry), "it is a regular expression"),
        (is_rule, "it is a rule of another product's form"),
        (entry.starts_with(['$', '%']) && !is_dollar_name, "it begins with a variable, which nobody replaces"),
        (!is_dollar_name && is_ambiguous(entry), "it has a drive, a scheme, several paths, a short name of Windows or an escape"),
        (links::is_tilde_of_other(entry), "it is the home of another user"),
    ];
    forms.into_iter().find_map(|(is_so, form)| is_so.then_some(form))
}

/// Returns the last literal name of an entry.
fn last_name(entry: &str) -> Option<&str> {
    entry.rsplit('/').find(|name| !name.is_empty() && !glob::has_wildcards(name))
}

/// Returns the globs that a blocked entry means besides its own place: everything below it, at any depth if it is relative, and for home
/// directories under both of their names.
fn blocked_globs(entry: &NormalPath) -> Vec<String> {
    let text = entry.text.as_str();
    match entry.root {
        Root::Relative if text.starts_with("**") => vec![below(text)],
        Root::Relative if text == "." => Vec::new(),
        Root::Relative => vec![below(&format!("**/{text}"))],
        Root::Home => match text.split_once('/') {
            Some((_, rest)) => ["~/", "/root/", "/home/*/", "/Users/*/"].iter().map(|home| below(&format!("{home}{rest}"))).collect(),
            None => vec![below("~"), below("/root"), below("/home/*"), below("/users/*")],
        },
        Root::Absolute => {
            let mut globs = if glob::has_wildcards(text) { vec![below(text)] } else { Vec::new() };
            globs.extend(in_home(text).map(|rest| below(if rest.is_empty() { "~".to_owned() } else { format!("~/{rest}") }.as_str())));
            globs
        }
    }
}

/// Returns the glob for a place and everything below it.
fn below(text: &str) -> String {
    if text.ends_with("/**") { text.to_owned() } else { format!("{text}/**") }
}

/// Returns the relative paths that lead to a place from the directories above it, without the path from the root. One that is only wildcards
/// would be every path.
fn ends(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.match_indices('/').skip(usize::from(text.starts_with('/'))).filter_map(|(at, _)| text.get(at + 1..));
    ends.filter(|end| end.bytes().any(|byte| !matches!(byte, b'*' | b'?' | b'/')))
}

/// Returns the part behind the home directory in an absolute path: empty for a home directory, and for a place that holds some.
fn in_home(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    if matches!(lower.as_str(), "/" | "/home" | "/users" | "/root") {
        return Some("");
    }
    if let Some(rest) = text.strip_prefix("/root/") {
        return Some(rest);
    }
    let homes = lower.starts_with("/home/") || lower.starts_with("/users/");
    homes.then(|| text.splitn(4, '/').nth(3).unwrap_or_default())
}

#[path = "path_globs.rs"]
mod globs;
#[path = "path_trees.rs"]
pub(super) mod trees;

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
