//! Names that a program has found: the output of `find` and its like is names of files that are there, and no line computes them.

use super::grammar::{Command, Kind, List, Redirect, Simple, Word};

/// TABLE: what a finder may not have among its words: it prints other texts than names then, or reads names elsewhere.
const NO_NAMES: [&str; 9] = ["exec", "-ok", "printf", "--format", "--pretty", "--line-prefix", "--label", "style", "--type"];

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
    if arguments.iter().any(|word| NO_NAMES.iter().any(|other| word.contains(other))) {
        return false;
    }
    let has = |names: &[&str]| arguments.iter().any(|word| names.contains(word));
    match *program {
        "find" | "fd" | "fdfind" => true,
        // The long form prints more than names.
        "ls" => arguments.iter().all(|word| has_only(word, "1acrtAS") || !word.starts_with('-')),
        "rg" => has(&["--files", "--files-with-matches", "-l"]),
        "grep" | "egrep" | "fgrep" => arguments.first().is_some_and(|word| has_only(word, "rRnilwEFIsv") && word.contains('l')),
        "git" => match arguments.split_first() {
            Some((&"ls-files", _)) => true,
            Some((&"diff", rest)) => rest.contains(&"--name-only"),
            Some((&"grep", rest)) => rest.first().is_some_and(|word| has_only(word, "rnilwEFI") && word.contains('l')),
            _ => false,
        },
        _ => false,
    }
}

fn is_filter(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let is_number = |word: &&str| !word.is_empty() && word.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    match *program {
        "tr" => matches!(arguments, [from, to] if *from == "\\n" && *to == "\\0"),
        "xargs" => {
            let rest = arguments.iter().skip_while(|word| matches!(**word, "-0" | "-r")).copied().collect::<Vec<_>>();
            rest.first().is_some_and(|program| program.ends_with("grep")) && is_finder(&rest)
        }
        // One pattern and no file. A part of a name is no name.
        "grep" | "egrep" | "fgrep" => {
            let (options, operands): (Vec<&str>, Vec<&str>) = arguments.iter().partition(|word| word.starts_with('-'));
            operands.len() == 1 && options.iter().all(|word| has_only(word, "viEFwx"))
        }
        "head" | "tail" => arguments.iter().all(|word| *word == "-n" || is_number(word)),
        "sort" | "uniq" => arguments.iter().all(|word| has_only(word, "urnVfz")),
        "cat" | "tac" | "shuf" => arguments.is_empty(),
        _ => false,
    }
}

/// Returns whether a word is an option of these letters and no others.
fn has_only(word: &str, letters: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.chars().all(|letter| letters.contains(letter)))
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
            "ls | grep -v x | tail -n 3",
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
            "ls -l",
            "ls | sort names",
            "ls | head names",
            "ls | head -c 4",
            "ls | grep x names",
            "find . -exec cat {} +",
            "git show --name-only HEAD",
            "git diff --name-only --line-prefix=x",
        ] {
            assert!(!is_found(&parse(line, 0).unwrap()), "{line}");
        }
    }
}
