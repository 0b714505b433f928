//! What `git` reads and writes: folders, files and patterns of them among its operands.

use super::linked::{met, placed};
use super::looking::HIDDEN_ONES;
use super::options::attached;
use super::patterns::crossing;
use super::reading::{Scan, scan_subcommand};
use super::texts::{git_subcommand, subcommand_of_git};
use super::touches::{Touch, file, words};
use super::values::is_remote;
use crate::argument::{Argument, text_at};
use crate::grammar::Access;

/// TABLE: subcommands of `git` whose operands are written. Those of the others may be files, and are read.
const GIT_WRITES: [&str; 7] = ["mv", "rm", "restore", "checkout", "clean", "clone", "init"];

/// TABLE: subcommands of `git` whose operands are names of branches, tags and remotes, or patterns of them, and no files.
const OF_NAMES: [&str; 6] = ["branch", "for-each-ref", "ls-remote", "push", "show-ref", "tag"];

/// TABLE: subcommands of `git` that take names of branches and tags for what they are.
const OF_REFERENCES: [&str; 12] =
    ["describe", "diff", "fetch", "log", "merge", "merge-base", "pull", "rebase", "rev-list", "rev-parse", "shortlog", "show"];

/// TABLE: those of them that show files too: a name that is no branch's is a path to them.
const OF_BOTH: [&str; 5] = ["diff", "log", "rev-list", "shortlog", "show"];

/// TABLE: options by which these know what to show, whatever their operands are.
const ALL_OF_THEM: [&str; 8] = ["all", "branches", "tags", "remotes", "glob", "reflog", "g", "walk-reflogs"];

/// TABLE: subcommands of `git` to which a colon stands between two references, or in an address. To the others `REVISION:PATH` and `:STAGE:PATH`
/// are what a file was.
const OF_REFSPECS: [&str; 7] = ["clone", "config", "fetch", "ls-remote", "pull", "push", "remote"];

/// The most colons of an operand behind which a path is looked for. More stand in no revision, and could hide one.
const COLONS_MAX: usize = 8;

/// What `git` touches: the folders of `-C`, and operands that may be files or patterns of them.
pub(super) fn of_git(arguments: &[Argument]) -> Vec<Touch> {
    let at = git_subcommand(arguments);
    let folders = arguments.iter().take(at).enumerate().filter(|(_, argument)| argument.text == "-C");
    let mut touched: Vec<Touch> = folders.filter_map(|(index, _)| file(arguments, index + 1, Access::Read)).collect();
    let subcommand = text_at(arguments, at);
    let access = access_of(subcommand, arguments.get(at + 1));
    let is_name = OF_NAMES.contains(&subcommand);
    if changes_all(arguments) {
        touched.push(Touch::write(at, "."));
    }
    let scanned = scan_subcommand("git", arguments);
    touched.extend(scanned.iter().flat_map(lines_of));
    touched.extend(arguments.iter().enumerate().filter_map(shown_below));
    if scanned.is_none() && !is_name && !GIT_WRITES.contains(&subcommand) {
        touched.extend(written_by_unknown(arguments, at));
    }
    let mut operands = operands_of(scanned.as_ref(), arguments, at);
    let end = arguments.iter().position(|argument| argument.text == "--").unwrap_or(arguments.len());
    // The first operand of `git grep` is what it looks for, unless an option gives that.
    if subcommand == "grep" && scanned.as_ref().is_some_and(|scan| !scan.has(&["e", "f"])) && !operands.is_empty() {
        operands.remove(0);
    }
    match subcommand {
        "mv" => touched.extend(placed(arguments, &operands, None)),
        "diff" if is_given(arguments, &["no-index"]) => touched.extend(met(arguments, &operands)),
        _ => {}
    }
    let first = operands.first().copied().unwrap_or_default();
    for index in operands {
        let Some(argument) = arguments.get(index) else { continue };
        if argument.as_known().is_some_and(excludes) || is_no_file(argument, index > end, subcommand, scanned.as_ref()) {
            continue;
        }
        let text = argument.text.as_str();
        if subcommand == "clone" && text.contains(':') {
            touched.extend(cloned(text).map(|path| Touch::File { index, path, access }));
            continue;
        }
        // A name that is no remote is a folder to git.
        let is_folder = matches!(subcommand, "push" | "ls-remote") && index == first && !text.contains(':') && !is_remote(argument);
        let is_pushed = is_folder && subcommand == "push";
        let accesses = [(!is_name || is_folder).then_some(access), is_pushed.then_some(Access::Write)];
        touched.extend(accesses.into_iter().flatten().filter_map(|access| file(arguments, index, access)));
        if !OF_REFSPECS.contains(&subcommand) {
            touched.extend(behind_colons(index, text));
        }
        if is_name {
            continue;
        }
        let magic = behind_magic(text);
        touched.extend(magic.map(|path| Touch::File { index, path: path.to_owned(), access }));
        let is_hidden = text.starts_with(":(") && text.contains(')') && !excludes(text);
        let unquoted = text.contains('\\').then(|| magic.unwrap_or(text).replace('\\', ""));
        touched.extend(unquoted.map(|path| Touch::File { index, path, access }));
        if is_hidden || is_pattern(text) {
            touched.push(Touch::Pattern(crossing(magic.unwrap_or(text))));
        }
    }
    touched
}

