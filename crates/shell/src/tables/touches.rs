//! Which arguments of programs are files: what is read, what is written, and which folders are entered.
//!
//! The tables beside this one say that a program does no more than its name says. That is still a lot where the name says `cp`: whoever lets
//! the line run has to hold the files that it touches to the rules of files. What a program finds itself, below a folder or by a list of
//! names in a file, is not among them.

use super::reading::scan;
use super::{Operands, table};
use crate::argument::Argument;
use crate::grammar::Access;

/// Something of a file that an argument names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touch {
    /// A file or folder that is read, written, or entered (which is a way to read).
    File {
        /// The argument's place.
        index: usize,
        /// Its path. It differs from the argument where it is the value of an option.
        path: String,
        /// What is done with it.
        access: Access,
    },
    /// A pattern with which the program itself looks for names of files.
    Pattern(String),
}

/// How the operands of a program are files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All are read.
    Reads,
    /// The first is a script, a pattern or an expression, unless an option gives that. The others are read.
    Searches,
    /// All are written.
    Writes,
    /// The first is a mode or an owner. The others are written.
    Changes,
    /// The last is written, the others are read. With `-t` its value is written, and all operands are read.
    Copies,
}

/// A row of the table.
struct Row {
    names: &'static str,
    kind: Kind,
    /// Options whose value is the next argument.
    valued: &'static str,
    /// Options that give what the first operand would be.
    script: &'static str,
}

const fn row(names: &'static str, kind: Kind, valued: &'static str, script: &'static str) -> Row {
    Row { names, kind, valued, script }
}

/// TABLE: programs. An option that is not here takes no next argument.
const ROWS: &[Row] = &[
    row(
        "cat tac nl rev ls tree du stat file readlink realpath wc md5sum md5 sha1sum sha224sum sha256sum sha384sum sha512sum shasum b2sum \
         cksum sum",
        Kind::Reads,
        "-I -L -P -d -t --max-depth -f -c --format --time-style",
        "",
    ),
    row("head tail", Kind::Reads, "-n -c -s --lines --bytes --pid --sleep-interval", ""),
    row("less more bat batcat zcat bzcat xzcat zstdcat gzcat lz4cat", Kind::Reads, "", ""),
    row("strings hexdump od xxd base32 base64 uuencode", Kind::Reads, "-n -t -A -j -N -s -l -w -c -g -e -v", ""),
    row(
        "sort uniq cut paste join comm column expand unexpand fmt fold pr shuf tsort numfmt iconv",
        Kind::Reads,
        "-k -t -S -d -f -b -c -s -w -n -i -o -1 -2 -a -e -l -W",
        "",
    ),
    row("diff cmp sdiff colordiff", Kind::Reads, "-U -C -I -x -X -L -W -n -i --label", ""),
    row("cd pushd", Kind::Reads, "", ""),
    row(
        "gunzip gzip bzip2 xz zstd unxz unzstd pigz unzip zipinfo tar gtar bsdtar nm size objdump readelf",
        Kind::Reads,
        "-f -C --file",
        "",
    ),
    row(
        "grep egrep fgrep ggrep zgrep zegrep zfgrep bzgrep xzgrep zstdgrep ag",
        Kind::Searches,
        "-A -B -C -m -D -d --include --exclude --exclude-dir --max-count --after-context --before-context --context --label -G",
        "-e -f --regexp --file",
    ),
    row(
        "rg",
        Kind::Searches,
        "-A -B -C -E -M -T -g -j -m -r -t -d --glob --iglob --type --type-not --max-count --sort --sortr --color --colors --max-depth \
         --threads --encoding --max-columns --replace --after-context --before-context --context",
        "-e -f --regexp --file --files --type-list",
    ),
    row("sed gsed", Kind::Searches, "-l -E", "-e -f --expression --file"),
    row("awk gawk mawk nawk original-awk", Kind::Searches, "-F -v", "-f"),
    row("jq gojq yq", Kind::Searches, "--indent", "-f --from-file"),
    row("touch mkdir rmdir rm unlink truncate shred mkfifo mknod", Kind::Writes, "-d -r -t -m -s -n --date --reference --mode --size", ""),
    row("chmod chown chgrp chattr", Kind::Changes, "", "--reference"),
    row("cp mv ln install ginstall", Kind::Copies, "-S -m -o -g --suffix --mode --owner --group", ""),
    row("split csplit", Kind::Copies, "-l -b -a -n -f --lines --bytes --suffix-length", ""),
];

