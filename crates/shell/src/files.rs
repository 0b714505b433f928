//! Files that a command line opens by redirections, and the folders in which its relative paths may lie.

use super::argument::Argument;
use super::grammar::{Access, Command, End, Kind, List, Piece, Pipeline, Redirect, Word};
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

/// What happens to what lies below a file that a program is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Below {
    /// Nothing that the line does not say.
    Stays,
    /// It goes with the file to another place, or comes from one.
    Moves,
    /// The same, and one of the places starts elsewhere than in the working folder.
    Comes,
    /// As [`Below::Comes`], of the place to which it goes, which may be a folder already.
    Lands,
    /// It is taken away or changed with the file.
    Changes,
    /// Files come there whose names nobody knows.
    Fills,
    /// What a program finds there is written.
    Searched,
    /// Nobody knows what the program does with the file: it may write it too.
    Unnamed,
    /// It goes elsewhere with the file, and nobody knows what else the program does with the file.
    Sent,
    /// The same, and what gets the file may write to all that lies below it.
    Given,
    /// It is taken away or changed by `git`, which changes nothing in the folder that holds its repository.
    Tracked,
    /// `git` sets it to what has been committed, as a change of branches does, and takes nothing else away.
    Committed,
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
    /// What a program that looks for names below it leaves out: `PATH` with all that lies below, `PATH/*` for what lies below alone, and `**/` in
    /// front for a name at any depth.
    pub left_out: Vec<String>,
}

impl FileOperand {
    /// Returns a file of which only the path is known.
    #[must_use]
    pub fn new(path: String, access: Access) -> Self {
        Self { path, access, is_glob: false, is_found: false, below: Below::Stays, left_out: Vec::new() }
    }
}

/// Files and folders with relative paths that are seen from a folder which is not known.
#[derive(Debug, Default)]
pub(super) struct Unplaced {
    /// The files that redirections open.
    pub(super) files: Vec<FileUse>,
    /// The files that programs are given.
    pub(super) operands: Vec<FileOperand>,
    /// The folders in which programs look for names.
    pub(super) searched: Vec<FileOperand>,
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

/// The folders that a line goes to by `cd`. Where the folder of a command is not known, it may be any of them: which one it is depends on
/// conditions and subshells.
#[derive(Debug)]
pub struct Directories {
    /// Where the line begins, as far as that is told; else an empty text.
    start: String,
    /// The folders, with whether they are globs.
    folders: Vec<(String, bool)>,
    /// Whether the line goes to another folder.
    pub(super) has_moved: bool,
    /// Whether it goes to a folder that cannot be followed.
    pub(super) is_lost: bool,
    /// Whether it goes to more folders than are followed, or always further: then nothing is known of any path.
    pub(super) is_beyond: bool,
    spot: Spot,
}

/// What is known of the folder at hand.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The folder as it is seen from where the line begins, or an empty text for where it begins. `None` if it depends on what fails.
    here: Option<String>,
    /// The folder before that one, to which `cd -` goes back.
    before: Option<String>,
    /// How often the line has gone elsewhere.
    moves: usize,
}

impl Default for Directories {
    fn default() -> Self {
        let spot = Spot { here: Some(String::new()), before: None, moves: 0 };
        Self { start: String::new(), folders: Vec::new(), has_moved: false, is_lost: false, is_beyond: false, spot }
    }
}

impl Directories {
    /// Has the line begin in a folder.
    pub fn start(&mut self, folder: &str) {
        folder.clone_into(&mut self.start);
        self.folders.push((folder.to_owned(), false));
        self.has_moved = true;
        self.spot.here = Some(folder.to_owned());
    }

    /// Forgets where the line is: from here on the folder at hand may be any that the line goes to.
    pub fn lose(&mut self) {
        (self.spot.here, self.spot.before) = (None, None);
    }

