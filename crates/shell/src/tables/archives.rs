//! Archives and compression. What `tar` extracts has names that nobody knows: the folder counts as changed with all that lies below it.
//!
//! Left out: of `tar` every operation but `t`, and `c` and `x` with a named archive, archives with a colon in their names (on another
//! machine, by a remote shell), `-I`, `-F`, `--to-command`, `--checkpoint-action`, `--rsh-command`, `-P`, `-C` but once and with `x`, and
//! `@archive`, which BSD's takes apart; of `unzip` `-:` and what changes names or rights; of `gzip`, `xz`, `zstd` `-S`, `-N`, `-o` and `-r`
//! (write names of another form); of `zip` `-T`, `-TT` (start a program), `-m`, `-O`, `-b`; `cpio`, `ar`, `7z` and `bsdcpio` as a whole.

use std::sync::LazyLock;

use super::options::Options;
use super::reading::{COMPUTED, MISSING, OPERAND, OPTION, Scan, literal, scan};
use super::touches::operands;
use super::trees::has;
use super::{Started, Style, Touch, Unlisted, is_in};
use crate::argument::{Argument, Certainty};

static COMPRESS: LazyLock<Options> = LazyLock::new(|| {
    Options::new(
        "-c -d -f -k -l -n -q -t -v -NUM -1 -2 -3 -4 -5 -6 -7 -8 -9 --stdout --decompress --list --test --keep --quiet --fast --best",
    )
});

/// It writes to its output, nothing at all, or files beside those that it is given.
pub(super) fn compress(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let scan = scan(arguments, &COMPRESS, Style::Gnu)?;
    let is_known = |index: &usize| arguments.get(*index).is_some_and(Argument::is_literal);
    match scan.operands.iter().find(|index| !is_printed(&scan) && !is_known(index)) {
        Some(index) => Err(Unlisted { index: *index, what: COMPUTED }),
        None => Ok(Vec::new()),
    }
}

/// Returns whether nothing is written but to the output. Of what a program is to do, the last option says what is done.
fn is_printed(scan: &Scan) -> bool {
    let is_read = scan.has(&["l", "list", "t", "test"]) && !scan.has(&["d", "decompress"]);
    is_read || scan.has(&["c", "stdout"])
}

/// What a program that compresses writes: the files that it is given, which it takes away, and those with its ending, or without one.
pub(super) fn of_compression(program: &str, arguments: &[Argument]) -> Vec<Touch> {
    let ending = match program {
        "bzip2" => ".bz2",
        "xz" | "unxz" => ".xz",
        "zstd" | "unzstd" => ".zst",
        "gzip" | "gunzip" | "pigz" => ".gz",
        _ => return Vec::new(),
    };
    let Ok(scan) = scan(arguments, &COMPRESS, Style::Gnu) else { return Vec::new() };
    let unpacks = matches!(program, "gunzip" | "unxz" | "unzstd") || scan.has(&["d", "decompress"]);
    let names = |index: usize| {
        let path = arguments.get(index)?.text.as_str();
        let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
        // `gzip` knows endings without a dot, and a glob may find one.
        let short = path.trim_end_matches(['z', 'Z', 'g', 'G']).trim_end_matches(['-', '_']);
        let begin = path.split(['*', '?', '[']).next().filter(|begin| begin.len() < path.len());
        let short = begin.map_or_else(|| short.to_owned(), |begin| format!("{}*", begin.trim_end_matches(['-', '_', '.', 'g', 'z'])));
        let made = if unpacks {
            vec![stem.to_owned(), format!("{stem}.tar"), short, format!("{path}.out")]
        } else {
            vec![format!("{path}{ending}")]
        };
        Some(made.into_iter().chain([path.to_owned()]).map(move |path| Touch::write(index, path)))
    };
    scan.operands.iter().filter(|_| !is_printed(&scan)).filter_map(|index| names(*index)).flatten().collect()
}

/// TABLE: programs that look for a file by its name with an ending, where no file has the name alone.
const COMPLETED: [(&str, &str); 3] = [
    ("gunzip gzcat gzip uncompress zcat zcmp zdiff zegrep zfgrep zgrep zless zmore", ".gz .z -z .Z"),
    ("pigz unpigz", ".gz -gz .z -z _z .Z .zz -zz .zip .ZIP .tgz"),
    ("unzip zipinfo", ".zip .ZIP"),
];