/// TABLE: subcommands of `git` whose operands are written. Those of the others may be files, and are read.
const GIT_WRITES: [&str; 7] = ["mv", "rm", "restore", "checkout", "clean", "init", "apply"];

/// TABLE: options whose value is a pattern of names that the program looks for. With `--exclude` and its like it leaves them out.
const PATTERN_OPTIONS: [(&str, &[&str]); 4] =
    [("rg", &["-g", "--glob", "--iglob"]), ("grep", &["--include"]), ("ggrep", &["--include"]), ("fd", &["-e", "--extension"])];

/// TABLE: tests of `find` whose value is a pattern of names.
const FIND_PATTERNS: [&str; 10] =
    ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname", "-ilname", "-regex", "-iregex"];

/// Returns what the arguments of a program name of files.
#[must_use]
pub fn touched(program: &str, arguments: &[Argument]) -> Vec<Touch> {
    match program {
        "find" | "gfind" => return of_find(arguments),
        "git" => return of_git(arguments),
        "fd" | "fdfind" => return of_fd(arguments),
        "make" | "gmake" | "ninja" => return of_folder_option(arguments, "-C", "--directory"),
        _ => {}
    }
    let mut touched = patterns(program, arguments);
    let Some(row) = ROWS.iter().find(|row| row.names.split_ascii_whitespace().any(|name| name == program)) else { return touched };
    let mut operands = operands(program, arguments, row);
    let mut access: Vec<Access> = match row.kind {
        Kind::Reads => vec![Access::Read; operands.len()],
        Kind::Searches | Kind::Changes => {
            let is_given = |argument: &Argument| has_option(row.script, &argument.text);
            if !arguments.iter().any(is_given) && !operands.is_empty() {
                operands.remove(0);
            }
            vec![if row.kind == Kind::Changes || is_in_place(program, arguments) { Access::Write } else { Access::Read }; operands.len()]
        }
        Kind::Writes => vec![Access::Write; operands.len()],
        Kind::Copies => copied(program, operands.len()),
    };
    if row.kind == Kind::Copies
        && let Some((index, path)) = target(arguments)
    {
        operands.retain(|at| *at != index);
        access = vec![if program == "mv" { Access::Write } else { Access::Read }; operands.len()];
        touched.push(Touch::File { index, path, access: Access::Write });
    }
    touched.extend(operands.into_iter().zip(access).filter_map(|(index, access)| {
        let path = arguments.get(index)?.text.clone();
        Some(Touch::File { index, path, access })
    }));
    touched
}

/// What `cp` and its like do with so many operands: the last is written, and a single one is linked to from the working folder.
fn copied(program: &str, count: usize) -> Vec<Access> {
    let others = if program == "mv" { Access::Write } else { Access::Read };
    (0..count).map(|at| if at + 1 == count { Access::Write } else { others }).collect()
}

/// Returns the folder that `-t` names, and the place of the argument that ends it.
fn target(arguments: &[Argument]) -> Option<(usize, String)> {
    arguments.iter().enumerate().find_map(|(index, argument)| {
        let text = argument.text.as_str();
        if let Some(value) = text.strip_prefix("--target-directory=") {
            return Some((index, value.to_owned()));
        }
        let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        let (_, value) = letters.split_once('t')?;
        match value.is_empty() {
            true => arguments.get(index + 1).map(|next| (index + 1, next.text.clone())),
            false => Some((index, value.to_owned())),
        }
    })
}

