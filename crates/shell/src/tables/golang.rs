//! `go` and `gofmt`: building and testing the module, and questions to it.
//!
//! Left out: what starts a program of the caller's choice (`-exec`, `-toolexec`, `-vettool`, `-ldflags`, `-gcflags`, `tool`), writes
//! into a folder or settings (`-c`, `-outputdir`, `env -w`), swaps files (`-overlay`, `-modfile`) or fetches what it is given
//! (`get`, `install`, `run name@version`, `mod edit`).

use super::checks::{Checked, accept, files};
use super::{Operands, PROGRAM, Program, Style, Subcommand};
use crate::argument::Argument;

pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["go"],
        style: Style::Anywhere,
        subcommands: GO,
        runs: Some("the module's tests, programs and generators"),
        ..PROGRAM
    },
    Program { names: &["gofmt"], style: Style::Words, options: "-l -d -w -s -e", operands: Operands::Checked(files), ..PROGRAM },
];

/// Options of what builds.
macro_rules! build {
    () => {
        "-C=BELOW -a -n -x -v -race -msan -asan -cover -covermode=WORD -coverpkg=WORD -p=WORD -tags=WORD -trimpath -work -mod=WORD \
         -buildvcs[=WORD] -json "
    };
}

/// TABLE: subcommands. Packages may be patterns (`./...`), none has a version (`name@v1`).
const GO: &[Subcommand] = &[
    packages("build", concat!(build!(), "-o=WRITTEN")),
    packages(
        "test",
        concat!(
            build!(),
            "-run=WORD -skip=WORD -bench=WORD -benchmem -benchtime=WORD -count=WORD -cpu=WORD -failfast -fullpath -list=WORD \
            -parallel=WORD -coverprofile=WRITTEN \
             -short -shuffle=WORD -timeout=WORD -vet=WORD"
        ),
    ),
    packages("vet", concat!(build!(), "-c=WORD")),
    packages("fmt", "-n -x -mod=WORD"),
    packages("list", concat!(build!(), "-f=WORD -json[=WORD] -m -u -deps -e -test -versions -find")),
    packages("generate", "-n -x -v -run=WORD -skip=WORD -tags=WORD"),
    Subcommand { names: "run", options: build!(), operands: Operands::Checked(own_program) },
    packages("doc", "-all -c -cmd -short -src -u"),
    packages("env", "-json -changed"),
    packages("version", "-m -v"),
    packages("mod.tidy", "-v -e -x -go=WORD -compat=WORD -diff"),
    packages("mod.download mod.verify mod.graph", "-x -json"),
    packages("mod.vendor", "-v -e"),
    packages("mod.why", "-m -vendor"),
    packages("clean", "-n -x -r -cache -testcache"),
    Subcommand { names: "tool.cover", options: "-func=FILE", operands: Operands::AtMost(0) },
];

const fn packages(names: &'static str, options: &'static str) -> Subcommand {
    Subcommand { names, options, operands: Operands::Checked(without_versions) }
}

/// Accepts packages and files of the module.
fn without_versions(operands: &[&Argument]) -> Checked {
    files(operands)?;
    accept(operands.iter().all(|operand| !operand.text.contains('@')), "a package with a version")
}

/// Accepts a package of the module, by its path, and what it is given.
fn own_program(operands: &[&Argument]) -> Checked {
    let Some((package, rest)) = operands.split_first() else { return Ok(()) };
    let is_own = package.as_known().is_some_and(|text| !text.contains('@') && (text.starts_with('.') || text.ends_with(".go")));
    accept(is_own && rest.iter().all(|argument| argument.as_known().is_some()), "a program that is not the module's")
}
