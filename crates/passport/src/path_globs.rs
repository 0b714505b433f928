//! Which blocked places the globs of a call could find: a glob and a blocked entry are compared component by component.
//!
//! `/workspace/*/private/x` finds a place below the entry `/workspace/a/private`, and `docs/*` none below `/workspace/private`. The components that
//! are reached in the entry are kept as a set of bits, so that a glob is gone through once for each entry, however many `**` stand in both.

use super::super::links;
use super::super::shell_glob::{ShellGlob, may_climb};
use super::trees::is_of_system;
use super::{NormalPath, PathSet};

/// A form in which a blocked place is written, with everything below it.
#[derive(Debug)]
pub(super) struct BlockedForm {
    /// The entry, as it is written.
    entry: String,
    components: Vec<Part>,
    root: Start,
    /// Whether the place belongs to the system, so that no relative path leads to it.
    is_of_system: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Root,
    Home,
    Here,
}

/// A component of a blocked place.
#[derive(Debug)]
enum Part {
    /// `**`, or a component with `**` beside other characters.
    Any {
        /// Whether it may be no component at all.
        or_none: bool,
    },
    /// A name, in which `*` stands for anything.
    Name(String),
}

/// The most components of a form that are compared. An entry has at most 64.
const COMPONENTS_MAX: usize = 120;

impl Start {
    fn of(text: &str) -> Self {
        match text.bytes().next() {
            Some(b'/') => Self::Root,
            Some(b'~') => Self::Home,
            _ => Self::Here,
        }
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split('/').filter(|part| !matches!(*part, "" | "."))
}

impl BlockedForm {
    /// Returns the forms of an entry from one of its patterns: links of every system give it others.
    pub(super) fn of(pattern: &str, entry: &str) -> Vec<Self> {
        let lower = pattern.to_ascii_lowercase();
        let names = if lower.starts_with('/') { links::names_of(&lower) } else { Vec::new() };
        let form = |text: &str| {
            let part = |part: &str| match part {
                "**" => Part::Any { or_none: true },
                _ if part.contains("**") => Part::Any { or_none: false },
                _ => Part::Name(part.replace('?', "*")),
            };
            Self {
                entry: entry.to_owned(),
                components: parts(text).take(COMPONENTS_MAX).map(part).collect(),
                root: Start::of(text),
                is_of_system: is_of_system(entry),
            }
        };
        std::iter::once(&lower).chain(&names).map(|text| form(text)).collect()
    }

    /// Returns the places in the form that are reached from these without a component: `**` may be none.
    fn closed(&self, mut reached: u128) -> u128 {
        for (at, part) in self.components.iter().enumerate() {
            if matches!(part, Part::Any { or_none: true }) && reached & (1 << at) != 0 {
                reached |= 1 << (at + 1);
            }
        }
        reached
    }

    /// Returns the places in the form at which a glob may begin that starts there. A glob that starts in the working folder may begin behind any
    /// name, and a form that starts there may lie at any depth of every root.
    fn entered(&self, start: Start) -> u128 {
        match start {
            Start::Here if self.is_of_system => 0,
            Start::Here => {
                // The first component of a home is its sign, and the working folder may be the root, but not the folder that holds all homes.
                let first = usize::from(self.root == Start::Home);
                let is_user =
                    |at: usize| self.entry.starts_with('~') && matches!(self.components.get(at), Some(Part::Name(name)) if name == "*");
                let is_named = |at: &usize| {
                    let is_name = |part: &Part| matches!(part, Part::Name(name) if !name.trim_matches('*').is_empty());
                    !is_user(*at) && self.components.iter().skip(*at).any(is_name)
                };
                (first..self.components.len()).filter(is_named).fold(0, |places, at| places | 1 << at)
            }
            _ => u128::from(start == self.root || self.root == Start::Here),
        }
    }

    /// Returns whether a glob of these components finds the place, or something below it.
    fn is_found_by<'g>(&self, start: Start, glob: impl Iterator<Item = &'g Component>) -> bool {
        let end: u128 = 1 << self.components.len();
        let mut reached = self.closed(self.entered(start));
        if reached == 0 {
            return false;
        }
        for component in glob {
            if reached & end != 0 {
                return true;
            }
            reached = self.behind(reached, component);
            if reached == 0 {
                return false;
            }
        }
        reached & end != 0
    }