/// Returns the files that a program finds by their names with endings of its own. Where `unzip` writes to is a folder.
pub(super) fn completed(program: &str, arguments: &[Argument], touched: &[Touch]) -> Vec<Touch> {
    let Some((_, endings)) = COMPLETED.iter().find(|(names, _)| is_in(names, program)) else { return Vec::new() };
    let folder = unzipped_to(arguments).filter(|_| program == "unzip");
    let ended = |touch: &Touch| match touch {
        Touch::File { index, path, .. } if folder == Some((*index, path)) => Vec::new(),
        Touch::File { index, path, access } if arguments.get(*index).is_some_and(|argument| argument.text == *path) => {
            let file = |ending| Touch::File { index: *index, path: format!("{path}{ending}"), access: *access };
            endings.split(' ').map(file).collect()
        }
        _ => Vec::new(),
    };
    touched.iter().flat_map(ended).collect()
}

/// TABLE: letters of `tar` that list, make an archive, which is a file that is written, or extract. `f` takes the next word.
const TAR: &str = "ctxvzjJ";

/// TABLE: its long options.
const TAR_LONG: [&str; 10] =
    ["--create", "--extract", "--list", "--verbose", "--gzip", "--bzip2", "--xz", "--zstd", "--wildcards", "--numeric-owner"];

pub(super) fn tar(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let (mut lists, mut makes, mut takes, mut names) = (false, false, false, false);
    let mut folder = None;
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let index = at;
        at += 1;
        // The letters in the first word need no dash.
        if index > 0 && argument.is_operand() {
            if argument.text.starts_with('@') {
                return Err(Unlisted { index, what: OPERAND });
            }
            continue;
        }
        let text = match argument.certainty {
            Certainty::Known | Certainty::Value => argument.text.as_str(),
            _ => return Err(Unlisted { index, what: COMPUTED }),
        };
        if text.starts_with("--") {
            lists |= text == "--list";
            makes |= text == "--create";
            takes |= text == "--extract";
            names |= tar_word(argument, index)?;
            continue;
        }
        let letters = text.strip_prefix('-').unwrap_or(text);
        if text == "-C" && folder.is_none() {
            // Where it extracts to.
            folder = arguments.get(at).filter(|folder| folder.is_operand() && folder.is_literal());
            folder.ok_or(Unlisted { index: at, what: OPERAND })?;
            at += 1;
            continue;
        }
        // What stands behind an `f` is the name of the archive to some and letters to others.
        let (letters, is_named) = letters.strip_suffix('f').map_or((letters, false), |rest| (rest, true));
        lists |= letters.contains('t');
        makes |= letters.contains('c');
        takes |= letters.contains('x');
        if argument.as_known().is_none() || text.is_empty() || !letters.chars().all(|letter| TAR.contains(letter)) {
            return Err(Unlisted { index, what: OPTION });
        }
        if is_named {
            names = true;
            archive(arguments.get(at).ok_or(Unlisted { index: at, what: MISSING })?, at)?;
            at += 1;
        }
    }
    // Without a name, TAPE in the environment says what is written.
    let is_one = match (lists, makes, takes) {
        (true, false, false) | (false, true, false) if folder.is_some() => false,
        (true, false, false) => true,
        (false, makes, takes) => names && makes != takes,
        _ => false,
    };
    if is_one { Ok(Vec::new()) } else { Err(Unlisted { index: 0, what: OPTION }) }
}

/// Reads a long option of `tar`. Returns whether it names the archive.
fn tar_word(argument: &Argument, index: usize) -> Result<bool, Unlisted> {
    match argument.text.split_once('=') {
        Some(("--file", name)) => archive(&Argument { text: name.to_owned(), ..argument.clone() }, index).map(|()| true),
        Some(("--exclude" | "--strip-components", _)) => Ok(false),
        _ if TAR_LONG.contains(&argument.text.as_str()) => Ok(false),
        _ => Err(Unlisted { index, what: OPTION }),
    }
}

/// Returns whether `tar` extracts, and makes no archive.
#[must_use]
pub fn extracts(arguments: &[Argument]) -> bool {
    let is_long = |argument: &Argument| argument.text.starts_with("--c") || argument.text.starts_with("--ap");
    let makes = bundles(arguments).any(|(_, text)| text.contains(['c', 'r', 'u', 'A'])) || arguments.iter().any(is_long);
    extracted_to(arguments).is_some() && !makes
}

/// Returns the letters of operations of `tar` with their places: those in the first word need no dash.
pub(super) fn bundles(arguments: &[Argument]) -> impl Iterator<Item = (usize, &str)> {
    let texts = arguments.iter().map(|argument| argument.text.as_str()).enumerate();
    texts.filter(|(at, text)| !text.starts_with("--") && (*at == 0 || text.starts_with('-')))
}

