//! Names that a program has found: the output of `find` and its like is names of files that are there, and no line computes them.

use super::argument::{Argument, Certainty};
use super::tables;

/// TABLE: options that a finder may not have: it prints other texts than names then, or reads names elsewhere.
const NO_NAMES: &str = "-exec -execdir -fls -fprint -fprint0 -fprintf -ls -ok -okdir -printf --colors --exec --exec-batch --format --json --label \
     --line-prefix --list-details --pretty --type-list";

/// What a pipeline finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// How many of the first commands print names of files that the first of them has found.
    pub commands: usize,
    /// Whether a name may end with a NUL, which a shell leaves out: two names would be another.
    pub has_nul: bool,
    /// Whether the first command alone prints whole names: a `find` or a `grep -rlZ` that ends names by a NUL, and begins each with a folder that
    /// is written out, so that no name is an option.
    pub are_whole: bool,
}

/// Returns what a pipeline finds. Each command is its words; `None` for what is no simple command that only prints.
#[must_use]
pub fn found(pipeline: &[Option<Vec<Argument>>]) -> Found {
    let finder = pipeline.first().and_then(Option::as_deref).and_then(texts_of_finder);
    let Some(finder) = finder.filter(|words| is_finder(words)) else { return Found::default() };
    let known = pipeline.iter().skip(1).map_while(|filter| filter.as_ref()?.iter().map(Argument::as_known).collect());
    let filters: Vec<Vec<&str>> = known.take_while(|words: &Vec<&str>| is_filter(words)).collect();
    let has_nul = std::iter::once(&finder).chain(&filters).any(|words| prints_nul(words));
    let is_literal = pipeline.first().and_then(Option::as_ref).is_some_and(|words| words.iter().all(|word| word.as_known().is_some()));
    Found { commands: 1 + filters.len(), has_nul, are_whole: is_literal && are_whole(&finder) }
}

/// Returns the texts of the words of a finder. A word that may be an option, and is not known, may have it print other texts than names. An option
/// that `ls` takes from a glob is the name of a file, and its texts are parts of such names.
fn texts_of_finder(words: &[Argument]) -> Option<Vec<&str>> {
    let is_listing = words.first().and_then(Argument::as_known) == Some("ls");
    let is_closed = |word: &&Argument| word.certainty != Certainty::Nothing || is_listing && !word.computed && !word.found;
    words.iter().map(|word| Some(word).filter(is_closed).map(|word| word.text.as_str())).collect()
}

/// Returns whether a finder or a filter may end names with a NUL.
fn prints_nul(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let letters: &[char] = match *program {
        "find" => &[],
        "fd" | "fdfind" | "rg" => &['0'],
        _ => &['z', 'Z'],
    };
    let is_bundle = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains(letters);
    arguments.iter().any(|word| matches!(*word, "-print0" | "--print0" | "--null" | "--zero" | "\\0") || is_bundle(word))
}

fn are_whole(words: &[&str]) -> bool {
    let begins = |word: &str| word.starts_with(|char: char| char.is_ascii_alphanumeric() || "./".contains(char));
    // The first operand is what is looked for.
    let plain: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with("--include=")).collect();
    if let ["grep", letters, pattern, folders @ ..] = plain.as_slice() {
        let is_listing = has_only(letters, "rRnilwEFIZ") && letters.contains('l') && letters.contains('Z');
        return is_listing
            && !pattern.starts_with('-')
            && !pattern.is_empty()
            && !folders.is_empty()
            && folders.iter().all(|word| begins(word));
    }
    let is_whole = matches!(words, ["find" | "gfind", start, ..] if begins(start));
    let starts = words.iter().skip(1).take_while(|word| !word.starts_with(['-', '(', '!']));
    is_whole && starts.copied().all(begins) && words.contains(&"-print0") && !words.iter().any(|word| matches!(*word, "-print" | "-ls"))
}

/// Returns whether `xargs` takes whole names for arguments, by its first option and no other that takes that back. Nothing else among its
/// arguments is unknown.
#[must_use]
pub fn takes_whole(arguments: &[Argument]) -> bool {
    let options = arguments.iter().take_while(|argument| argument.text.starts_with('-')).map(|argument| argument.text.as_str());
    options.enumerate().all(|(at, option)| if at == 0 { option == "-0" } else { matches!(option, "-r" | "-I{}" | "-n1") })
        && arguments.first().is_some_and(|first| first.text == "-0")
        && arguments.iter().all(|argument| argument.as_known().is_some())
}

