//! Which arguments of programs are texts, and never names of files; and where names of files come from a program's input.

use super::git_files::is_no_file;
use super::is_in;
use super::reading::{Scan, scan_subcommand};
use super::touches::{scan_of, searches};
use super::values::is_remote;
use crate::argument::{Argument, text_at};

/// TABLE: options whose value is a text to programs that search: what is searched for, scripts, variables.
const SEARCHED: [&str; 7] = ["e", "regexp", "expression", "r", "replace", "F", "v"];

/// TABLE: subcommands of `git` with the options whose value is a text: messages, what is searched for, formats.
const OF_GIT: &[(&str, &[&str])] = &[
    ("commit merge stash tag", &["m", "message"]),
    ("grep", &["e"]),
    ("checkout", &["b", "B"]),
    ("switch", &["c", "create"]),
    ("diff log show", &["S", "G", "author", "format", "grep", "pretty"]),
];

/// TABLE: options that stand in the place of the first operand.
const SCRIPTS: [&str; 8] = ["e", "f", "regexp", "file", "expression", "from-file", "files", "type-list"];

/// Returns the places of the arguments that are texts to a program in all its versions, and of files of which it only asks whether they are there.
#[must_use]
pub fn texts(program: &str, arguments: &[Argument]) -> Vec<usize> {
    // Of several words the first is what is searched for, and the others are files.
    let is_one = |at: &&usize| arguments.get(**at).is_some_and(|argument| !argument.many);
    match program {
        // Tests tell no more of a file than whether it is there.
        "echo" | "printf" | "test" | "[" | "[[" => (0..arguments.len()).collect(),
        "git" => scan_subcommand(program, arguments).map_or_else(Vec::new, |scan| {
            let subcommand = subcommand_of_git(arguments);
            let row = OF_GIT.iter().find(|(names, _)| is_in(names, subcommand));
            let pattern = scan.operands.first().filter(is_one).filter(|_| subcommand == "grep" && !scan.has(&["e", "f"]));
            let end = arguments.iter().position(|argument| argument.text == "--").unwrap_or(arguments.len());
            // A range of revisions, and what is pushed to a remote, is no file.
            let is_reference = |at: &&usize| {
                let argument = arguments.get(**at);
                argument.is_some_and(|argument| argument.text.contains("..") && is_no_file(argument, **at > end, subcommand, Some(&scan)))
            };
            let is_remote = scan.operands.first().and_then(|at| arguments.get(*at)).is_some_and(is_remote);
            let pushed = scan.operands.iter().skip(1).filter(|_| subcommand == "push" && is_remote);
            let references = scan.operands.iter().filter(is_reference).chain(pushed);
            let names = scan.operands.iter().filter(|_| subcommand == "check-ignore").chain(pattern).chain(references).copied();
            row.map_or_else(Vec::new, |(_, names)| values(&scan, names)).into_iter().chain(names).collect()
        }),
        "kubectl" => scan_subcommand(program, arguments).map_or_else(Vec::new, |scan| {
            let given = scan.given.iter().zip(&scan.places).filter(|((name, _), _)| matches!(*name, "n" | "namespace"));
            given.map(|(_, place)| *place).collect()
        }),
        "pytest" | "py.test" => scan_of(program, arguments).map_or_else(Vec::new, |scan| values(&scan, &["k", "m"])),
        _ if searches(program) => scan_of(program, arguments).map_or_else(Vec::new, |scan| {
            let script = scan.operands.first().filter(is_one).filter(|_| !gives_script(program, &scan));
            values(&scan, &SEARCHED).into_iter().chain(script.copied()).collect()
        }),
        _ => Vec::new(),
    }
}

/// Returns whether an option stands in the place of the first operand. To `jq` `-e` is another one.
pub(super) fn gives_script(program: &str, scan: &Scan) -> bool {
    !matches!(program, "jq" | "gojq") && scan.has(&SCRIPTS)
}

/// Returns whether the words behind a program's name give it one of these options, as its table reads them: no value, and nothing behind `--`.
#[must_use]
pub fn gives(program: &str, words: &[&str], names: &[&str]) -> bool {
    let arguments: Vec<Argument> = words.iter().map(|word| Argument::known(*word)).collect();
    let scan = if program == "git" { scan_subcommand(program, &arguments) } else { scan_of(program, &arguments) };
    scan.is_some_and(|scan| scan.has(names))
}

