//! The rules of `data.file.read` and `data.file.write`: files by their paths.
//!
//! A missing list does not restrict, an empty one allows nothing. Secrets are never read, whatever the lists say.

use bash_commands::Below;

use super::super::argument_names::fold;
use super::super::argument_role::ArgumentRole;
use super::super::beginning::count_parents;
use super::super::look_alike::plain_spelling;
use super::super::path::{NormalPath, PathSet, Purpose};
use super::budget;
use super::extensions::Extensions;
use super::file_arguments::{NOT_LISTED, Origin, read_arguments};
use super::file_path::{SEVERAL, is_patch, read_path};
use super::file_patterns::Patterns;
use super::left_behind;
use super::mcp::takes_whole;
use super::secrets;
use super::{
    Amount, Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_amount, check_limit, deny_found, deny_if, report,
    unknown_argument,
};

/// Arguments that say how and where something is written, and hold nothing that is. Every other text counts as written.
const UNWRITTEN_ARGUMENTS: &str = "oldstr oldstring oldtext encoding mode description reason command language contenttype mimetype newline";

/// Tools that make or take away a file and show nothing of it. All others that write may show what they change, or copy it.
const WRITERS: [&str; 8] = ["write_file", "Write", "create_file", "create", "create_directory", "delete_file", "file_delete", "Delete"];

#[path = "file_commands.rs"]
mod commands;
#[path = "file_searches.rs"]
mod searches;

#[derive(Debug)]
pub(super) struct FileLimits {
    is_read: bool,
    allowed_paths: Field<PathSet>,
    blocked_paths: Field<PathSet>,
    blocked_patterns: Field<Patterns>,
    extensions: Extensions,
    max_file_size: Field<Amount>,
}

impl FileLimits {
    pub(super) fn reading(section: &Section<'_>) -> Self {
        // A call does not report the size of the file that it reads, so a limit on it counts among those that cannot be enforced.
        Self::new(section, true, Field::Absent)
    }

    pub(super) fn writing(section: &Section<'_>) -> Self {
        Self::new(section, false, section.number("max_file_size"))
    }

    fn new(section: &Section<'_>, is_read: bool, max_file_size: Field<Amount>) -> Self {
        let places = |key, purpose| section.strings(key).and_then(|entries| PathSet::new(entries, purpose, &section.path_of(key)));
        let patterns = section.strings("blocked_patterns");
        Self {
            is_read,
            allowed_paths: places("allowed_paths", Purpose::Allow),
            blocked_paths: places("blocked_paths", Purpose::Block),
            blocked_patterns: patterns.and_then(|entries| Patterns::read(entries, &section.path_of("blocked_patterns"))),
            extensions: Extensions::read(section),
            max_file_size,
        }
    }

    fn has_places(&self) -> bool {
        !matches!((&self.allowed_paths, &self.blocked_paths, &self.blocked_patterns), (Field::Absent, Field::Absent, Field::Absent))
    }

    /// Reports the checks of a path.
    fn check_path(&self, text: &str, origin: Origin<'_>, reads: bool, to: &mut dyn Report) {
        let Some(path) = readable(text, to) else { return };
        let explained = |denial: Denial| if denial.message == NOT_LISTED { origin.not_listed(text) } else { denial };
        report(to, "allowed_paths", self.check_allowed(&path).map_err(explained));
        self.check_place(&path, text, reads, to);
    }

    /// Reports the checks of a path, which is seen from the working folder if the call tells that. What is blocked is so from any folder.
    fn check_seen(&self, text: &str, origin: Origin<'_>, folder: Option<&str>, reads: bool, to: &mut dyn Report) {
        let Some(folder) = folder.filter(|_| !text.starts_with(['/', '~'])) else {
            return self.check_path(text, origin, reads, to);
        };
        self.check_path(&format!("{folder}/{text}"), origin, reads, to);
        readable(text, to).into_iter().for_each(|path| self.check_place(&path, text, reads, to));
    }

