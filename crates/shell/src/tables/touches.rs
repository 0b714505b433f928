//! Which arguments of programs are files: what is read, what is written, and which folders are entered.
//!
//! The tables beside this one say that a program does no more than its name says. That is still a lot where the name says `cp`: whoever lets
//! the line run has to hold the files that it touches to the rules of files. What a program finds itself, below a folder or by a list of
//! names in a file, is not among them.
//!
//! Where a word may be a file or the value of an option, it counts as a file.

use super::archives::{completed, named_by_zip, of_compression, of_unzip};
use super::formatters::{is_formatter, of_formatter, of_tool};
use super::git_files::{is_pattern, of_git};
use super::linked::{built_by_go, hidden_targets, is_symbolic, met, of_archive, of_folder_option, parts, placed, seen_from_link};
use super::looking::{of_fd, of_find};
use super::patterns::{braces, crossing};
use super::reading::{Scan, scan};
use super::sed::{add_kept, writes_in_place};
use super::texts::{gives_script, subcommand_of_git};
use super::trees::has;
use super::words::{of_values, of_words};
use super::{Operands, Options, Style, is_in, is_known, table};
use crate::argument::{Argument, text_at};
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

impl Touch {
    /// Returns a file that is read.
    pub(super) fn read(index: usize, path: impl Into<String>) -> Self {
        Self::File { index, path: path.into(), access: Access::Read }
    }

    /// Returns a file that is written.
    pub(super) fn write(index: usize, path: impl Into<String>) -> Self {
        Self::File { index, path: path.into(), access: Access::Write }
    }
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
    /// The first is a mode or an owner, if it looks like one. The others are written.
    Changes,
    /// The last is written, the others are read. With `-t` its value is written, and all operands are read.
    Copies,
    /// The first is written, the others are read.
    Packs,
    /// The first is read, the others are written.
    Filters,
}

/// TABLE: programs, by how their operands are files.
const ROWS: &[(&str, Kind)] = &[
    (
        "cat tac nl rev ls tree du df stat file readlink realpath wc md5sum md5 sha1sum sha224sum sha256sum sha384sum sha512sum shasum b2sum \
         cksum sum head tail less more bat batcat zcat bzcat xzcat zstdcat gzcat lz4cat strings hexdump od base32 base64 basenc sort gsort cut \
         paste join comm column expand unexpand fmt fold pr shuf tsort iconv diff gdiff cmp sdiff cd pushd gunzip gzip bzip2 xz zstd unxz unzstd \
         pigz unzip zipinfo tar gtar bsdtar nm size openssl gpg gpg2 yq",
        Kind::Reads,
    ),
    (
        "grep egrep fgrep ggrep zgrep zegrep zfgrep bzgrep xzgrep zstdgrep ag rg sed gsed awk gawk mawk nawk original-awk jq gojq",
        Kind::Searches,
    ),
    ("touch mkdir rmdir rm unlink truncate shred mkfifo mknod", Kind::Writes),
    ("chmod chown chgrp chattr", Kind::Changes),
    ("cp mv ln install ginstall split csplit", Kind::Copies),
    ("zip", Kind::Packs),
    ("uniq guniq xxd", Kind::Filters),
];

/// TABLE: long options whose value is a file that is read, whatever the program.
const FILE_OPTIONS: &str = "--arg-file --contents --exclude-from --exclude-per-directory --file --filename --files0-from --format-file \
     --from-file --ignore-revs-file --in --pathspec-from-file --reference --sysroot --template --values --kubeconfig";

/// TABLE: long options whose value is a file that is written, whatever the program.
const OUTPUT_OPTIONS: &str = "--out --output-file";

/// TABLE: options of one letter whose value is a file that is read, by program.
const FILE_LETTERS: [(&str, &str); 12] = [
    ("grep egrep fgrep ggrep rg", "f"),
    ("xargs gxargs", "a"),
    ("du diff gdiff", "X"),
    ("hexdump", "f"),
    ("date gdate", "r"),
    ("touch", "r"),
    ("kubectl", "f"),
    ("helm", "f"),
    ("tar gtar bsdtar", "fTX"),
    ("awk gawk mawk nawk original-awk", "f"),
    ("sed gsed", "f"),
    ("jq gojq", "f"),
];

