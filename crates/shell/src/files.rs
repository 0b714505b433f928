//! Files that a command line opens by redirections, and the folders in which its relative paths may lie.

use super::argument::Argument;
use super::grammar::{Access, Command, Kind, List, Piece, Redirect, Word};
use super::paths;

/// A file that a redirection opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// Its path, as it is written; `~` for the home directory.
    pub path: String,
    /// What is done with it.
    pub access: Access,
    /// How many bytes are written, if that can be told.
    pub bytes: Option<usize>,
    /// Where it stands in the command line, in bytes.
    pub at: usize,
}

impl FileUse {
    /// Returns whether the path depends on the working directory.
    #[must_use]
    pub fn is_relative(&self) -> bool {
        is_relative(&self.path)
    }
}

/// What happens to what lies below a file that a program is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Below {
    /// Nothing that the line does not say.
    Stays,
    /// It goes with the file to another place, or comes from one.
    Moves,
    /// The same, and one of the places starts elsewhere than in the working folder.
    Comes,
    /// It is taken away or changed with the file.
    Changes,
    /// Files come there whose names nobody knows.
    Fills,
    /// What a program finds there is written.
    Searched,
    /// Nobody knows what the program does with the file: it may write it too.
    Unsaid,
    /// It goes elsewhere with the file, and nobody knows what else the program does with the file.
    Sent,
    /// The same, and what gets the file may write to all that lies below it.
    Given,
    /// It is taken away or changed by `git`, which changes nothing in the folder that holds its repository.
    Tracked,
}

/// A file that a program is given by an argument.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileOperand {
    /// Its path, as it is written; `~` for the home directory, and `*` for what is not known.
    pub path: String,
    /// What is done with it.
    pub access: Access,
    /// Whether the path is a glob.
    pub is_glob: bool,
    /// Whether the path is a name that a program has found.
    pub is_found: bool,
    /// What happens to what lies below it.
    pub below: Below,
}

impl FileOperand {
    /// Returns a file of which only the path is known.
    #[must_use]
    pub fn new(path: String, access: Access) -> Self {
        Self { path, access, is_glob: false, is_found: false, below: Below::Stays }
    }
}

fn is_relative(path: &str) -> bool {
    !path.starts_with(['/', '~'])
}

/// Returns whether a path is a device that keeps nothing of what is written into it, and gives nothing away.
#[must_use]
pub fn is_harmless_device(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/zero")
}

/// Returns whether a path is below a folder of devices or of the kernel's state: to bash, `/dev/tcp/HOST/PORT` is a connection.
#[must_use]
pub fn is_special(path: &str) -> bool {
    let path = paths::simplified(path);
    // A path that climbs out of an unknown folder may end at the root.
    let climbed = path.trim_start_matches("../");
    let from_root = path.strip_prefix('/').or_else(|| (climbed.len() < path.len()).then_some(climbed));
    from_root.is_some_and(|path| path.split('/').next().is_some_and(|first| ["dev", "proc", "sys"].contains(&first)))
}

/// The most folders that are followed.
const FOLLOWED_MAX: usize = 8;

/// The folders that a line goes to by `cd`. Each of them may be the working directory of any command in the line: which one it is
/// depends on conditions and subshells.
#[derive(Debug, Default)]
pub struct Directories {
    /// The folders, with whether they are globs.
    folders: Vec<(String, bool)>,
    has_moved: bool,
    is_lost: bool,
    is_beyond: bool,
    /// The folder at hand as it is seen from where the line begins, empty for the folder where the line begins. `None` if the folder depends on
    /// what fails.
    here: Option<String>,
    /// The folder before that one, to which `cd -` goes back.
    before: Option<String>,
}

impl Directories {
    /// Begins to follow each `cd`: [`moves_openly`] says of which lines the folder is known at each command.
    pub fn follow(&mut self) {
        self.here = (!self.has_moved).then(String::new);
    }