/// Returns what a subcommand does with its operands. What is stashed goes back to what was committed.
fn access_of(subcommand: &str, next: Option<&Argument>) -> Access {
    let stashes = subcommand == "stash" && next.is_some_and(|next| next.text == "push" || next.text.starts_with('-'));
    if GIT_WRITES.contains(&subcommand) || stashes { Access::Write } else { Access::Read }
}

/// What a revision has behind its colons: `REVISION:PATH`.
fn behind_colons(index: usize, text: &str) -> impl Iterator<Item = Touch> {
    let behind = text.match_indices(':').filter_map(|(at, _)| text.get(at + 1..));
    let paths = behind.clone().take(COLONS_MAX).map(move |path| Touch::read(index, path));
    paths.chain(behind.skip(COLONS_MAX).take(1).map(|_| Touch::Pattern(HIDDEN_ONES.to_owned())))
}

/// Returns the folders in which the pathspecs of a command find names: what stands in front of a pattern. One with words or signs in front may mean
/// the root of the repository, which lies above the folder at hand.
#[must_use]
pub fn pathspec_folders(arguments: &[Argument]) -> Vec<String> {
    let folder = |index: &usize| {
        let text = arguments.get(*index)?.text.as_str();
        if left_out_pathspec(text).is_some() {
            return None;
        }
        if text.starts_with(':') {
            return Some("..".to_owned());
        }
        let front = text.split(['*', '?', '[', '\\']).next().unwrap_or_default();
        let is_whole = front.len() == text.len();
        Some(if is_whole { text } else { front.rsplit_once('/').map_or(".", |(folder, _)| folder) }.to_owned())
    };
    let mut operands = git_operands(arguments);
    let end = arguments.iter().position(|argument| argument.text == "--");
    match subcommand_of_git(arguments) {
        // The first operand is what it looks for.
        "grep" if !operands.is_empty() => drop(operands.remove(0)),
        // What stands in front of `--` may be a revision, in which any file has changed.
        "diff" => operands.retain(|index| end.is_some_and(|end| *index > end)),
        _ => {}
    }
    let folders: Vec<String> =
        operands.iter().filter_map(folder).map(|folder| if folder.is_empty() { "/".to_owned() } else { folder }).collect();
    if folders.is_empty() { vec![".".to_owned()] } else { folders }
}