    /// Reports every check of a path but whether it is in an allowed place.
    fn check_place(&self, path: &NormalPath, text: &str, reads: bool, to: &mut dyn Report) {
        if text.contains(['*', '?', '[', '{']) {
            // Some tools expand what others take for a name.
            let expansions = bash_commands::braces(text);
            if let Err(denial) = budget::check_glob(&expansions, text) {
                return report(to, "globs", Err(denial));
            }
            // What stands in braces may lead elsewhere.
            if let Some(expansion) = expansions.iter().find(|text| count_parents(text) > 0).filter(|_| text.contains('{')) {
                report(to, "allowed_paths", self.check_allowed(&NormalPath::new(expansion)));
            }
            let is_secret = reads && expansions.iter().any(|text| secrets::secret_glob(text));
            let denial = || secrets::denial("File path is a glob that", None);
            report(to, "globs", if is_secret { Err(denial()) } else { self.check_finds(&expansions) });
            expansions.iter().filter(|_| text.contains('{')).for_each(|place| self.check_named(&NormalPath::new(place), place, reads, to));
        }
        self.check_named(path, text, reads, to);
        self.check_parts(text, reads, to);
        if let Some(spelling) = plain_spelling(text) {
            self.check_named(&NormalPath::new(&spelling), &spelling, reads, to);
        }
    }

    /// Reports the checks of the parts of a text that some tools take for several paths. A name may have blanks and commas too.
    fn check_parts(&self, text: &str, reads: bool, to: &mut dyn Report) {
        let is_between = |char: char| SEVERAL.contains(&char) || char.is_whitespace() || char == '\u{feff}';
        for part in text.split(is_between).filter(|part| !part.is_empty() && part.len() < text.len()) {
            let path = NormalPath::new(part);
            if part.starts_with(['/', '~']) || path.climbs {
                report(to, "allowed_paths", self.check_allowed(&path));
            }
            // A word alone, such as `credentials`, is rather a part of a name.
            self.check_blocked(&path, part, reads && part.contains(['/', '.', '_']), to);
        }
    }

    /// Reports whether a path is blocked or a secret, or has an extension that is not allowed.
    fn check_named(&self, path: &NormalPath, text: &str, reads: bool, to: &mut dyn Report) {
        self.check_blocked(path, text, reads, to);
        report(to, "extensions", self.extensions.check(path.name()));
    }

    /// Reports whether a path is in a place of secrets or in a blocked one.
    fn check_blocked(&self, path: &NormalPath, text: &str, reads: bool, to: &mut dyn Report) {
        if reads {
            let secret = secrets::secret_of(path);
            report(to, "secrets", secret.map_or(Ok(()), |secret| Err(secrets::denial("File path", Some(secret)))));
        }
        report(to, "blocked_paths", self.check_blocked_paths(path));
        report(to, "blocked_patterns", self.check_blocked_patterns(path, text));
    }

    /// Checks that a path is not blocked.
    fn check_places(&self, path: &NormalPath, text: &str) -> Result<(), Denial> {
        self.check_blocked_paths(path)?;
        self.check_blocked_patterns(path, text)
    }

    fn check_blocked_paths(&self, path: &NormalPath) -> Result<(), Denial> {
        check_limit(&self.blocked_paths, |blocked| deny_found(blocked.find(path), "oap.path_blocked", "File path is in blocked path"))
    }

    fn check_blocked_patterns(&self, path: &NormalPath, text: &str) -> Result<(), Denial> {
        check_limit(&self.blocked_patterns, |patterns| {
            deny_found(patterns.find(path, text), "oap.blocked_pattern", "File path matches blocked pattern")
        })
    }

    /// Checks that none of the expansions of a glob finds a blocked path, or a path that a blocked pattern matches.
    fn check_finds(&self, expansions: &[String]) -> Result<(), Denial> {
        check_limit(&self.blocked_paths, |blocked| {
            deny_if(expansions.iter().any(|glob| blocked.may_be_found_at(glob)), "oap.path_blocked", FOUND)
        })?;
        check_limit(&self.blocked_patterns, |patterns| {
            deny_if(expansions.iter().any(|glob| patterns.may_be_found_at(glob)), "oap.blocked_pattern", MATCHED)
        })
    }