/// Returns whether a command, whose words these are, prints names of files that it finds.
#[must_use]
pub fn is_finder(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    // Each command is asked, and most are no finders.
    let finds = match *program {
        "find" | "fd" | "fdfind" => true,
        // The long form prints more than names. `-a` and `-A` print names with a dot in front, which no glob stands for: rules of files look for
        // what a glob may find.
        "ls" => arguments.iter().all(|word| has_only(word, "1crtS") || !word.starts_with('-')),
        "rg" => tables::gives("rg", arguments, &["files", "files-with-matches", "l"]),
        // It takes the beginning of any other long option too, of which some print other texts.
        "grep" | "egrep" | "fgrep" => {
            const LONG: [&str; 4] = ["--", "--include", "--exclude", "--exclude-dir"];
            let is_known = |word: &str| !word.starts_with("--") || LONG.contains(&word.split('=').next().unwrap_or_default());
            arguments.first().is_some_and(|word| has_only(word, "rRnilwEFIsvZ") && word.contains('l'))
                && arguments.iter().all(|word| is_known(word))
        }
        "git" => match arguments.split_first() {
            Some((&"ls-files", _)) => true,
            Some((&"diff", _)) => tables::gives("git", arguments, &["name-only"]),
            // The names of files of a revision stand behind its text.
            Some((&"grep", [letters, rest @ ..])) => {
                let mut operands = rest.iter().take_while(|word| **word != "--").filter(|word| !word.starts_with('-')).skip(1);
                has_only(letters, "rnilwEFI")
                    && letters.contains('l')
                    && !operands.any(|word| word.contains(['^', '{', ':', '~', '@', ' ']))
            }
            _ => false,
        },
        _ => false,
    };
    // To `fd` these letters are options that start programs.
    let starts =
        |word: &str| program.starts_with("fd") && !word.starts_with("--") && word.starts_with('-') && word.contains(['x', 'X', 'l']);
    // `git diff` takes this folder off the names, which then are those of other files.
    let cuts = |word: &str| word.starts_with("--relative=");
    let is_other = |word: &str| tables::is_in(NO_NAMES, word.split('=').next().unwrap_or_default()) || starts(word) || cuts(word);
    finds && !arguments.iter().any(|word| is_other(word))
}

fn is_filter(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let is_count = |count: &str| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
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
        // Any other word is a file.
        "head" | "tail" => match arguments {
            [] => true,
            [count] => count.strip_prefix("-n").or(count.strip_prefix('-')).is_some_and(is_count),
            ["-n", count] => is_count(count.trim_start_matches(['-', '+'])),
            _ => false,
        },
        "sort" | "uniq" => arguments.iter().all(|word| has_only(word, "urnVfz")),
        "cat" | "tac" | "shuf" => arguments.is_empty(),
        _ => false,
    }
}

/// Returns whether a word is an option of these letters and no others.
fn has_only(word: &str, letters: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.chars().all(|letter| letters.contains(letter)))
}

/// Returns whether `grep` prints what does not match.
#[must_use]
pub fn is_inverting(argument: &Argument) -> bool {
    argument.text.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains('v'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::Walk;

    fn found_by(line: &str) -> Found {
        let list = crate::grammar::parse(line, 0).unwrap();
        Walk::new(None).found(&list[0].commands)
    }

    fn is_found(line: &str) -> bool {
        let list = crate::grammar::parse(line, 0).unwrap();
        Walk::new(None).is_found(&list)
    }

    #[test]
    fn names_are_whole_behind_a_nul() {
        let are = |line: &str| found_by(line).are_whole;
        for line in ["find . -name '*.py' -print0", "find src tests -type f -print0"] {
            assert!(are(line), "{line}");
        }
        for line in
            ["find . -name x", "find -print0", "find -H x -print0", "find . -print -print0", "find . '@x' -print0", "find . \"$x\" -print0"]
        {
            assert!(!are(line), "{line}");
        }
        let takes = |line: &str| takes_whole(&line.split(' ').map(Argument::known).collect::<Vec<_>>());
        for line in ["-0 rm", "-0 -r sed -i x", "-0 -I{} cp {} y"] {
            assert!(takes(line), "{line}");
        }
        for line in ["rm", "rm -0", "-n1 -0 rm", "-0 -d x rm", "-0 -I -d rm"] {
            assert!(!takes(line), "{line}");
        }
    }

    #[test]
    fn names_are_found_or_computed() {
        for line in [
            "find . -name x",
            "ls -t | head -1",
            "git ls-files | grep py",
            "rg -l x | sort -u",
            "grep -rl x . | xargs grep -l y",
            "git diff --name-only",
            "git diff --name-only --relative -- src",
            "ls | grep -v x | tail -n 3",
            "ls | head -5",
            "ls | tail -n +2",
            "ls src/*.py 2> /dev/null",
            "ls *.py",
            "find \"$HOME/x\" -name x",
            "git diff --name-only $(git merge-base main HEAD)",
        ] {
            assert!(is_found(line), "{line}");
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
            "ls -a",
            "ls | sort names",
            "ls | head names",
            "ls | head 5",
            "ls | tail -n 5 5",
            "ls | head -c 4",
            "ls | grep x names",
            "find . -exec cat {} +",
            "git show --name-only HEAD",
            "git diff --name-only --line-prefix=x",
            "git diff --name-only --relative=src/ -- src",
            "git diff -- --name-only x",
            "git diff -S --name-only",
            "rg -e -l x",
            "rg -e x -- -l",
            "rg -l --json x",
            "find . -name \"$x\" \"$x\"",
            "ls \"$USER\"",
            "ls src | grep src/*",
            "ls 'x .env' 2> /dev/stdout",
            "ls x 2> errors",
            "ls < x",
            "find . -print0",
            "git ls-files -z a b",
            "ls | tr '\\n' '\\0'",
        ] {
            assert!(!is_found(line), "{line}");
        }
    }
}
