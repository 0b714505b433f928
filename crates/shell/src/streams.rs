//! Command → where its input comes from, and how much it writes.

use super::argument::Argument;
use super::grammar::{Access, Command, Kind, List, Redirect, Simple, Word, is_loop_name};

/// Returns whether a command reads from a file or a here-document.
pub(super) fn reads_elsewhere(command: &Command) -> bool {
    command.redirects.iter().any(is_input)
}

/// Returns whether the commands behind a command may read the input that it names: `exec` without a command takes the input for the shell itself.
/// A word with a variable may be any.
pub(super) fn feeds_others(simple: &Simple, redirects: &[Redirect]) -> bool {
    let is_one_of = |word: Option<&Word>, words: &[&str]| word.is_some_and(|word| word.as_text().is_none_or(|word| words.contains(&word)));
    let is_exec = is_one_of(simple.words.first(), &["builtin", "command", "exec"]) && is_one_of(simple.words.last(), &["exec", "--"]);
    is_exec && redirects.iter().any(is_input)
}

/// Returns whether a redirection says where an input comes from.
pub(super) fn is_input(redirect: &Redirect) -> bool {
    !matches!(redirect, Redirect::File { access: Access::Write, .. } | Redirect::Joined)
}

/// Returns the place in a pipeline from which on all commands only print what they read, or a part of it, and take none of it for a name.
pub(super) fn first_printing(pipeline: &[Command]) -> usize {
    const PRINTERS: [&str; 11] = ["cat", "column", "cut", "grep", "head", "less", "nl", "sort", "tail", "uniq", "wc"];
    let is_printer = |command: &Command| match &command.kind {
        Kind::Simple(simple) => simple.words.first().and_then(Word::as_text).is_some_and(|program| PRINTERS.contains(&program)),
        _ => false,
    };
    pipeline.iter().rposition(|command| !is_printer(command)).map_or(0, |place| place + 1)
}

/// Returns whether a command may print names of files that it finds.
pub(super) fn may_find(command: &Command) -> bool {
    const FINDERS: [&str; 9] = ["egrep", "fd", "fdfind", "fgrep", "find", "git", "grep", "ls", "rg"];
    let Kind::Simple(simple) = &command.kind else { return false };
    simple.words.first().and_then(Word::as_text).is_some_and(|program| FINDERS.contains(&program))
}

/// Returns whether a program only reads the files that it is given, so that one of them may be the output of commands. What reads scripts, names or
/// settings from files does not.
pub(super) fn takes_processes(program: &str) -> bool {
    matches!(program, "cat" | "cmp" | "comm" | "diff" | "head" | "join" | "paste" | "sort" | "tail" | "uniq" | "wc")
}

/// Returns the variables of a condition that is nothing but `read -r NAME…`, perhaps with `IFS=` in front, and whether what is read stays whole:
/// several variables, and another separator, take a name apart where the line wants.
pub(super) fn reader(condition: &List) -> Option<(Vec<&str>, bool)> {
    let [pipeline] = condition.as_slice() else { return None };
    let [Command { kind: Kind::Simple(simple), redirects }] = pipeline.commands.as_slice() else { return None };
    let is_plain = simple.assignments.iter().all(|(name, value)| name == "IFS" && value.as_text().is_some());
    let is_unparted = simple.assignments.iter().all(|(_, value)| value.as_text() == Some(""));
    let words: Option<Vec<&str>> = simple.words.iter().map(Word::as_text).collect();
    match words?.as_slice() {
        // Shells that do not know `-d` end the loop.
        ["read", "-r", "-d", "", names @ ..] | ["read", "-r", names @ ..] | ["read", names @ ..]
            if is_plain && redirects.is_empty() && !names.is_empty() =>
        {
            names.iter().all(|name| is_loop_name(name)).then(|| (names.to_vec(), is_unparted && names.len() == 1))
        }
        _ => None,
    }
}

/// Returns the text that a command reads, if that is a here-document and nothing else.
pub(super) fn document(redirects: &[Redirect]) -> Option<&str> {
    let mut inputs = redirects.iter().filter(|redirect| is_input(redirect));
    match (inputs.next()?, inputs.next()) {
        (Redirect::Document(text), None) => Some(text),
        _ => None,
    }
}

/// Returns whether a condition that [`reader`] knows reads up to a NUL.
pub(super) fn reads_nul(condition: &List) -> bool {
    let words = condition.iter().flat_map(|pipeline| &pipeline.commands).filter_map(|command| match &command.kind {
        Kind::Simple(simple) => simple.words.get(2)?.as_text(),
        _ => None,
    });
    words.into_iter().eq(["-d"])
}

/// Returns how many bytes a command writes at most, if that is known: `echo` of literals, `printf` of literals and of a format that has no
/// directive but `%s`, and `cat` and `tee` of what they read, and a patch. `read` is how many bytes that is, if it is known.
pub(super) fn output_bytes(words: &[Argument], read: Option<usize>) -> Option<usize> {
    let (program, arguments) = words.split_first()?;
    match program.as_known()? {
        "printf" => {
            let (format, values) = arguments.split_first()?;
            let format = format.as_known().filter(|format| format.split('%').skip(1).all(|behind| behind.starts_with('s')))?;
            let bytes = values.iter().map(|value| Some(value.as_known()?.len())).sum::<Option<usize>>()?;
            // The format is read again until no value is left.
            Some(bytes + format.len() * values.len().max(1))
        }
        "apply_patch" => arguments.first()?.as_known().map(str::len),
        "tee" => read,
        "echo" => arguments.iter().map(|argument| Some(argument.as_known()?.len() + 1)).sum::<Option<usize>>().map(|bytes| bytes.max(1)),
        "cat" if arguments.is_empty() => read,
        _ => None,
    }
}