/// Returns the places of the values of some options. Behind the first operand some versions know no options, and open their values.
fn values(scan: &Scan, names: &[&str]) -> Vec<usize> {
    let first = scan.operands.first().copied().unwrap_or(usize::MAX);
    let given = scan.given.iter().zip(&scan.places).filter(|((name, value), _)| names.contains(name) && value.is_some());
    given.map(|(_, place)| *place).filter(|place| *place < first).collect()
}

/// Returns the place of the subcommand of `git`.
#[must_use]
pub fn git_subcommand(arguments: &[Argument]) -> usize {
    let mut at = 0;
    while let Some(argument) = arguments.get(at).filter(|argument| argument.text.starts_with('-')) {
        at += if matches!(argument.text.as_str(), "-C" | "-c") { 2 } else { 1 };
    }
    at
}

/// Returns the subcommand of `git`; an empty text where there is none.
pub(super) fn subcommand_of_git(arguments: &[Argument]) -> &str {
    text_at(arguments, git_subcommand(arguments))
}

/// Returns the place of an option by which a program reads names of files, or of what a repository holds, from a list; with whether the list is
/// the program's input.
#[must_use]
pub fn reads_names(program: &str, arguments: &[Argument]) -> Option<(usize, bool)> {
    const LISTS: [&str; 2] = ["--files0-from", "--pathspec-from-file"];
    const BATCHES: [&str; 4] = ["--batch", "--batch-check", "--batch-command", "--stdin-paths"];
    let is_lister = ["git", "wc", "du", "sort", "gwc", "gdu", "gsort"].contains(&program);
    arguments.iter().enumerate().find_map(|(at, argument)| {
        let text = argument.text.as_str();
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let value = value.unwrap_or_else(|| text_at(arguments, at + 1));
        // Some programs know options by their beginnings.
        let is_list = is_lister && name.len() > "--fi".len() && LISTS.iter().any(|list| list.starts_with(name));
        let is_batch = program == "git" && BATCHES.contains(&name);
        (is_batch || is_list).then_some((at, is_batch || matches!(value, "-" | "/dev/stdin")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<usize> {
        let words: Vec<&str> = line.split(' ').collect();
        let arguments: Vec<Argument> = words.iter().skip(1).map(|word| Argument::known(*word)).collect();
        texts(words[0], &arguments)
    }

    #[test]
    fn texts_are_told_from_files() {
        for (line, places) in [
            ("echo .env", vec![0]),
            ("grep .env a", vec![0]),
            ("grep -n .env .env", vec![1]),
            ("grep -e .env .env", vec![1]),
            ("grep a -e .env", vec![]),
            ("grep -f .env x", vec![]),
            ("grep x -f .env", vec![]),
            ("rg -g .env x", vec![2]),
            ("rg --files .env", vec![]),
            ("sed -n /.env/p a", vec![1]),
            ("awk -F : .env a", vec![1, 2]),
            ("jq .env .env", vec![0]),
            ("jq -e .env .env", vec![1]),
            ("jq --arg a .env .env .env", vec![3]),
            ("yq .env", vec![]),
            ("git commit -m .env .env", vec![2]),
            ("git commit .env -m .env", vec![]),
            ("git blame -S .env .env", vec![]),
            ("git -C a grep .env .env", vec![3]),
            ("git grep a -e .env", vec![]),
            ("git log --grep=.env .env", vec![1]),
            ("git check-ignore -v .env", vec![2]),
            ("cat .env", vec![]),
            ("grep --unknown .env .env", vec![]),
        ] {
            let mut found = found(line);
            found.sort_unstable();
            assert_eq!(found, places, "{line}");
        }
    }

    #[test]
    fn lists_of_names_are_found() {
        let reads = |line: &str| {
            let arguments: Vec<Argument> = line.split(' ').skip(1).map(Argument::known).collect();
            reads_names(line.split(' ').next().unwrap(), &arguments).map(|(_, is_input)| is_input)
        };
        for line in ["git cat-file --batch", "git cat-file --batch=%(rest)", "git add --pathspec-from-file=-", "wc --files0 -"] {
            assert_eq!(reads(line), Some(true), "{line}");
        }
        for line in ["git add --pathspec-from-file=list", "wc --files0-from=list"] {
            assert_eq!(reads(line), Some(false), "{line}");
        }
        for line in ["git cat-file -p x", "grep -f - x", "wc - --"] {
            assert_eq!(reads(line), None, "{line}");
        }
    }
}