/// Returns the place of the folder into which `tar` extracts, or of the operation where that is the folder at hand; `None` if it does not extract.
pub(super) fn extracted_to(arguments: &[Argument]) -> Option<usize> {
    let letters = bundles(arguments).find(|(_, text)| text.contains('x')).map(|(at, _)| at);
    let word = arguments.iter().position(|argument| matches!(argument.text.as_str(), "--extract" | "--get"));
    let operation = letters.into_iter().chain(word).min()?;
    Some(arguments.iter().position(|argument| argument.text == "-C").map_or(operation, |at| at + 1))
}

/// The name of an archive that is a file here.
fn archive(name: &Argument, index: usize) -> Result<(), Unlisted> {
    let is_local = !name.text.contains(':') && !name.many;
    match name.certainty {
        Certainty::Known if is_local => Ok(()),
        // Behind a slash a colon means nothing.
        Certainty::Operand if is_local && name.text.split('*').next().is_some_and(|beginning| beginning.contains('/')) => Ok(()),
        Certainty::Known => Err(Unlisted { index, what: OPERAND }),
        _ => Err(Unlisted { index, what: COMPUTED }),
    }
}

/// TABLE: what `unzip` may begin with so that it only lists, tests or prints.
const UNZIP: [&str; 11] = ["-Z", "-Z1", "-l", "-lq", "-lv", "-p", "-ql", "-qt", "-t", "-tq", "-v"];

/// TABLE: its options where it extracts.
static EXTRACTING: LazyLock<Options> = LazyLock::new(|| Options::new("-o -n -q -j -L -C -d=NEXT"));

pub(super) fn unzip(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    if !is_only_shown(arguments) {
        let scan = scan(arguments, &EXTRACTING, Style::Gnu)?;
        // Behind `--` the option for the folder would be a name. Of two folders some versions take the first, others the last.
        let is_doubtful = scan.ended || scan.given.iter().filter(|(name, _)| *name == "d").count() > 1;
        return if is_doubtful { Err(Unlisted { index: 0, what: OPTION }) } else { literal(arguments) };
    }
    match arguments.iter().skip(1).position(|argument| !argument.is_operand()) {
        Some(at) => Err(Unlisted { index: at + 1, what: OPTION }),
        None => Ok(Vec::new()),
    }
}

/// Returns whether `unzip` writes nothing.
fn is_only_shown(arguments: &[Argument]) -> bool {
    arguments.first().and_then(Argument::as_known).is_some_and(|text| UNZIP.contains(&text))
}

/// Returns the folder into which `unzip` extracts, with the place of the argument that says so; `None` if it only lists or prints.
pub(super) fn unzipped_to(arguments: &[Argument]) -> Option<(usize, &str)> {
    let is_option = |argument: &Argument| argument.text.starts_with('-') && argument.text.ends_with('d');
    let named = arguments.iter().position(is_option).and_then(|at| Some((at + 1, arguments.get(at + 1)?.text.as_str())));
    (!is_only_shown(arguments)).then(|| named.unwrap_or((0, ".")))
}

/// What `unzip` writes: the folder.
pub(super) fn of_unzip(arguments: &[Argument]) -> Option<Touch> {
    unzipped_to(arguments).map(|(index, path)| Touch::write(index, path))
}

/// Returns the files that `zip` touches beside its operands: the archive with the ending that it puts behind a name without an ending, and any
/// file that the archive or its input names.
pub(super) fn named_by_zip(arguments: &[Argument], operands: &[usize]) -> Vec<Touch> {
    let Some((index, name)) = operands.first().and_then(|index| Some((*index, &arguments.get(*index)?.text))) else { return Vec::new() };
    let found = renews(arguments).then(|| Touch::read(index, "."));
    std::iter::once(Touch::write(index, format!("{name}.zip"))).chain(found).collect()
}

/// Returns whether `zip` takes the names of files from its archive or its input, since the line names no file.
pub(super) fn renews(arguments: &[Argument]) -> bool {
    let is_asked = has(arguments, &['f', 'u', '@'], "filesync freshen names-stdin update");
    let is_synced = arguments.iter().any(|argument| argument.text.starts_with("-FS"));
    // Words behind these options choose among names.
    let names_none = operands("zip", arguments).len() < 2 || has(arguments, &['i', 'x'], "include");
    (is_asked || is_synced) && names_none
}
