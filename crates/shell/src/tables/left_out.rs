//! What a search leaves out: `find . -name '*.ts' -not -path './private/*'`, `rg -g '!private'`, `git ls-files ':!private'`.
//!
//! Each is a text: `PATH` for a path with all that lies below, `PATH/*` for what lies below the path alone, and `**/` in front of either
//! for a name at any depth. A few spellings are read, as the programs read them. Of any other nothing is known, and what it leaves out counts as
//! found.

use super::find::ACTIONS;
use super::git_files::{git_operands, is_plain_path, left_out_pathspec};
use super::looking::Expression;
use super::reading::scan;
use super::{git_subcommand, is_in, table};
use crate::argument::{Argument, text_at};

/// The most paths that a search leaves out and that are looked at.
const PATHS_MAX: usize = 8;

/// Returns what a program leaves out of the names that it finds below a folder, as the folder is written.
#[must_use]
pub fn left_out(program: &str, arguments: &[Argument], folder: &str) -> Vec<String> {
    if arguments.iter().any(|argument| argument.as_known().is_none()) {
        return Vec::new();
    }
    let mut found = match program {
        "find" | "gfind" => of_find(&Expression::new(arguments).words, folder),
        "rg" => of_rg(arguments, folder),
        "git" => of_git(arguments),
        _ => Vec::new(),
    };
    found.truncate(PATHS_MAX);
    found
}

fn is_name(name: &str) -> bool {
    is_plain_path(name) && !name.contains('/')
}

/// What `find` leaves out by `-not -path`, in front of all actions, and by `-prune -o` in front of all else. With other choices than these it may
/// reach an action in another way.
fn of_find(words: &[(&str, &str)], start: &str) -> Vec<String> {
    let word = |at: usize| words.get(at).map_or("", |(word, _)| *word);
    let mut found = Vec::new();
    let mut at = 0;
    while word(at + 1) == "-prune" && matches!(word(at + 2), "-o" | "-or") {
        found.extend(words.get(at).and_then(|(test, value)| pruned(test, value, start)));
        at += 3;
    }
    // Without an action the folder itself is printed. In some orders, and above some depth, nothing is pruned.
    let acts = (at..words.len()).any(|at| is_in(ACTIONS, word(at)));
    let is_unordered = words.iter().any(|(word, _)| matches!(*word, "-d" | "-delete" | "-depth" | "-mindepth"));
    if !acts || is_unordered {
        found.clear();
    }
    let (mut depth, mut has_acted) = (0_usize, false);
    for place in at..words.len() {
        match word(place) {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "-o" | "-or" | "," if depth == 0 => return Vec::new(),
            "!" | "-not" if depth == 0 && !has_acted && !matches!(word(place.wrapping_sub(1)), "!" | "-not") => {
                found.extend(words.get(place + 1).and_then(|(test, value)| not_at(test, value, start)));
            }
            action => has_acted |= is_in(ACTIONS, action),
        }
    }
    found
}

/// What `-path PATH -prune` and `-name NAME -prune` leave out.
fn pruned(test: &str, value: &str, start: &str) -> Option<String> {
    match test {
        "-name" => is_name(value).then(|| format!("**/{value}")),
        "-path" | "-wholename" => match value.strip_prefix("*/") {
            Some(name) => is_name(name).then(|| format!("**/{name}")),
            None => below(value, start),
        },
        _ => None,
    }
}

/// What `-not -path 'PATH/*'` leaves out.
fn not_at(test: &str, value: &str, start: &str) -> Option<String> {
    let path = value.strip_suffix("/*").filter(|_| matches!(test, "-path" | "-wholename"))?;
    let path = match path.strip_prefix("*/") {
        Some(name) => is_name(name).then(|| format!("**/{name}")),
        None => below(path, start),
    };
    path.map(|path| format!("{path}/*"))
}

/// Returns a path that `find` prints below its start, as it is seen from where `find` runs.
fn below(path: &str, start: &str) -> Option<String> {
    let rest = path.strip_prefix(start)?.strip_prefix('/').filter(|rest| is_plain_path(rest))?;
    let is_here = start == ".";
    let is_start = is_here || is_plain_path(start.strip_prefix('/').unwrap_or(start));
    is_start.then(|| if is_here { rest.to_owned() } else { path.to_owned() })
}

/// What `rg` leaves out by `-g '!…'`, as `.gitignore` reads it from the folder in which `rg` runs. Of all globs that match, the last counts.
fn of_rg(arguments: &[Argument], folder: &str) -> Vec<String> {
    let Some(compiled) = table("rg") else { return Vec::new() };
    let Ok(scan) = scan(arguments, &compiled.options, compiled.style) else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in &scan.given {
        let text = value.as_ref().map_or("", |value| value.text.as_str());
        match (*name, text.strip_prefix('!')) {
            ("g" | "glob", Some(glob)) => found.extend(ignored(glob)),
            ("g" | "glob" | "iglob", _) => found.clear(),
            _ => {}
        }
    }
    let is_here = folder == "." || is_plain_path(folder);
    found.retain(|path| is_here || path.starts_with("**/"));
    found
}