/// Returns whether `sed` writes the files that it reads.
fn is_in_place(program: &str, arguments: &[Argument]) -> bool {
    let is_option = |text: &str| text.starts_with("--in-place") || !text.starts_with("--") && text.starts_with('-') && text.contains('i');
    program.ends_with("sed") && arguments.iter().any(|argument| is_option(&argument.text))
}

fn has_option(names: &str, text: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default();
    names.split_ascii_whitespace().any(|known| match known.starts_with("--") {
        true => known == name,
        // A letter may stand in a bundle, and have its value attached.
        false => text.starts_with('-') && !text.starts_with("--") && known.chars().nth(1).is_some_and(|letter| text.contains(letter)),
    })
}

/// Returns the places of the operands: by the program's table, or by what is known of its options here.
fn operands(program: &str, arguments: &[Argument], row: &Row) -> Vec<usize> {
    let by_table = table(match program {
        "grep" | "egrep" | "fgrep" => "ggrep",
        program => program,
    });
    if let Some(compiled) =
        by_table.filter(|compiled| compiled.subcommands.is_empty() && !matches!(compiled.program.operands, Operands::Own(_)))
        && let Ok(scan) = scan(arguments, &compiled.options, compiled.program.style)
    {
        return scan.operands;
    }
    let mut places = Vec::new();
    let (mut is_value, mut has_ended) = (false, false);
    for (index, argument) in arguments.iter().enumerate() {
        let text = argument.text.as_str();
        if is_value {
            is_value = false;
        } else if has_ended || argument.is_operand() || !text.starts_with('-') {
            places.push(index);
        } else if text == "--" {
            has_ended = true;
        } else {
            // The last letter of a bundle may take the next argument.
            let last = text.chars().next_back().map(|letter| format!("-{letter}"));
            let names = row.valued.split_ascii_whitespace().chain(row.script.split_ascii_whitespace());
            is_value = names.into_iter().any(|name| name == text || !text.starts_with("--") && Some(name) == last.as_deref());
        }
    }
    places
}

fn patterns(program: &str, arguments: &[Argument]) -> Vec<Touch> {
    let Some((_, names)) = PATTERN_OPTIONS.iter().find(|(name, _)| *name == program) else { return Vec::new() };
    let mut found = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let text = argument.text.as_str();
        for name in *names {
            let value = match text.strip_prefix(name) {
                Some("") => arguments.get(index + 1).map(|next| next.text.as_str()),
                Some(rest) => Some(rest.strip_prefix('=').unwrap_or(rest)),
                None => None,
            };
            // A pattern behind `!` leaves out.
            found.extend(value.filter(|value| !value.starts_with('!')).map(|value| Touch::Pattern(value.to_owned())));
        }
    }
    found
}

/// What `find` enters, and what it looks for. What stands behind `-not` or `!`, or in front of `-prune`, is left out.
fn of_find(arguments: &[Argument]) -> Vec<Touch> {
    let starts = arguments.iter().enumerate().skip_while(|(_, argument)| argument.text.starts_with('-'));
    let starts = starts.take_while(|(_, argument)| !argument.text.starts_with(['-', '(', '!', ')']));
    let mut touched: Vec<Touch> =
        starts.map(|(index, argument)| Touch::File { index, path: argument.text.clone(), access: Access::Read }).collect();
    let text = |at: usize| arguments.get(at).map_or("", |argument| argument.text.as_str());
    for (index, argument) in arguments.iter().enumerate().filter(|(_, argument)| FIND_PATTERNS.contains(&argument.text.as_str())) {
        let is_left_out = index > 0 && matches!(text(index - 1), "!" | "-not") || text(index + 2) == "-prune";
        if !is_left_out {
            let value = text(index + 1);
            touched.push(Touch::Pattern(if argument.text.ends_with("regex") { glob_of_regex(value) } else { value.to_owned() }));
        }
    }
    touched
}