    /// Returns what is known of the folder at hand.
    #[must_use]
    pub fn spot(&self) -> Spot {
        self.spot.clone()
    }

    /// Goes to where the line has been, and returns from where.
    pub fn set(&mut self, spot: Spot) -> Spot {
        std::mem::replace(&mut self.spot, spot)
    }

    /// Returns how often the line has gone elsewhere, in this shell.
    #[must_use]
    pub fn moves(&self) -> usize {
        self.spot.moves
    }

    /// Forgets where the line is, if it has gone elsewhere since it had done so this often.
    pub fn lose_since(&mut self, moves: usize) {
        if self.spot.moves != moves {
            self.lose();
        }
    }

    /// Returns a path as it is seen from where the line begins, if it does not depend on a folder that is not known.
    #[must_use]
    pub fn seen(&self, path: &str) -> Option<String> {
        if !is_relative(path) {
            return Some(path.to_owned());
        }
        self.spot.here.as_deref().map(|folder| joined(folder, path))
    }

    /// Returns whether it is known where `cd -` leads.
    #[must_use]
    pub fn knows_before(&self) -> bool {
        self.spot.before.is_some()
    }

    /// Returns a relative path as it is seen from each folder above the folder at hand: from no folder if that folder is not known.
    #[must_use]
    pub fn above(&self, path: &str) -> Vec<String> {
        let here = self.spot.here.as_deref().unwrap_or_default();
        let ends = here.char_indices().filter(|(at, char)| *char == '/' && *at > 0).map(|(at, _)| at);
        let folders = std::iter::once(0).filter(|_| !here.is_empty() && is_relative(here)).chain(ends);
        folders.filter_map(|end| Some(joined(here.get(..end)?, path))).collect()
    }

    /// Notes a `cd` with these arguments. If it may be repeated, a relative one leads nobody knows where.
    pub fn go(&mut self, arguments: &[Argument], repeats: bool) {
        self.spot.moves += 1;
        if !self.follows(arguments) {
            self.enter(arguments, repeats);
        }
        self.has_moved = true;
    }

    /// Notes that a program or a `cd` with these arguments goes to a folder from one that is not known.
    pub fn enter(&mut self, arguments: &[Argument], repeats: bool) {
        self.has_moved = true;
        let operands: Vec<&Argument> = arguments.iter().filter(|argument| argument.is_operand()).collect();
        let (target, is_glob) = match operands.as_slice() {
            [] if arguments.iter().all(|argument| argument.text != "-") => ("~", false),
            [target] if target.text != "-" => (target.text.as_str(), target.as_known().is_none() && target.text.contains(['*', '?', '['])),
            _ => return self.is_lost = true,
        };
        self.is_beyond |= repeats && is_relative(target);
        self.is_lost |= is_glob || self.is_beyond;
        let from = if is_relative(target) { self.folders.clone() } else { Vec::new() };
        let mut targets: Vec<(String, bool)> =
            from.iter().map(|(folder, in_glob)| (format!("{folder}/{target}"), *in_glob || is_glob)).collect();
        targets.push((joined(&self.start, target), is_glob));
        targets.retain(|target| !self.folders.contains(target));
        self.folders.append(&mut targets);
        self.cap_folders();
    }

    /// Follows a `cd` with these arguments from a folder that is known, and returns whether the folder is known behind it too.
    fn follows(&mut self, arguments: &[Argument]) -> bool {
        let Some(here) = self.spot.here.take() else { return false };
        let there = match arguments {
            [back] if back.as_known() == Some("-") => self.spot.before.take(),
            [folder] if is_plain(folder) => Some(joined(&here, &folder.text)),
            _ => None,
        };
        let Some(there) = there else { return false };
        if !there.is_empty() && !self.folders.iter().any(|(folder, _)| *folder == there) {
            self.folders.push((there.clone(), false));
            self.cap_folders();
        }
        (self.spot.here, self.spot.before) = (Some(there), Some(here));
        true
    }