/// What `--relative` shows: a folder, or whatever begins with a text that does not end with a slash.
fn shown_below((index, argument): (usize, &Argument)) -> Option<Touch> {
    let start = argument.text.strip_prefix("--relative=")?;
    let folder = start.strip_suffix('/').map(|path| Touch::read(index, path));
    Some(folder.unwrap_or_else(|| Touch::Pattern(HIDDEN_ONES.to_owned())))
}

/// What a subcommand without a table may write: its operands, and the values of its options.
fn written_by_unknown(arguments: &[Argument], at: usize) -> impl Iterator<Item = Touch> {
    arguments.iter().enumerate().skip(at + 1).flat_map(|(index, argument)| {
        let text = argument.text.as_str();
        let paths = if text.starts_with('-') { attached(text) } else { vec![text] };
        paths.into_iter().filter(|path| !path.is_empty()).map(move |path| Touch::write(index, path))
    })
}

/// Returns whether an operand that is the name of a branch or tag, or a revision, is surely no path. A name that is a file's and a branch's
/// is refused by `git` where it takes both, but a branch that has no commit yet is no name, and `git diff` compares files where one lies
/// elsewhere.
pub(super) fn is_no_file(argument: &Argument, is_behind: bool, subcommand: &str, scanned: Option<&Scan>) -> bool {
    let text = argument.text.as_str();
    if !argument.is_reference || is_behind || text.contains(':') && !OF_REFSPECS.contains(&subcommand) {
        return false;
    }
    if text == "1" {
        return !argument.many || !GIT_WRITES.contains(&subcommand) && subcommand != "stash";
    }
    let is_whole = ["*", "origin/*", "upstream/*"].contains(&text);
    let is_only = is_whole && scanned.is_some_and(|scan| scan.operands.len() == 1 && !scan.has(&ALL_OF_THEM));
    let is_shown = || subcommand != "diff" && is_only || is_range(text);
    OF_REFERENCES.contains(&subcommand) && (!OF_BOTH.contains(&subcommand) || is_shown())
}

/// Returns whether a text is a pair of references, and no path that goes up.
fn is_range(text: &str) -> bool {
    let Some((from, to)) = text.split_once("..") else { return false };
    let to = to.strip_prefix('.').unwrap_or(to);
    !from.starts_with(['.', '/', '~']) && !from.ends_with('/') && !to.starts_with('/') && !to.contains("..")
}

/// Returns the places of the operands behind the subcommand.
pub(super) fn git_operands(arguments: &[Argument]) -> Vec<usize> {
    operands_of(scan_subcommand("git", arguments).as_ref(), arguments, git_subcommand(arguments))
}

fn operands_of(scanned: Option<&Scan>, arguments: &[Argument], at: usize) -> Vec<usize> {
    let behind = |index: &usize| *index > at;
    scanned.map_or_else(|| words(arguments).into_iter().filter(behind).collect(), |scan| scan.operands.clone())
}

/// Returns whether `git` takes away or overwrites whatever has changed in its whole working folder, or what a list names.
pub(super) fn changes_all(arguments: &[Argument]) -> bool {
    let at = git_subcommand(arguments);
    let behind = arguments.get(at + 1..).unwrap_or_default();
    let has = |letter: char, words: &[&str]| {
        let is_letter = |text: &str| text.starts_with('-') && !text.starts_with("--") && text.contains(letter);
        behind.iter().map(|argument| argument.text.as_str()).any(|text| is_letter(text) || words.contains(&text))
    };
    let first = text_at(behind, 0);
    // Of several words there may be none.
    let is_many = |index: &usize| arguments.get(*index).is_some_and(|argument| argument.many);
    let is_whole = git_operands(arguments).iter().all(|index| *index == at + 1 && first == "push" || is_many(index));
    // A pattern finds names at any depth, names in a list may be any, and where paths are only left out, all others are meant.
    let is_any = |text: &str| text.starts_with("--pathspec-f") || is_pattern(text) || excludes(text);
    let is_listed = behind.iter().any(|argument| is_any(&argument.text));
    match text_at(arguments, at) {
        "clean" => (is_whole || is_listed) && !is_given(arguments, &["n", "dry-run"]),
        "reset" => has('-', &["--hard", "--merge"]),
        "checkout" => has('f', &["--force"]) || is_listed,
        "switch" => has('f', &["--force", "--discard-changes"]),
        "stash" => first == "save" || (first.is_empty() || first.starts_with('-') || first == "push") && (is_whole || is_listed),
        "rm" | "restore" => is_listed,
        _ => false,
    }
}

