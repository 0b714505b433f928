//! Archives and compression, where they are listed or printed. Extraction writes: an author who wants it lists `tar xf`.
//!
//! Left out: of `tar` every operation but `t` and `c` with a named archive, archives with a colon in their names (on another machine, by a remote shell), `-I`, `-F`,
//! `--to-command`, `--checkpoint-action`, `--rsh-command`, `-C`; of `unzip` all but listing, testing and printing; of `gzip`, `xz`, `zstd`
//! whatever writes a file (`-d` behind `-l` does, to some); of `zip` `-T`, `-TT` (start a program), `-m`, `-O`, `-b`; `cpio`, `ar`, `7z` and `bsdcpio` as a whole.

use std::sync::LazyLock;

use super::options::Options;
use super::reading::{COMPUTED, MISSING, OPERAND, OPTION, nothing, scan};
use super::{Operands, PROGRAM, Program, Started, Style, Unlisted};
use crate::argument::{Argument, Certainty};

/// TABLE: the programs.
pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["7z", "7za", "7zr", "ar", "bsdcpio", "cpio", "pax", "rar", "shar", "unar", "unrar"],
        operands: Operands::Own(nothing),
        ..PROGRAM
    },
    Program { names: &["bzip2", "gunzip", "gzip", "pigz", "unxz", "unzstd", "xz", "zstd"], operands: Operands::Own(compress), ..PROGRAM },
    // They print what is compressed.
    Program { names: &["bzcat", "gzcat", "lz4cat", "xzcat", "zcat", "zstdcat"], options: "-f", ..PROGRAM },
    Program { names: &["bsdtar", "gtar", "tar"], operands: Operands::Own(tar), ..PROGRAM },
    Program { names: &["unzip"], operands: Operands::Own(unzip), ..PROGRAM },
    Program { names: &["zip"], options: "-r -q -j -y -x -i -9 -NUM", ..PROGRAM },
    Program {
        names: &["zipinfo"],
        options: "-1 -2 -h -l -m -s -t -v",
        style: Style::First,
        operands: Operands::Checked(members),
        ..PROGRAM
    },
];

static COMPRESS: LazyLock<Options> = LazyLock::new(|| {
    Options::new(
        "-c -d -f -k -l -n -q -t -v -NUM -1 -2 -3 -4 -5 -6 -7 -8 -9 --stdout --decompress --list --test --keep --quiet --fast --best",
    )
});

/// It writes to its output, or nothing at all; without operands it does so in any case.
fn compress(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let scan = scan(arguments, &COMPRESS, Style::Gnu)?;
    // Of what it is to do the last option says what is done.
    let is_read = scan.has(&["l", "list", "t", "test"]) && !scan.has(&["d", "decompress"]);
    let is_printed = is_read || scan.has(&["c", "stdout"]);
    match scan.operands.first().filter(|_| !is_printed) {
        Some(index) => Err(Unlisted { index: *index, what: OPERAND }),
        None => Ok(Vec::new()),
    }
}

/// TABLE: letters of `tar` that list, or make an archive, which is a file that is written. `f` takes the next word.
const TAR: &str = "ctvzjJ";

/// TABLE: its long options.
const TAR_LONG: [&str; 9] = ["--create", "--list", "--verbose", "--gzip", "--bzip2", "--xz", "--zstd", "--wildcards", "--numeric-owner"];

fn tar(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let (mut lists, mut makes, mut names) = (false, false, false);
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let index = at;
        at += 1;
        // The letters in the first word need no dash.
        if index > 0 && argument.is_operand() {
            continue;
        }
        let text = match argument.certainty {
            Certainty::Known | Certainty::Value => argument.text.as_str(),
            _ => return Err(Unlisted { index, what: COMPUTED }),
        };
        if text.starts_with("--") {
            lists |= text == "--list";
            makes |= text == "--create";
            match text.split_once('=') {
                Some(("--file", name)) => {
                    names = true;
                    archive(&Argument { text: name.to_owned(), ..argument.clone() }, index)?;
                }
                Some(("--exclude", _)) => {}
                _ if TAR_LONG.contains(&text) => {}
                _ => return Err(Unlisted { index, what: OPTION }),
            }
            continue;
        }
        let letters = text.strip_prefix('-').unwrap_or(text);
        // What stands behind an `f` is the name of the archive to some and letters to others.
        let (letters, is_named) = letters.strip_suffix('f').map_or((letters, false), |rest| (rest, true));
        lists |= letters.contains('t');
        makes |= letters.contains('c');
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
    let is_one = if makes { names && !lists } else { lists };
    if is_one { Ok(Vec::new()) } else { Err(Unlisted { index: 0, what: OPTION }) }
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

fn unzip(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    if !arguments.first().and_then(Argument::as_known).is_some_and(|text| UNZIP.contains(&text)) {
        return Err(Unlisted { index: 0, what: OPTION });
    }
    match arguments.iter().skip(1).position(|argument| !argument.is_operand()) {
        Some(at) => Err(Unlisted { index: at + 1, what: OPTION }),
        None => Ok(Vec::new()),
    }
}

/// Names, without options among them.
fn members(operands: &[&Argument]) -> Result<(), &'static str> {
    operands.iter().all(|operand| operand.is_operand()).then_some(()).ok_or(OPERAND)
}