    /// Returns the places that are reached behind a component of a glob.
    fn behind(&self, reached: u128, component: &Component) -> u128 {
        match component {
            // It passes no hidden folder.
            Component::Any => reached | self.shown_behind(reached),
            Component::Glob(glob) => self.closed(self.after(reached, glob)),
            Component::Shown => self.shown_behind(reached),
        }
    }

    /// Returns whether the place may lie below a path of these components. If it has to be written, a name of the form has to stand for the last of
    /// them, at the place of the form or behind any `**`.
    fn lies_below(&self, start: Start, path: &[Component], is_written: bool) -> bool {
        let places = |is_meant: &dyn Fn(&Part) -> bool| {
            self.components.iter().enumerate().filter(|(_, part)| is_meant(part)).fold(0_u128, |places, (at, _)| places | 1 << at)
        };
        let anywhere = if is_written { places(&|part| matches!(part, Part::Any { .. })) } else { 0 };
        let entered = self.entered(start);
        let Some((last, above)) = path.split_last() else { return entered != 0 };
        let reached = above.iter().fold(self.closed(entered | anywhere), |reached, component| self.behind(reached, component));
        let open = if is_written { reached & places(&|part| matches!(part, Part::Name(_))) } else { reached };
        self.behind(open, last) != 0
    }

    /// Returns the places that are reached behind one or more components that are not hidden. A program that goes through folders is not taken to
    /// look for all names of an extension.
    fn shown_behind(&self, mut reached: u128) -> u128 {
        let name = ShellGlob::new("*");
        let is_kind = |part: &Part| matches!(part, Part::Name(name) if name.len() > 1 && name.starts_with('*'));
        let kinds = self.components.iter().enumerate().filter(|(_, part)| is_kind(part)).fold(0, |kinds, (at, _)| kinds | 1 << at);
        let mut behind = 0;
        loop {
            reached = self.closed(self.after(reached & !kinds, &name)) & !behind;
            if reached == 0 {
                return behind;
            }
            behind |= reached;
        }
    }

    /// Returns the places that are reached behind a component.
    fn after(&self, reached: u128, glob: &ShellGlob) -> u128 {
        let places = self.components.iter().enumerate().filter(|(at, _)| reached & (1 << at) != 0);
        places.fold(0, |next, (at, part)| match part {
            Part::Any { .. } => next | 1 << at | 1 << (at + 1),
            Part::Name(name) if glob.meets(name) => next | 1 << (at + 1),
            Part::Name(_) => next,
        })
    }
}

/// A component of a glob.
enum Component {
    /// `**`, which some programs take for any number of components.
    Any,
    Glob(ShellGlob),
    /// One or more names that are not hidden.
    Shown,
}

/// Returns the components of a glob, without what `..` takes back; `None` for a glob that leaves the folder in which it begins, or may do so.
fn components(glob: &str) -> Option<Vec<Component>> {
    let is_rooted = glob.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    for part in parts(glob) {
        match part {
            ".." => match kept.pop() {
                // Two stars are no folder, or several.
                Some(left) if left.contains("**") => return None,
                None if !is_rooted => return None,
                _ => {}
            },
            part if may_climb(part) => return None,
            part => kept.push(part),
        }
    }
    let component = |part: &str| {
        let is_any = part.contains("**");
        let rest = part.replace("**", "*");
        let glob = (rest != "*" || !is_any).then(|| Component::Glob(ShellGlob::new(&rest)));
        is_any.then_some(Component::Any).into_iter().chain(glob).collect::<Vec<_>>()
    };
    Some(kept.into_iter().flat_map(component).collect())
}

impl PathSet {
    /// Returns whether a glob that is a whole path could find a blocked place, or something below it. A relative glob finds no place of the
    /// system, and may begin in every other folder; one that leaves the folder in which it begins may find anything.
    pub(crate) fn may_be_found_at(&self, glob: &str) -> bool {
        self.may_find(glob, &[], &|_| true).is_some()
    }