    /// Judges a text under a name that is not known: as a path, if it can be one.
    fn check_unknown(&self, text: &str, reads: bool, to: &mut dyn Report) {
        let has_blank = text.chars().any(|char| char.is_whitespace() || char.is_control());
        let is_pathlike = text.contains(['/', '\\', '~', '$', '%', '*', '?', '[', '{', '<', '`', ':']) || text.starts_with('.');
        let has_extension = text.split_whitespace().any(|word| word.trim_end_matches(['.', ',', '!', ';']).contains('.'));
        let is_secret = || secrets::is_secret(&NormalPath::new(text));
        match (is_pathlike || has_extension, has_blank) {
            // A plain word may be the name of a blocked place.
            (false, false) if !is_secret() => report(to, "blocked_paths", self.check_blocked_paths(&NormalPath::new(text))),
            (false, _) if !is_secret() => {}
            (true, true) => report(to, "unknown arguments", Err(unknown_argument("the name of a file"))),
            _ => self.check_path(text, Origin::Unknown, reads, to),
        }
    }

    /// Checks that a path that a command names is allowed. A path below the working folder is taken to be, as the folder is, unless the list
    /// itself has paths below it.
    fn check_allowed_here(&self, text: &str, path: &NormalPath) -> Result<(), Denial> {
        let is_below = !text.starts_with(['/', '~']) && !path.climbs;
        let is_elsewhere = self.allowed_paths.valid().is_some_and(PathSet::is_elsewhere);
        if is_below && is_elsewhere { Ok(()) } else { self.check_allowed(path) }
    }

    fn check_allowed(&self, path: &NormalPath) -> Result<(), Denial> {
        let denial = |message| Err(Denial::new("oap.path_not_allowed", message));
        if path.climbs && self.has_places() {
            return denial("File path leaves a directory that the call does not tell; write the path from the root");
        }
        check_limit(&self.allowed_paths, |allowed| match allowed.find(path) {
            Some(_) => Ok(()),
            None => denial(NOT_LISTED),
        })
    }

    /// Checks that no blocked path that counts lies below a path.
    fn check_below(&self, text: &str, below: Below, counts: &dyn Fn(&str) -> bool) -> Result<(), Denial> {
        let (path, allowed) = (NormalPath::new(text), self.allowed_paths.valid());
        check_limit(&self.blocked_paths, |blocked| {
            deny_if(left_behind::has_blocked(blocked, allowed, &path, (below, counts)), "oap.path_blocked", BELOW)
        })?;
        check_limit(&self.blocked_patterns, |patterns| {
            deny_if(left_behind::has_blocked(&patterns.rooted, allowed, &path, (below, counts)), "oap.blocked_pattern", BELOW)
        })
    }

    fn check_size(&self, call: &RuleCall<'_>) -> Result<(), Denial> {
        check_amount(&self.max_file_size, || call.arguments.number("content_length"), OVER).map_err(too_large)?;
        let is_path = |name: &str| call.names.role(name).is_some_and(|(role, _)| matches!(role, ArgumentRole::Folder | ArgumentRole::Path));
        let is_patch = |name: &str| call.names.role(name).is_some_and(|(role, _)| role == ArgumentRole::Patch);
        let is_unwritten = |name: &str| UNWRITTEN_ARGUMENTS.split(' ').any(|known| known == name) && !is_patch(name);
        let said = |key: &str, _: &str| fold(key).is_some_and(|name| is_path(&name) || is_unwritten(&name));
        check_limit(&self.max_file_size, |_| self.check_bytes(call.arguments.written_bytes(said)))
    }

    /// Checks that so many bytes may be written to a file.
    pub(super) fn check_bytes(&self, bytes: usize) -> Result<(), Denial> {
        check_amount(&self.max_file_size, || Ok(Some(Amount::of_bytes(bytes))), OVER).map_err(too_large)
    }

    /// Returns how many patterns a component of a path may be compared with.
    pub(super) fn weight(&self) -> usize {
        let places = [&self.allowed_paths, &self.blocked_paths].map(|set| set.valid().map_or(0, PathSet::weight));
        places.into_iter().sum::<usize>() + self.blocked_patterns.valid().map_or(0, Patterns::weight)
    }