    /// Keeps only as many folders as are followed.
    fn cap_folders(&mut self) {
        self.is_beyond |= self.folders.len() > FOLLOWED_MAX;
        self.is_lost |= self.is_beyond;
        self.folders.truncate(FOLLOWED_MAX);
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

    /// Returns the places of a path that is seen from a folder that is not known: one for every folder that the line may be in, with whether that
    /// is a glob.
    #[must_use]
    pub fn all(&self, path: &str) -> Vec<(String, bool)> {
        let mut places = self.everywhere(path);
        if !self.start.is_empty() && is_relative(path) {
            places.remove(0);
        }
        places
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

/// Returns whether all shells go to the same folder by this operand of `cd`. To zsh `+1` is a folder where it has been before, and what commands
/// print may be nothing: then they stay where they are.
fn is_plain(folder: &Argument) -> bool {
    let text = folder.text.as_str();
    let is_written = folder.as_known().is_some() || folder.is_literal() && text.starts_with(['~', '.']);
    is_written && !folder.many && !text.is_empty() && !text.starts_with(['-', '+']) && !text.contains(['*', '?', '[', '\\'])
}

/// Returns whether commands may go to another folder in the shell that runs them. What a subshell does is left out.
#[must_use]
pub fn may_move(commands: &[Command]) -> bool {
    let in_list = |list: &List| list.iter().any(|pipeline| may_move(&pipeline.commands));
    commands.iter().any(|command| match &command.kind {
        // Behind `command` and `builtin` it is a move too.
        Kind::Simple(simple) => {
            let may_start = matches!(program(command), None | Some("builtin" | "command"));
            simple.words.iter().any(|word| word.as_text().map_or(may_start, |word| matches!(word, "cd" | "pushd" | "popd")))
        }
        Kind::Subshell(_) => false,
        Kind::Group(list) => in_list(list),
        Kind::If(lists) => lists.iter().any(in_list),
        Kind::While { condition, body } => in_list(condition) || in_list(body),
        Kind::For { body, .. } => in_list(body),
    })
}

/// Returns whether a loop's body is simple commands that are joined by `&&`, the first of which is a `cd` to a folder, and the last a `cd` back,
/// with no other between.
#[must_use]
pub fn goes_round(body: &List) -> bool {
    let is_open = |command: &Command| program(command).is_some() && !substitutes(command);
    let is_joined = body.iter().all(|pipeline| !pipeline.is_negated && pipeline.commands.iter().all(is_open));
    let [first, between @ .., last] = body.as_slice() else { return false };
    let is_chain = std::iter::once(first).chain(between).all(|pipeline| pipeline.end == End::And) && last.end != End::Background;
    let moves = |pipeline: &Pipeline| may_move(&pipeline.commands);
    let move_alone = |pipeline: &Pipeline| match pipeline.commands.as_slice() {
        [Command { kind: Kind::Simple(simple), redirects }] if redirects.is_empty() && simple.assignments.is_empty() => {
            simple.words.first().and_then(Word::as_text).filter(|program| *program == "cd").map(|_| simple.words.clone())
        }
        _ => None,
    };
    let goes_back =
        move_alone(last).is_some_and(|words| matches!(words.as_slice(), [_, back] if matches!(back.as_text(), Some(".." | "-"))));
    is_joined && is_chain && move_alone(first).is_some() && goes_back && !between.iter().any(moves)
}

/// Returns whether an operand of `cd` is the name of a folder in the one at hand, or a glob for some.
#[must_use]
pub fn is_one_folder(folder: &Argument) -> bool {
    let text = folder.text.strip_suffix('/').unwrap_or(&folder.text);
    let text = text.strip_prefix("./").unwrap_or(text);
    !folder.computed && !folder.many && !text.is_empty() && !text.starts_with(['-', '+', '.', '~']) && !text.contains(['/', '\\'])
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