    /// Returns the entry of a blocked place that counts and may have a name which is found below a folder, where no hidden names are found.
    pub(crate) fn may_lie_shown_below(&self, folder: &str, counts: &dyn Fn(&str) -> bool) -> Option<&str> {
        self.may_find(folder, &[Component::Shown], counts)
    }

    /// Returns whether a blocked place that counts may lie below a path, which may be a glob. `here` is the path as it is seen from the working
    /// folder, which entries for any depth are seen from. If the place has to be written, the path has to end with a name of the entry.
    pub(crate) fn has_below(&self, path: &NormalPath, here: &str, is_written: bool, counts: &dyn Fn(&str) -> bool) -> bool {
        let lower = path.text.to_ascii_lowercase();
        let read = (components(&lower), components(&here.to_ascii_lowercase()));
        let (Some(path), Some(here)) = read else { return !self.blocked.is_empty() };
        let lies_below = |form: &&BlockedForm| match form.root {
            Start::Here => form.lies_below(Start::of(&lower), &here, is_written),
            _ => form.lies_below(Start::of(&lower), &path, is_written),
        };
        // Whether an entry counts takes longer to say.
        self.blocked.iter().filter(lies_below).any(|form| counts(&form.entry))
    }

    /// Returns the entry of the first blocked place that counts and that a glob could find.
    fn may_find(&self, glob: &str, behind: &[Component], counts: &dyn Fn(&str) -> bool) -> Option<&str> {
        let first = self.blocked.first()?;
        let lower = glob.to_ascii_lowercase();
        let names = if lower.starts_with('/') { links::places_of(&lower) } else { Vec::new() };
        let found = std::iter::once(&lower).chain(&names).find_map(|glob| {
            let Some(components) = components(glob) else { return Some(first) };
            let start = Start::of(glob);
            self.blocked.iter().find(|form| form.is_found_by(start, components.iter().chain(behind)) && counts(&form.entry))
        });
        found.map(|form| form.entry.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NormalPath, PathSet, Purpose};

    fn finds(entry: &str, glob: &str) -> bool {
        PathSet::new(vec![entry.to_owned()], Purpose::Block, "p").unwrap().may_be_found_at(glob)
    }

    #[test]
    fn a_glob_finds_what_its_components_may_be() {
        for (entry, glob) in [
            ("/workspace/private", "/workspace/*"),
            ("/workspace/private", "/workspace/*/x"),
            ("/workspace/private", "/*/private"),
            ("/workspace/a/private", "/workspace/[a]/private/x"),
            ("/workspace/a/private", "/workspace/*/private/x"),
            ("/workspace/a/private", "?/private/x"),
            ("/workspace/a/private", "a/priv*/x"),
            ("/workspace/a/private", "*/x"),
            ("/srv/data/hr", "/s*/data/hr/x"),
            ("/srv/data/hr", "/srv/d*/hr"),
            ("~/clients/acme", "~/client[s]/acme/x"),
            ("~/clients/acme", "/home/u/client[s]/acme/x"),
            ("/home/u/clients/acme", "~/client[s]/acme/x"),
            ("secret/deep", "s*/deep/x"),
            ("secret/deep", "a/b/s*/deep/x"),
            ("/workspace/**/.git/hooks", "/workspace/a/.gi[t]/hooks/x"),
            ("/workspace/**/.git/hooks", ".gi[t]/hooks/x"),
            ("**/.env.d", "a/.env.[d]"),
            ("/workspace/private", "docs/../*"),
            ("/workspace/private", "../*"),
            ("/workspace/private", "/workspace/**"),
            ("/workspace/private", "**/x"),
            ("/workspace/Private", "/WORKSPACE/p*"),
            ("/etc/ssl", "/private/etc/s*"),
            ("/run/x", "/var/run/*"),
            ("/var/run/x", "/run/*"),
            ("/data/*/raw", "/data/a/r*"),
            ("/data/a?c", "/data/a*"),
            ("/workspace/a**b/c", "/workspace/axb/[c]"),
            ("**/*.pem", "certs/*"),
            ("/workspace/**/*.pem", "/workspace/certs/*"),
        ] {
            assert!(finds(entry, glob), "{entry} {glob}");
        }
    }

    /// Entries of every form that block the place, with globs of every form that find a file there.
    #[test]
    fn entries_and_globs_of_all_forms_meet() {
        const HERE: [&str; 8] =
            ["clients", "./clients", "./clients/**", "clients/*", "**/clients", "**/clients/**", "**/client?/f", "**/w/clients"];
        const ROOTED: [&str; 5] = ["/w/clients", "/w/clients/**", "/*/clients/f", "/w/**/clients", "/**/clients"];
        const GLOBS: [&str; 12] = [
            "/w/client[s]/f",
            "/w/*/f",
            "/*/clients/f",
            "/w/clients/?",
            "/w/c*/[f]",
            "/w/x/../c*/f",
            "/w/**/f",
            "w/c*/f",
            "./w/client?/*",
            "x/.?/w/clients/f",
            "/w/.[.]/w/clients/f",
            "/w/**/../clients/f",
        ];
        for entry in HERE.iter().chain(&ROOTED) {
            let set = PathSet::new(vec![(*entry).to_owned()], Purpose::Block, "p").unwrap();
            assert!(set.find(&NormalPath::new("/w/clients/f")).is_some(), "{entry}");
            for glob in GLOBS {
                assert!(set.may_be_found_at(glob), "{entry} {glob}");
            }
            for glob in ["/w/docs/*.md", "/w/d*/f", "docs/*.md", "/w/.[a-z]*/f"] {
                assert!(!set.may_be_found_at(glob), "{entry} {glob}");
            }
        }
        for entry in ["~/clients", "/home/u/clients", "clients", "**/clients"] {
            for glob in ["~/c*/f", "/home/u/client?/f", "/home/*/clients/f"] {
                assert!(finds(entry, glob), "{entry} {glob}");
            }
        }
        assert!(!finds("~/clients", "src/*") && finds("**/w?/clients", "c*/f") && finds("w/clients", "./c*/f"));
    }

    #[test]
    fn a_glob_elsewhere_finds_nothing_that_is_blocked() {
        for (entry, glob) in [
            ("/workspace/private", "docs/*"),
            ("/workspace/private", "docs/*.md"),
            ("/workspace/private", "/workspace/docs/*"),
            ("/workspace/private", "/workspace/src/**/*.ts"),
            ("/workspace/private", "*.md"),
            ("/workspace/private", "/*"),
            ("/workspace/a/private", "/workspace/*"),
            ("/workspace/.git", "*"),
            ("/workspace/.git", "/workspace/*"),
            ("/etc/ssl", "s*"),
            ("~/clients/acme", "/srv/client[s]/acme/x"),
            ("**/node_modules/.bin", "src/*"),
        ] {
            assert!(!finds(entry, glob), "{entry} {glob}");
        }
    }

    #[test]
    fn names_that_are_found_lie_below_their_folder() {
        let lies = |entry: &str, folder: &str| {
            PathSet::new(vec![entry.to_owned()], Purpose::Block, "p").unwrap().may_lie_shown_below(folder, &|_| true).is_some()
        };
        for (entry, folder) in [
            ("/workspace/private", "."),
            ("/workspace/private", "/workspace"),
            ("/workspace/private", ".."),
            ("/workspace/private", "docs/.."),
            ("/workspace/a/private", "a"),
            ("**/secrets", "src"),
        ] {
            assert!(lies(entry, folder), "{entry} {folder}");
        }
        for (entry, folder) in [
            ("/workspace/private", "docs"),
            ("/workspace/private", "/workspace/docs"),
            ("**/.git", "."),
            ("/workspace/.git", "."),
            ("**/*.pem", "."),
        ] {
            assert!(!lies(entry, folder), "{entry} {folder}");
        }
    }

    #[test]
    fn many_wildcards_on_both_sides_take_one_way_through() {
        let entry = format!("/{}x", "**/".repeat(60));
        let glob = format!("/{}y", "**/a*/".repeat(2_000));
        assert!(!finds(&format!("/w{entry}"), &format!("/v{glob}")));
        assert!(finds(&entry, &glob));
    }
}