    /// Returns how many entries are blocked.
    pub(super) fn entries(&self) -> usize {
        self.blocked_paths.valid().map_or(0, PathSet::entries) + self.blocked_patterns.valid().map_or(0, Patterns::entries)
    }
}

const FOUND: &str =
    "A glob could find a blocked path; write the names of the files, or a folder in front and an extension behind, as in src/*.py";
const MATCHED: &str = "A glob could find a name that a blocked pattern matches; write the names of the files";
const BELOW: &str = "A blocked path lies below what is handed over, moved, taken away or changed, or may do so; name a folder without one, or \
     the files in it, as in rm src/old/a.py src/old/b.py";
const OVER: &str = "File content exceeds max_file_size";

/// Returns a path as it can be read, or reports why it cannot.
fn readable(text: &str, to: &mut dyn Report) -> Option<NormalPath> {
    read_path(text).map_err(|denial| report(to, "path", Err(denial))).ok()
}

fn too_large(denial: Denial) -> Denial {
    if denial.message == OVER { Denial::new("oap.file_too_large", OVER) } else { denial }
}

impl Rules for FileLimits {
    fn files(&self) -> Option<&FileLimits> {
        Some(self)
    }

    fn faults(&self) -> Vec<Option<&Malformed>> {
        let paths = [&self.allowed_paths, &self.blocked_paths].map(Field::malformed);
        let others = [self.blocked_patterns.malformed(), self.max_file_size.malformed()];
        paths.into_iter().chain(others).chain(self.extensions.malformed()).collect()
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        let reads = self.is_read || !WRITERS.contains(&call.tool_name);
        match read_arguments(call, self.is_read) {
            Ok((sorted, paths)) => {
                if let Err(denial) = budget::check_places(sorted.places(), call.files.limits.weight()) {
                    return report(to, "budget", Err(denial));
                }
                let compared = paths.iter().map(|(_, path)| &**path).filter(|path| path.contains(['*', '?', '[', '{']) || !self.is_read);
                if let Err(denial) = budget::check_compared(compared, call.files.limits.entries()) {
                    return report(to, "budget", Err(denial));
                }
                let folder = sorted.of(ArgumentRole::Folder).next();
                // What is seen from the working folder has to be allowed, and the folder need not: hosts tell it with each call.
                let own = folder.and_then(|folder| Some((folder, readable(folder, to)?)));
                own.into_iter().for_each(|(folder, path)| self.check_blocked(&path, folder, reads, to));
                paths.iter().for_each(|(origin, path)| self.check_seen(path, *origin, folder.map(|folder| &**folder), reads, to));
                let seen = |path: &str| match folder.filter(|_| !path.starts_with(['/', '~'])) {
                    Some(folder) => format!("{folder}/{path}"),
                    None => path.to_owned(),
                };
                let folders: Vec<String> = paths.iter().map(|(_, path)| seen(path)).collect();
                if reads && !self.is_read {
                    let mut places = paths.iter().map(|(_, path)| &**path).chain(folders.iter().map(String::as_str));
                    report(to, "blocked for reading", places.try_for_each(|path| call.files.check_unblocked(path, false)));
                }
                if takes_whole(call.tool_name) {
                    let whole = folders.iter().try_for_each(|folder| call.files.check_whole(folder, Below::Moves));
                    report(to, "what lies below", whole);
                }
                self.check_searches(call, &sorted, &folders, to);
                let is_unread = |text: &str| is_patch(text) && sorted.of(ArgumentRole::Patch).all(|read| read != text);
                if ["patch", "apply_patch"].contains(&call.tool_name) && call.arguments.has_text(is_unread) {
                    const MESSAGE: &str = "A text of the call is a patch under a name that no patch has, and is not read";
                    report(to, "patch", Err(Denial::new("oap.invalid_tool_arguments", MESSAGE)));
                }
                sorted.unknown.iter().chain(&sorted.unknown_names).for_each(|text| self.check_unknown(text, reads, to));
            }
            Err(denial) => report(to, "path", Err(denial)),
        }
        if !self.is_read {
            report(to, "max_file_size", self.check_size(call));
        }
    }
}