/// What a line of a `.gitignore` leaves out.
fn ignored(glob: &str) -> Option<String> {
    let (path, is_inside) = match glob.strip_suffix("/**").or_else(|| glob.strip_suffix('/')) {
        Some(path) => (path, true),
        None => (glob, false),
    };
    // A slash that is not the last one ties the glob to the folder.
    let is_tied = glob.trim_end_matches('/').contains('/');
    let path = match path.strip_prefix("**/") {
        Some(name) => is_name(name).then(|| format!("**/{name}"))?,
        None => {
            let path = path.strip_prefix('/').unwrap_or(path);
            is_plain_path(path).then(|| if is_tied { path.to_owned() } else { format!("**/{path}") })?
        }
    };
    Some(if is_inside { format!("{path}/*") } else { path })
}

/// What `git` leaves out of the files that it knows.
fn of_git(arguments: &[Argument]) -> Vec<String> {
    let at = git_subcommand(arguments);
    let subcommand = text_at(arguments, at);
    let is_literal = arguments.iter().take(at).any(|option| option.text.contains("pathspecs"));
    if is_literal || !matches!(subcommand, "diff" | "grep" | "ls-files") {
        return Vec::new();
    }
    let operands = git_operands(arguments);
    // The first operand of `git grep` is what it looks for.
    let pathspecs = operands.iter().skip(usize::from(subcommand == "grep")).filter_map(|index| arguments.get(*index));
    pathspecs.filter_map(|argument| left_out_pathspec(&argument.text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, folder: &str) -> Vec<String> {
        let mut words = line.split(' ');
        let program = words.next().unwrap_or_default();
        left_out(program, &words.map(Argument::known).collect::<Vec<_>>(), folder)
    }

    #[test]
    fn what_a_search_leaves_out_is_told() {
        for (line, folder, expected) in [
            ("find . -name *.ts -not -path ./private/*", ".", "private/*"),
            ("find . ! -path */private/* -name *.ts -print0", ".", "**/private/*"),
            ("find src -type f ! -path src/a/b/* -exec cat {} +", "src", "src/a/b/*"),
            ("find /workspace -not -path /workspace/private/* -name x", "/workspace", "/workspace/private/*"),
            ("find . -path ./private -prune -o -name *.ts -print", ".", "private"),
            ("find . -name private -prune -o -type f -print", ".", "**/private"),
            ("find . ( -name a -o -name b ) -not -path ./private/*", ".", "private/*"),
            ("rg -l x -g !private", ".", "**/private"),
            ("rg -l x -g *.ts -g !private/**", ".", "private/*"),
            ("rg -l x -g !**/private/**", "/x", "**/private/*"),
            ("rg -l x --glob=!/private", ".", "private"),
            ("git ls-files :!private", ".", "private"),
            ("git diff --name-only -- . :(exclude)private", ".", "private"),
        ] {
            assert_eq!(of(line, folder), [expected], "{line}");
        }
    }

    #[test]
    fn what_may_be_found_all_the_same_is_not_left_out() {
        for (line, folder) in [
            ("find . -name *.ts -o -not -path ./private/*", "."),
            ("find . -exec cat {} + -not -path ./private/*", "."),
            ("find . ! ! -path ./private/*", "."),
            ("find . ( -not -path ./private/* -o -type f )", "."),
            ("find . -not -path ./private", "."),
            ("find . -not -path ./priv*", "."),
            ("find . -not -path private/*", "."),
            ("find ./ -not -path ./private/*", "./"),
            ("find . src -not -path src/private/*", "."),
            ("find . -not -path ./src/../private/*", "."),
            ("find . -path ./private -prune -o -name *.ts", "."),
            ("find . -path ./private -prune -o -name a -print -o -print", "."),
            ("find . -depth -path ./private -prune -o -print", "."),
            ("find . -mindepth 2 -path ./private -prune -o -print", "."),
            ("find . -path ./private -type d -prune -o -print", "."),
            ("find . ! -path ./private -prune -o -print", "."),
            ("rg -l x -g !private -g *.ts", "."),
            ("rg -l x -g !private --iglob *.ts", "."),
            ("rg -l x -g !priv*", "."),
            ("rg -l x -g !private/** /workspace", "/workspace"),
            ("rg -l -e !private x", "."),
            ("git --literal-pathspecs ls-files :!private", "."),
            ("git ls-files :/!private", "."),
            ("git ls-files :!priv*", "."),
            ("git log :!private", "."),
        ] {
            assert_eq!(of(line, folder), Vec::<String>::new(), "{line}");
        }
    }
}
