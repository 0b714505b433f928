//! `cargo`, `rustc`, `rustup`: building and testing the package, and questions to it.
//!
//! Left out: what changes settings or tools (`--config`, `-Z`, `+toolchain`, `--target`), writes where it is told (`--target-dir`,
//! `--artifact-dir`), installs (`install`), takes code from an address (`add --git`), or gives arguments to a compiler (`rustc`,
//! `clippy -- -C`). Subcommands that are not listed may be aliases or plugins.

use super::checks::{Checked, accept, is_package};
use super::reading::nothing;
use super::{Operands, PROGRAM, Program, Subcommand, any, checked};
use crate::argument::Argument;

pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["cargo"],
        options: "-V --version --list -v --verbose -q --quiet --color=WORD --locked --offline --frozen",
        subcommands: CARGO,
        runs: Some("the package's build scripts, macros, tests and programs, and those of its dependencies"),
        ..PROGRAM
    },
    // All of these are links to `rustup`, which runs, or fetches, the toolchain that a file in the folder names.
    Program {
        names: &["rustc", "rustdoc", "rustfmt", "clippy-driver"],
        operands: Operands::Own(nothing),
        runs: Some(TOOLCHAIN),
        ..PROGRAM
    },
    // `rustup --version` runs that toolchain's `rustc` too.
    Program { names: &["rustup"], subcommands: RUSTUP, runs: Some(TOOLCHAIN), ..PROGRAM },
];

/// What these programs run.
const TOOLCHAIN: &str = "the toolchain that a rust-toolchain file in the folder names";

/// Options of what builds.
macro_rules! build {
    () => {
        "-p=WORD --package=WORD --workspace --all --exclude=WORD --lib --bins --bin=WORD --examples --example=WORD --tests --test=WORD \
         --benches --bench=WORD --all-targets -F=WORD --features=WORD --all-features --no-default-features -r --release --profile=WORD \
         -j=WORD --jobs=WORD --keep-going --message-format=WORD --manifest-path=BELOW --ignore-rust-version --locked --offline --frozen \
         -v --verbose -q --quiet --color=WORD "
    };
}

/// TABLE: subcommands of `cargo`.
const CARGO: &[Subcommand] = &[
    any("build b check c", concat!(build!(), "--timings --future-incompat-report")),
    checked("test t bench", tests, concat!(build!(), "--no-run --no-fail-fast --doc")),
    checked("run r", literal, build!()),
    checked("clippy", lints, concat!(build!(), "--fix --allow-dirty --allow-staged --allow-no-vcs --no-deps")),
    any("fix", concat!(build!(), "--allow-dirty --allow-staged --allow-no-vcs --edition")),
    checked("fmt", format, "-p=WORD --package=WORD --all --check --manifest-path=BELOW -v --verbose -q --quiet"),
    any("doc", concat!(build!(), "--no-deps --document-private-items")),
    checked(
        "nextest.run",
        literal,
        concat!(
            build!(),
            "-E=WORD --no-fail-fast --fail-fast --no-capture --no-run --run-ignored=WORD --retries=WORD \
             --test-threads=WORD -P=WORD --failure-output=WORD --success-output=WORD --status-level=WORD"
        ),
    ),
    any(
        "tree",
        "-p=WORD --package=WORD --workspace --exclude=WORD -F=WORD --features=WORD --all-features --no-default-features \
        -e=WORD --edges=WORD -i[=WORD] \
         --invert[=WORD] --prune=WORD --depth=WORD --prefix=WORD --no-dedupe -d --duplicates --charset=WORD -f=WORD --format=WORD \
         --manifest-path=BELOW --locked --offline --frozen",
    ),
    any(
        "metadata",
        "--format-version=WORD --no-deps -F=WORD --features=WORD --all-features --no-default-features \
             --filter-platform=WORD --manifest-path=BELOW --locked --offline --frozen",
    ),
    any(
        "fetch generate-lockfile verify-project locate-project pkgid",
        "--manifest-path=BELOW --locked --offline --frozen --workspace --message-format=WORD -p=WORD --package=WORD",
    ),
    any(
        "update",
        "-p=WORD --package=WORD -w --workspace --precise=WORD --recursive --aggressive --dry-run --offline --locked \
             --manifest-path=BELOW",
    ),
    checked(
        "add",
        crates,
        "--dev --build -F=WORD --features=WORD --no-default-features --default-features --optional --no-optional \
             --rename=WORD -p=WORD --package=WORD --dry-run -n --offline --locked",
    ),
    checked("remove rm", crates, "--dev --build -p=WORD --package=WORD --dry-run -n --offline --locked"),
    any("clean", "-p=WORD --package=WORD -r --release --profile=WORD --doc --dry-run -n --manifest-path=BELOW"),
    checked("search", crates, "--limit=WORD -q --quiet"),
    any("version", ""),
];

/// TABLE: what `rustup` answers.
const RUSTUP: &[Subcommand] = &[any("toolchain.list", "-v --verbose")];

/// Accepts names of tests, and options for what runs tests. It has `--logfile`, which writes.
fn tests(operands: &[&Argument]) -> Checked {
    const OPTIONS: &[&str] = &[
        "--nocapture",
        "--no-capture",
        "--show-output",
        "--test-threads",
        "--ignored",
        "--include-ignored",
        "--exact",
        "--skip",
        "--list",
        "--quiet",
        "-q",
        "--color",
        "--test",
        "--bench",
        "--report-time",
        "--format",
    ];
    let is_fine = |text: &str| {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        !text.starts_with('-') || OPTIONS.contains(&name)
    };
    accept(operands.iter().all(|operand| operand.as_known().is_some_and(is_fine)), "an argument for tests that is not known to be harmless")
}

/// Accepts levels of lints: all else is for the compiler.
fn lints(operands: &[&Argument]) -> Checked {
    const LEVELS: &[&str] = &["-D", "-W", "-A", "-F", "--deny", "--warn", "--allow", "--forbid"];
    let is_lint = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:".contains(&byte));
    let mut rest = operands.iter();
    while let Some(operand) = rest.next() {
        let text = operand.as_known().unwrap_or_default();
        let lint = match text.get(..2) {
            _ if LEVELS.contains(&text) => rest.next().and_then(|lint| lint.as_known()),
            Some("-D" | "-W" | "-A" | "-F") => text.get(2..),
            _ => None,
        };
        accept(lint.is_some_and(|lint| is_lint(lint) && !lint.starts_with('-')), "an argument for the compiler that sets no lint")?;
    }
    Ok(())
}

/// Accepts that `rustfmt` only checks.
fn format(operands: &[&Argument]) -> Checked {
    const OPTIONS: &[&str] = &["--check", "-l", "--files-with-diff", "-q", "--quiet", "-v", "--verbose"];
    let is_fine = |operand: &&Argument| operand.as_known().is_some_and(|text| OPTIONS.contains(&text) || text.starts_with("--edition="));
    accept(operands.iter().all(is_fine), "an argument for rustfmt that is not known to be harmless")
}

/// Accepts names of crates of the registry that is configured.
fn crates(operands: &[&Argument]) -> Checked {
    accept(operands.iter().all(|operand| operand.as_known().is_some_and(is_package)), "a crate that is not a plain name")
}

/// Accepts what is written out: it is for the package's own program.
fn literal(operands: &[&Argument]) -> Checked {
    super::checks::literal(operands)
}
