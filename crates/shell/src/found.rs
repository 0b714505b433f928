//! Names that a program has found: the output of `find` and its like is names of files that are there, and no line computes them.

use super::grammar::{Command, Kind, List, Redirect, Simple, Word};

/// TABLE: programs that print names of files, where no option of theirs says otherwise.
const FINDERS: [&str; 4] = ["fd", "fdfind", "find", "ls"];

/// TABLE: programs that print some of the lines that they read, or all in another order.
const FILTERS: [&str; 10] = ["cat", "egrep", "fgrep", "grep", "head", "shuf", "sort", "tac", "tail", "uniq"];

/// Returns whether a list is a pipeline that prints names of files that a program has found.
#[must_use]
pub fn is_found(list: &List) -> bool {
    matches!(list.as_slice(), [pipeline] if are_found(pipeline))
}

/// Returns whether the output of these commands, which are a pipeline, is names of files that the first of them has found.
#[must_use]
pub fn are_found(pipeline: &[Command]) -> bool {
    let Some((finder, filters)) = pipeline.split_first() else { return false };
    words(finder).is_some_and(|words| is_finder(&words))
        && filters.iter().all(|filter| words(filter).is_some_and(|words| is_filter(&words)))
}

/// Returns the words of a simple command that reads no file by a redirection. What is not literal is an empty text.
fn words(command: &Command) -> Option<Vec<&str>> {
    let Command { kind: Kind::Simple(Simple { words, .. }), redirects } = command else { return None };
    let is_read = redirects.iter().any(|redirect| !matches!(redirect, Redirect::File { access: super::grammar::Access::Write, .. }));
    (!is_read).then(|| words.iter().map(|word| Word::as_text(word).unwrap_or_default()).collect())
}

fn is_finder(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    // A format is a text of the line's own.
    if arguments.iter().any(|word| word.contains("printf") || word.starts_with("--format") || word.starts_with("--pretty")) {
        return false;
    }
    let has = |names: &[&str]| arguments.iter().any(|word| names.contains(word));
    match *program {
        "rg" => has(&["--files", "--files-with-matches", "--files-without-match"]) || has_letter(arguments, 'l'),
        "grep" | "egrep" | "fgrep" => has(&["--files-with-matches", "--files-without-match"]) || has_letter(arguments, 'l'),
        "git" => match arguments.first() {
            Some(&"ls-files") => true,
            Some(&"diff" | &"show" | &"diff-tree") => has(&["--name-only"]),
            Some(&"grep") => has_letter(arguments, 'l') || has(&["--name-only", "--files-with-matches"]),
            _ => false,
        },
        program => FINDERS.contains(&program),
    }
}

fn is_filter(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    match *program {
        "tr" => matches!(arguments, [from, to] if *from == "\\n" && *to == "\\0"),
        "xargs" => is_finder(arguments.iter().skip_while(|word| word.starts_with('-')).copied().collect::<Vec<_>>().as_slice()),
        // A part of a name is no name.
        "grep" | "egrep" | "fgrep" => !has_letter(arguments, 'o') && !arguments.contains(&"--only-matching"),
        "cat" => arguments.is_empty(),
        program => FILTERS.contains(&program),
    }
}

/// Returns whether a letter stands among the letters of options.
fn has_letter(arguments: &[&str], letter: char) -> bool {
    arguments.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::parse;

    #[test]
    fn names_are_found_or_computed() {
        for line in [
            "find . -name x",
            "ls -t | head -1",
            "git ls-files | grep py",
            "rg -l x | sort -u",
            "grep -rl x . | xargs grep -l y",
            "git diff --name-only",
        ] {
            assert!(is_found(&parse(line, 0).unwrap()), "{line}");
        }
        for line in [
            "printf x",
            "echo .env",
            "find . -printf x",
            "ls | tr a b",
            "cat names",
            "ls | sed s/a/b/",
            "grep x f",
            "ls | grep -o x",
            "git log",
            "cat < x",
        ] {
            assert!(!is_found(&parse(line, 0).unwrap()), "{line}");
        }
    }
}
