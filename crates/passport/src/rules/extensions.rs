//! The extensions of files that a passport allows and blocks.

use std::collections::HashSet;

use super::super::fields::without;
use super::super::shell_glob::ShellGlob;
use super::{Denial, Field, Malformed, Section, check_limit};

/// The signs of a glob.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// The two lists of extensions of a limit, in lower case and with their dots.
#[derive(Debug)]
pub(super) struct Extensions {
    allowed: Field<HashSet<String>>,
    blocked: Field<HashSet<String>>,
}

impl Extensions {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let list = |key| section.strings(key).and_then(|entries| read(entries, &section.path_of(key)));
        Self { allowed: list("allowed_extensions"), blocked: list("blocked_extensions") }
    }

    pub(super) fn malformed(&self) -> [Option<&Malformed>; 2] {
        [self.allowed.malformed(), self.blocked.malformed()]
    }

    /// Checks the name of a file that a command is given, or a glob for names. A name without an extension may be that of a folder, and a glob
    /// without an extension may find every extension.
    pub(super) fn check_of_command(&self, name: &str, is_glob: bool) -> Result<(), Denial> {
        let is_open = is_glob && name.contains(WILDCARDS);
        if is_open || extensions(name).next().is_some() { self.check(name) } else { Ok(()) }
    }

    /// Checks the name of a file that a tool is given.
    pub(super) fn check(&self, name: &str) -> Result<(), Denial> {
        let denial = || Err(Denial::new("oap.extension_not_allowed", "File extension is not allowed"));
        let is_in = |set: &HashSet<String>| extensions(name).any(|extension| set.contains(&extension));
        check_limit(&self.allowed, |allowed| if is_in(allowed) { Ok(()) } else { denial() })?;
        self.check_ending(name)
    }

    /// Checks that a name, or a pattern of names, does not end in a blocked extension.
    pub(super) fn check_ending(&self, name: &str) -> Result<(), Denial> {
        let denial = || Err(Denial::new("oap.extension_not_allowed", "File extension is not allowed"));
        // The end of a glob may be any that it matches, and the dot may be a wildcard. A glob that ends with `*` says nothing of the end, unless a
        // dot is written in front.
        let glob = Some(ShellGlob::new(name)).filter(|glob| name.contains(WILDCARDS) && !glob.is_open().1);
        let end = name.rsplit_once('.').map(|(_, end)| ShellGlob::new(end)).filter(|end| name.contains(WILDCARDS) && !end.is_anything());
        let finds = |extension: &String| {
            glob.as_ref().is_some_and(|glob| glob.meets(&format!("*{extension}")))
                || end.as_ref().is_some_and(|end| end.meets(extension.trim_start_matches('.')))
        };
        let is_in = |blocked: &HashSet<String>| extensions(name).any(|extension| blocked.contains(&extension)) || blocked.iter().any(finds);
        check_limit(&self.blocked, |blocked| if is_in(blocked) { denial() } else { Ok(()) })
    }
}

/// Reads a list of extensions. A pattern such as `*.sql` is the end of no file's name, and would match nothing.
fn read(entries: Vec<String>, path: &str) -> Result<HashSet<String>, Malformed> {
    let is_extension = |entry: &str| {
        !entry.contains(['*', '?', '/', '[', '{', ',', ';']) && !entry.contains(char::is_whitespace) && !entry.trim_matches('.').is_empty()
    };
    let said = ("a pattern or a path, which is no extension", "an extension such as .sql");
    let entries = without(entries, |entry| !is_extension(entry), path, said)?;
    Ok(entries.iter().map(|entry| extension(entry)).collect())
}

/// Returns an extension in the form for comparing: in lower case, with its dot.
fn extension(text: &str) -> String {
    let lower = text.to_lowercase();
    if lower.starts_with('.') { lower } else { format!(".{lower}") }
}

/// Returns every extension of a file's name, longest first, such as `.tar.gz` and `.gz`. The dot of a hidden file does not begin an
/// extension.
fn extensions(name: &str) -> impl Iterator<Item = String> {
    let stem = name.trim_start_matches('.').to_lowercase();
    let starts: Vec<usize> = stem.match_indices('.').map(|(at, _)| at).collect();
    starts.into_iter().filter_map(move |at| stem.get(at..).map(str::to_owned))
}