/// Returns whether one of these options is surely given: the table knows all options, and tells them from values and from what stands behind `--`.
pub(super) fn is_given(arguments: &[Argument], names: &[&str]) -> bool {
    scan_subcommand("git", arguments).is_some_and(|scan| scan.has(names))
}

/// Returns whether an operand says which paths are left out: `:!x`, `:^x`, `:(exclude)x`.
fn excludes(text: &str) -> bool {
    let rest = text.strip_prefix(':').unwrap_or_default();
    let is_word = |words: &str| words.split_once(')').is_none_or(|(words, _)| words.contains("exclude"));
    rest.trim_start_matches('/').starts_with(['!', '^']) || rest.strip_prefix('(').is_some_and(is_word)
}

/// Returns whether a path is seen from the root of the repository, which may lie above the folder at hand.
pub fn is_from_root(arguments: &[Argument], index: usize, path: &str) -> bool {
    let is_placed = arguments.get(index).is_some_and(|argument| argument.text.contains(':'));
    let is_full = arguments.iter().any(|argument| argument.text == "--full-tree");
    (is_placed || is_full) && !path.starts_with(['/', '~']) && !path.starts_with("./") && !path.starts_with("../")
}

/// Returns what a pathspec of `git` leaves out, if the pathspec is plain.
pub(super) fn left_out_pathspec(text: &str) -> Option<String> {
    let path = [":!", ":^", ":(exclude)"].iter().find_map(|magic| text.strip_prefix(magic))?;
    let (path, end) = path.strip_suffix('/').map_or((path, ""), |path| (path, "/*"));
    is_plain_path(path).then(|| format!("{path}{end}"))
}

/// Returns whether a text is a path of names that mean only themselves, to the programs and to patterns.
pub(super) fn is_plain_path(path: &str) -> bool {
    let is_name =
        |name: &str| !matches!(name, "" | "." | "..") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    path.split('/').all(is_name)
}

/// Returns whether `git` takes a text for a pattern. A backslash takes the meaning of what stands behind it, and is no part of the name.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '\\'])
}

/// The files of which `git log -L` shows lines: `1,5:FILE`, `:NAME:FILE`. A name may have colons too.
fn lines_of(scan: &Scan) -> impl Iterator<Item = Touch> {
    let ranges = scan.given.iter().zip(&scan.places).filter(|((name, _), _)| *name == "L");
    ranges.filter_map(|((_, value), place)| Some(behind_colons(*place, &value.as_ref()?.text))).flatten()
}

/// Returns the path behind the words and signs that `git` takes in front of it: `:(top)x`, `:!x`, `:/x`.
fn behind_magic(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(':')?;
    let path = match rest.strip_prefix('(') {
        Some(words) => words.split_once(')')?.1,
        None => rest.trim_start_matches(['/', '!', '^', ':']),
    };
    Some(if path.is_empty() { "." } else { path })
}

/// Returns the folders that `git clone` may make of an address, where it is given none.
fn cloned(address: &str) -> impl Iterator<Item = String> {
    let address = address.trim_end_matches('/');
    let address = address.strip_suffix("/.git").unwrap_or(address);
    let name = address.rsplit(['/', ':']).find(|name| !name.is_empty()).unwrap_or(".");
    let short = name.strip_suffix(".git").or_else(|| name.strip_suffix(".bundle")).unwrap_or(name);
    [name.to_owned(), short.to_owned(), format!("{short}.git")].into_iter()
}