/// What `fd` enters and looks for: a regular expression, or a glob with `-g`.
fn of_fd(arguments: &[Argument]) -> Vec<Touch> {
    let mut touched = patterns("fd", arguments);
    let Some(compiled) = table("fd") else { return touched };
    let Ok(scan) = scan(arguments, &compiled.options, compiled.program.style) else { return touched };
    for (at, index) in scan.operands.iter().enumerate() {
        let Some(argument) = arguments.get(*index) else { continue };
        touched.push(match at {
            0 if scan.has(&["g", "glob", "F", "fixed-strings"]) => Touch::Pattern(argument.text.clone()),
            0 => Touch::Pattern(glob_of_regex(&argument.text)),
            _ => Touch::File { index: *index, path: argument.text.clone(), access: Access::Read },
        });
    }
    touched
}

/// What `git` touches: the folders of `-C`, and operands that may be files or patterns of them.
fn of_git(arguments: &[Argument]) -> Vec<Touch> {
    let mut touched = Vec::new();
    let mut at = 0;
    while let Some(argument) = arguments.get(at).filter(|argument| argument.text.starts_with('-')) {
        if argument.text == "-C"
            && let Some(folder) = arguments.get(at + 1)
        {
            touched.push(Touch::File { index: at + 1, path: folder.text.clone(), access: Access::Read });
        }
        at += if matches!(argument.text.as_str(), "-C" | "-c") { 2 } else { 1 };
    }
    let subcommand = arguments.get(at).map_or("", |argument| argument.text.as_str());
    let access = if GIT_WRITES.contains(&subcommand) { Access::Write } else { Access::Read };
    let behind = arguments.iter().enumerate().skip(at + 1);
    let ends = behind.clone().find(|(_, argument)| argument.text == "--").map(|(index, _)| index);
    // The first operand of `git grep` is what it looks for, unless an option gives that.
    let is_given = behind.clone().any(|(_, argument)| has_option("-e -f", &argument.text));
    let mut is_pattern = subcommand == "grep" && !is_given;
    for (index, argument) in behind {
        let is_operand = ends.is_some_and(|end| index > end) || argument.is_operand() && !argument.text.starts_with('-');
        if !is_operand || std::mem::take(&mut is_pattern) {
            continue;
        }
        let text = argument.text.as_str();
        touched.push(Touch::File { index, path: text.to_owned(), access });
        if text.contains(['*', '?', '[']) {
            touched.push(Touch::Pattern(text.to_owned()));
        }
    }
    touched
}

/// What a builder enters by an option.
fn of_folder_option(arguments: &[Argument], short: &str, long: &str) -> Vec<Touch> {
    let mut touched = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let text = argument.text.as_str();
        let path = match text.strip_prefix(long).or_else(|| text.strip_prefix(short)) {
            Some("") => arguments.get(index + 1).map(|next| next.text.clone()),
            Some(rest) => Some(rest.strip_prefix('=').unwrap_or(rest).to_owned()),
            None => None,
        };
        touched.extend(path.map(|path| Touch::File { index, path, access: Access::Read }));
    }
    touched
}

/// Returns a glob that finds at least what a regular expression does, as far as its letters tell.
fn glob_of_regex(regex: &str) -> String {
    let mut glob = String::with_capacity(regex.len());
    let mut characters = regex.trim_start_matches('^').trim_end_matches('$').chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => glob.extend(characters.next()),
            '.' | ']' | ')' if matches!(characters.peek(), Some('*' | '+' | '?' | '{')) => {
                characters.next();
                glob.push('*');
            }
            '.' => glob.push('?'),
            '(' | ')' | '|' | '+' | '{' | '}' => glob.push('*'),
            _ => glob.push(character),
        }
    }
    glob
}