/// TABLE: options of which each value is a pattern of names that the program looks for.
const PATTERN_OPTIONS: [&str; 6] = ["g", "glob", "iglob", "include", "type-add", "i"];

/// Returns what the arguments of a program name of files. `is_listed` says whether the program's table has all of them.
#[must_use]
pub fn touched(program: &str, arguments: &[Argument], is_listed: bool) -> Vec<Touch> {
    let mut touched = files_of_options(program, arguments);
    touched.extend(of_words(program, arguments, is_listed));
    match program {
        "find" | "gfind" => touched.extend(of_find(arguments)),
        "git" => touched.extend(of_git(arguments)),
        "fd" | "fdfind" => touched.extend(of_fd(arguments)),
        "go" => touched.extend(built_by_go(arguments)),
        "make" | "gmake" | "ninja" => touched.extend(of_folder_option(arguments)),
        "helm" if arguments.iter().any(|argument| matches!(argument.text.as_str(), "lint" | "template")) => {
            touched.extend(all_words(arguments, Access::Read))
        }
        _ if is_formatter(program) => touched.extend(of_formatter(program, arguments)),
        "npx" | "bunx" => touched.extend(of_tool(arguments, 1)),
        _ if program.starts_with("python") && arguments.first().is_some_and(|first| first.text == "-m") => {
            touched.extend(of_tool(arguments, 2));
        }
        _ => touched.extend(of_row(program, arguments)),
    }
    touched.extend(of_values(program, arguments));
    touched.extend(completed(program, arguments, &touched));
    touched
}

pub(super) fn file(arguments: &[Argument], index: usize, access: Access) -> Option<Touch> {
    let path = arguments.get(index)?.text.clone();
    Some(Touch::File { index, path, access })
}

/// Every word that is no option, as a file.
pub(super) fn all_words(arguments: &[Argument], access: Access) -> Vec<Touch> {
    words(arguments).into_iter().filter_map(|index| file(arguments, index, access)).collect()
}

/// Returns the places of the words that are no options, or stand behind `--`.
pub(super) fn words(arguments: &[Argument]) -> Vec<usize> {
    let end = arguments.iter().position(|argument| argument.text == "--").unwrap_or(arguments.len());
    let is_word =
        |(index, argument): &(usize, &Argument)| *index > end || *index < end && !argument.text.starts_with('-') || argument.text == "-";
    arguments.iter().enumerate().filter(is_word).map(|(index, _)| index).collect()
}