    /// Ends to follow: from here on the folder at hand may be any that the line goes to.
    pub fn lose(&mut self) {
        self.here = None;
    }

    /// Returns a path as it is seen from where the line begins, if the folder at hand is known.
    #[must_use]
    pub fn resolved(&self, path: &str) -> String {
        self.here.as_deref().map_or_else(|| path.to_owned(), |folder| joined(folder, path))
    }

    /// Returns a relative path as it is seen from each folder above the folder at hand; none if that folder is not known.
    #[must_use]
    pub fn above(&self, path: &str) -> Vec<String> {
        let here = self.here.as_deref().unwrap_or_default();
        let ends = here.char_indices().filter(|(at, char)| *char == '/' && *at > 0).map(|(at, _)| at);
        let folders = std::iter::once(0).filter(|_| !here.is_empty() && is_relative(here)).chain(ends);
        folders.filter_map(|end| Some(joined(here.get(..end)?, path))).collect()
    }

    /// Notes a `cd` with these arguments. If it may be repeated, a relative one leads nobody knows where.
    pub fn go(&mut self, arguments: &[Argument], repeats: bool) {
        self.has_moved = true;
        if self.follows(arguments) {
            return;
        }
        let operands: Vec<&Argument> = arguments.iter().filter(|argument| argument.is_operand()).collect();
        let (target, is_glob) = match operands.as_slice() {
            [] if arguments.is_empty() => ("~", false),
            [target] if target.text != "-" => (target.text.as_str(), target.as_known().is_none() && target.text.contains(['*', '?', '['])),
            _ => return self.is_lost = true,
        };
        self.is_beyond |= repeats && is_relative(target);
        self.is_lost |= is_glob || self.is_beyond;
        let from = if is_relative(target) { self.folders.clone() } else { Vec::new() };
        let mut targets: Vec<(String, bool)> =
            from.iter().map(|(folder, in_glob)| (format!("{folder}/{target}"), *in_glob || is_glob)).collect();
        targets.push((target.to_owned(), is_glob));
        targets.retain(|target| !self.folders.contains(target));
        self.folders.append(&mut targets);
        self.hold();
    }

    /// Follows a `cd` with these arguments from a folder that is known, and returns whether the folder is known behind it too.
    fn follows(&mut self, arguments: &[Argument]) -> bool {
        let Some(here) = self.here.take() else { return false };
        let there = match arguments {
            [back] if back.as_known() == Some("-") => self.before.take(),
            [folder] if is_plain(folder) => Some(joined(&here, &folder.text)),
            _ => None,
        };
        let Some(there) = there else { return false };
        if !there.is_empty() && !self.folders.iter().any(|(folder, _)| *folder == there) {
            self.folders.push((there.clone(), false));
            self.hold();
        }
        (self.here, self.before) = (Some(there), Some(here));
        true
    }

    /// Keeps only as many folders as are followed.
    fn hold(&mut self) {
        self.is_beyond |= self.folders.len() > FOLLOWED_MAX;
        self.is_lost |= self.is_beyond;
        self.folders.truncate(FOLLOWED_MAX);
    }

    /// Returns whether it goes to more folders than are followed, or always further: then nothing is known of any path.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        self.is_beyond
    }

    /// Returns in how many folders a relative path may lie.
    #[must_use]
    pub fn count(&self) -> usize {
        self.folders.len() + 1
    }

    /// Returns how long the folders are together, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.folders.iter().map(|(folder, _)| folder.len()).sum()
    }

    /// Returns whether the line goes to another folder.
    #[must_use]
    pub fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// Returns whether it goes to a folder that cannot be followed.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns the places of a path that has been [`Self::resolved`]: itself and, if the folder at hand is not known at the end, the path in every
    /// folder that the line goes to. With each comes whether it is a glob.
    #[must_use]
    pub fn all(&self, path: &str) -> Vec<(String, bool)> {
        if self.here.is_some() { vec![(path.to_owned(), false)] } else { self.everywhere(path) }
    }

    /// Returns a path as it is written and, if it is relative, in every folder that the line goes to, with whether that is a glob.
    #[must_use]
    pub fn everywhere(&self, path: &str) -> Vec<(String, bool)> {
        let mut paths = vec![(path.to_owned(), false)];
        if is_relative(path) {
            paths.extend(self.folders.iter().map(|(folder, is_glob)| (format!("{folder}/{path}"), *is_glob)));
        }
        paths
    }
}