/// What a program of the table does with its operands.
fn of_row(program: &str, arguments: &[Argument]) -> Vec<Touch> {
    let Some((_, kind)) = ROWS.iter().find(|(names, _)| is_in(names, program)) else { return Vec::new() };
    let scanned = scan_of(program, arguments);
    let mut touched: Vec<Touch> = scanned.iter().flat_map(patterns).collect();
    touched.extend(own_patterns(program, arguments));
    let mut operands = operands_of(scanned.as_ref(), arguments);
    let last = operands.len().saturating_sub(1);
    let others = if program == "mv" { Access::Write } else { Access::Read };
    let before = |first: Option<&usize>| arguments.get(..first.copied().unwrap_or_default()).unwrap_or_default();
    leave_script_out(kind, program, arguments, scanned.as_ref(), &mut operands);
    // Patterns in front may be taken for the archive.
    let packed = if *kind == Kind::Packs && has(before(operands.first()), &['x', 'i'], "") { operands.len() } else { 1 };
    let targets = if *kind == Kind::Copies { targets(arguments) } else { Vec::new() };
    operands.retain(|at| targets.binary_search_by_key(at, |(index, _)| *index).is_err());
    touched.extend(targets.iter().map(|(index, path)| Touch::write(*index, path)));
    // Of several words the last may be none, and then the one in front of them is written.
    let last_written = operands.iter().rposition(|index| arguments.get(*index).is_some_and(|argument| !argument.many)).unwrap_or_default();
    let makes_folders = matches!(program, "install" | "ginstall") && has(arguments, &['d'], "directory");
    let searched = if program.ends_with("sed") && writes_in_place(arguments) { Access::Write } else { Access::Read };
    let access = |at: usize| match kind {
        Kind::Reads => Access::Read,
        Kind::Searches => searched,
        Kind::Writes | Kind::Changes => Access::Write,
        Kind::Copies if makes_folders || targets.is_empty() && at >= last_written.min(last) => Access::Write,
        Kind::Copies => others,
        Kind::Packs if at < packed => Access::Write,
        Kind::Filters if at > 0 => Access::Write,
        Kind::Packs | Kind::Filters => Access::Read,
    };
    touched.extend(operands.iter().enumerate().filter_map(|(at, index)| file(arguments, *index, access(at))));
    match program {
        "tar" | "gtar" | "bsdtar" => touched.extend(of_archive(arguments)),
        "unzip" => touched.extend(of_unzip(arguments)),
        "zip" => touched.extend(named_by_zip(arguments, &operands)),
        "cp" | "mv" => touched.extend(hidden_targets(arguments)),
        "diff" | "gdiff" | "sdiff" => touched.extend(met(arguments, &operands)),
        "split" => touched.extend(parts(arguments, &operands)),
        "sed" | "gsed" => add_kept(arguments, &mut touched),
        _ if *kind == Kind::Reads => touched.extend(of_compression(program, arguments)),
        "ln" if is_symbolic(arguments) => seen_from_link(&mut touched),
        _ => {}
    }
    if matches!(program, "openssl" | "tar" | "gtar" | "bsdtar") {
        let named = |path: &str| path.strip_prefix("file:").or_else(|| path.strip_prefix('@')).map(str::to_owned);
        add_beside(&mut touched, |index, path, access| Some(Touch::File { index, path: named(path)?, access }));
    }
    if program == "ln" || program == "cp" && has(arguments, &['l', 's'], "link symbolic-link") {
        // What is written to a link is written to its file.
        add_beside(&mut touched, |index, path, access| (access == Access::Read).then(|| Touch::write(index, path)));
    }
    if matches!(program, "cp" | "mv" | "ln" | "install" | "ginstall") {
        touched.extend(placed(arguments, &operands, targets.into_iter().next_back()));
    }
    touched
}

/// Takes away the first operand where that is no file: the text that is searched for, or a mode.
fn leave_script_out(kind: &Kind, program: &str, arguments: &[Argument], scanned: Option<&Scan>, operands: &mut Vec<usize>) {
    let Some(first) = operands.first().and_then(|index| arguments.get(*index)) else { return };
    let is_script = match kind {
        // Of several words the first is what is searched for, and the others are files.
        Kind::Searches => scanned.is_some_and(|scan| !gives_script(program, scan)) && !first.many,
        // With another file for a model no mode stands there.
        Kind::Changes => is_mode(program, &first.text) && !arguments.iter().any(|argument| argument.text.starts_with("--ref")),
        _ => false,
    };
    operands.drain(..usize::from(is_script));
}

/// Adds the files that a program touches beside each file that it is given.
pub(super) fn add_beside(touched: &mut Vec<Touch>, other: impl Fn(usize, &str, Access) -> Option<Touch>) {
    let besides = |touch: &Touch| match touch {
        Touch::File { index, path, access } => other(*index, path, *access),
        Touch::Pattern(_) => None,
    };
    let others: Vec<Touch> = touched.iter().filter_map(besides).collect();
    touched.extend(others);
}

/// Returns the places of the operands of a program.
pub(super) fn operands(program: &str, arguments: &[Argument]) -> Vec<usize> {
    operands_of(scan_of(program, arguments).as_ref(), arguments)
}