/// Returns a path as it is seen from the folder in which another one lies; an empty text is that folder.
fn joined(folder: &str, path: &str) -> String {
    if folder.is_empty() || !is_relative(path) { path.to_owned() } else { format!("{folder}/{path}") }
}

/// Returns whether all shells go to the same folder by this operand of `cd`. To zsh `+1` is a folder where it has been before.
fn is_plain(folder: &Argument) -> bool {
    let text = folder.text.as_str();
    folder.is_literal() && !folder.many && !text.is_empty() && !text.starts_with(['-', '+']) && !text.contains(['*', '?', '[', '\\'])
}

/// Returns whether the folder is known at each command of a line whose pipelines are all joined by `&&`: every command is a simple one, and
/// every `cd` stands alone. A loop could run a `cd` again, and a command in a pipe or a substitution has a folder of its own.
#[must_use]
pub fn moves_openly(list: &List) -> bool {
    let is_alone = |command: &Command| match &command.kind {
        Kind::Simple(simple) => command.redirects.is_empty() && simple.assignments.is_empty(),
        _ => false,
    };
    list.iter().all(|pipeline| {
        let is_move = pipeline.iter().any(|command| program(command).is_some_and(|program| program == "cd"));
        pipeline.iter().all(|command| program(command).is_some() && !substitutes(command))
            && (!is_move || pipeline.len() == 1 && pipeline.iter().all(is_alone))
    })
}

/// Returns whether the pipelines of a loop's body, which are joined by `&&`, begin with a `cd` to a folder and end with one back, with no other
/// between: simple commands, each `cd` alone.
#[must_use]
pub fn goes_round(body: &List) -> bool {
    let [first, between @ .., last] = body.as_slice() else { return false };
    let is_move = |pipeline: &[Command]| pipeline.iter().any(|command| program(command) == Some("cd"));
    let is_back = |command: &Command| match &command.kind {
        Kind::Simple(simple) => matches!(simple.words.as_slice(), [_, back] if matches!(back.as_text(), Some(".." | "-"))),
        _ => false,
    };
    moves_openly(body) && is_move(first) && is_move(last) && last.iter().all(is_back) && !between.iter().any(|pipeline| is_move(pipeline))
}

/// Returns whether an operand of `cd` is the name of a folder in the one at hand, or a glob for some.
#[must_use]
pub fn is_one_folder(folder: &Argument) -> bool {
    let text = folder.text.strip_suffix('/').unwrap_or(&folder.text);
    let text = text.strip_prefix("./").unwrap_or(text);
    !folder.computed && !text.is_empty() && !text.starts_with(['-', '+', '.', '~']) && !text.contains(['/', '\\'])
}

/// Returns the program of a simple command, if it is written out.
fn program(command: &Command) -> Option<&str> {
    match &command.kind {
        Kind::Simple(simple) => simple.words.first().and_then(Word::as_text),
        _ => None,
    }
}

fn substitutes(command: &Command) -> bool {
    let targets = command.redirects.iter().filter_map(|redirect| match redirect {
        Redirect::File { target, .. } => Some(target),
        _ => None,
    });
    let words: Vec<&Word> = match &command.kind {
        Kind::Simple(simple) => simple.words.iter().chain(simple.assignments.iter().map(|(_, value)| value)).collect(),
        _ => Vec::new(),
    };
    words.into_iter().chain(targets).flat_map(|word| &word.pieces).any(|piece| matches!(piece, Piece::Output { .. } | Piece::Process(_)))
}