fn operands_of(scanned: Option<&Scan>, arguments: &[Argument]) -> Vec<usize> {
    scanned.map_or_else(|| words(arguments), |scan| scan.operands.clone())
}

/// Returns the programs of which a row says how their operands are files.
pub(super) fn in_rows() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|(names, _)| names.split_ascii_whitespace())
}

/// Returns whether the first operand of a program is what it searches for, or a script.
#[must_use]
pub fn searches(program: &str) -> bool {
    ROWS.iter().any(|(names, kind)| *kind == Kind::Searches && is_in(names, program))
}

/// Tells options from operands by the program's own table, or by that of a program with the same options.
pub(super) fn scan_of(program: &str, arguments: &[Argument]) -> Option<Scan> {
    let (options, style) = options_of(program)?;
    scan(arguments, options, style).ok()
}

fn options_of(program: &str) -> Option<(&'static Options, Style)> {
    Some(match program {
        "sed" | "gsed" => super::sed::all_options(),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => super::awk::options(),
        "grep" | "egrep" | "fgrep" => table("ggrep").map(|compiled| (&compiled.options, compiled.style))?,
        _ => {
            let compiled = table(program).filter(|compiled| compiled.subcommands.is_empty())?;
            (!matches!(compiled.operands, Operands::Own(_))).then_some((&compiled.options, compiled.style))?
        }
    })
}

/// Returns whether a word is a mode or an owner, and no path.
fn is_mode(program: &str, text: &str) -> bool {
    match program {
        "chmod" => {
            let is_symbolic = text.bytes().all(|byte| b"ugoa+-=rwxXst,".contains(&byte)) && text.contains(['+', '-', '=']);
            is_symbolic || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
        }
        // A mode that begins with a dash is no operand.
        "chattr" => text.starts_with(['+', '=']),
        _ => !text.contains(['/', '*', '?', '[']),
    }
}

/// Returns the folders that `-t` names, in full or shortened, and the places of the arguments that end it. Where there are several, some
/// versions take the last.
pub(super) fn targets(arguments: &[Argument]) -> Vec<(usize, String)> {
    let target = |(index, argument): (usize, &Argument)| {
        let text = argument.text.as_str();
        let next = || arguments.get(index + 1).map(|next| (index + 1, next.text.clone()));
        if let Some(long) = text.strip_prefix("--").filter(|long| long.starts_with('t')) {
            return match long.split_once('=') {
                Some((name, value)) => "target-directory".starts_with(name).then(|| (index, value.to_owned())),
                None => "target-directory".starts_with(long).then(next).flatten(),
            };
        }
        let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
        let (_, value) = letters.split_once('t')?;
        if value.is_empty() { next() } else { Some((index, value.to_owned())) }
    };
    arguments.iter().enumerate().take_while(|(_, argument)| argument.text != "--").filter_map(target).collect()
}

/// The patterns that options give. What stands behind `!` is left out.
fn patterns(scan: &Scan) -> Vec<Touch> {
    let is_pattern = |name: &str| PATTERN_OPTIONS.contains(&name);
    let values = scan.given.iter().filter(|(name, _)| is_pattern(name)).filter_map(|(_, value)| value.as_ref());
    let looked_for =
        values.map(|value| value.text.rsplit_once(':').map_or(value.text.as_str(), |(_, glob)| glob)).filter(|text| !text.starts_with('!'));
    looked_for.flat_map(braces).map(Touch::Pattern).collect()
}

/// The patterns that no table finds: words that an archiver compares with names and the shell does not, and those of `--include` in a shortened
/// form.
fn own_patterns(program: &str, arguments: &[Argument]) -> Vec<Touch> {
    let is_archiver = matches!(program, "unzip" | "zip");
    let compared = |argument: &Argument| {
        let is_pattern = is_archiver && argument.as_known().is_some_and(is_pattern);
        is_pattern.then(|| vec![crossing(&argument.text)])
    };
    let shortened = |at: usize, argument: &Argument| {
        let text = argument.text.as_str();
        let (name, value) = text.split_once('=').unwrap_or_else(|| (text, text_at(arguments, at + 1)));
        (program.ends_with("grep") && name.len() > 4 && "--include".starts_with(name)).then(|| braces(value))
    };
    let found = arguments.iter().enumerate().filter_map(|(at, argument)| compared(argument).or_else(|| shortened(at, argument)));
    found.flatten().map(Touch::Pattern).collect()
}

/// Returns what is done with the file that is the value of a long option, in full or shortened: programs without a table take its beginning too.
/// The beginning is never taken for another option than the program's own table has under it: `rg --files` looks for names.
fn of_file_option(program: &str, text: &str) -> Option<Access> {
    let long = text.strip_prefix("--").filter(|long| !long.is_empty())?;
    let is_own = is_long_option(program, long);
    let is_one =
        |options: &str| options.split_ascii_whitespace().any(|option| if is_own { option == text } else { option.starts_with(text) });
    let read = is_one(FILE_OPTIONS).then_some(Access::Read);
    if is_one(OUTPUT_OPTIONS) { Some(Access::Write) } else { read }
}

/// Returns whether a program's table has this long option, behind any subcommand.
fn is_long_option(program: &str, long: &str) -> bool {
    let subcommands = table(program).into_iter().flat_map(|table| &table.subcommands).map(|subcommand| &subcommand.options);
    let options = options_of(program).map(|(options, _)| options).into_iter().chain(subcommands);
    options.into_iter().any(|options| options.long(long).is_some())
}

/// The files that options name: `--file=PATH`, `--file PATH`, `-fPATH`, `-f PATH`.
fn files_of_options(program: &str, arguments: &[Argument]) -> Vec<Touch> {
    let letters = FILE_LETTERS.iter().filter(|(names, _)| is_in(names, program)).map(|(_, letters)| *letters);
    let of_git = match subcommand_of_git(arguments) {
        "commit" | "tag" | "merge" | "notes" if program == "git" => "F",
        "grep" if program == "git" => "f",
        "ls-files" if program == "git" => "X",
        _ => "",
    };
    let letters: String = letters.chain([of_git]).collect();
    let mut touched = Vec::new();
    let mut note_as = |index: usize, path: String, access: Access| touched.push(Touch::File { index, path, access });
    for (index, argument) in arguments.iter().enumerate() {
        let text = argument.text.as_str();
        let next = |behind: usize| arguments.get(index + behind).map(|next| (index + behind, next.text.clone()));
        let mut note = |index: usize, path: String| note_as(index, path, Access::Read);
        if matches!(text, "--rawfile" | "--slurpfile") {
            next(2).into_iter().for_each(|(at, path)| note(at, path));
        }
        if program == "kubectl" && text.contains("file=") {
            text.rsplit_once('=').into_iter().for_each(|(_, path)| note(index, path.to_owned()));
        }
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some((index, value.to_owned()))));
        match of_file_option(program, name) {
            Some(access) => value.or_else(|| next(1)).into_iter().for_each(|(at, path)| note_as(at, path, access)),
            None if (program == "openssl" || !is_known(program)) && value.is_some() => {
                value.into_iter().for_each(|(at, path)| note(at, path))
            }
            _ if text.starts_with('-') && !text.starts_with("--") => {
                if let Some((at, letter)) = text.char_indices().skip(1).find(|(_, letter)| letters.contains(*letter)) {
                    let value = text.get(at + letter.len_utf8()..).unwrap_or_default();
                    // To these `-f=FILE` is `-f FILE`.
                    let value = value.strip_prefix('=').filter(|_| matches!(program, "helm" | "kubectl")).unwrap_or(value);
                    let found = if value.is_empty() { next(1) } else { Some((index, value.to_owned())) };
                    found.into_iter().for_each(|(at, path)| note(at, path));
                }
            }
            _ => {}
        }
    }
    touched
}
