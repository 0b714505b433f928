//! `npm`, `yarn`, `pnpm`, `npx`, `node`'s version managers: the package's scripts and its dependencies by plain names.
//!
//! Left out: what runs a package or program that is named (`exec`, `npx`, `dlx`, `create`), settings (`config set`, `--script-shell`,
//! `--registry`, `--userconfig`), packages from addresses, folders or archives, and what is global. Older versions of `npm` give what
//! stands behind `--` to a shell within double quotes, so it must be plain; and they take the value of an
//! option that they do not know for a package, so values stand behind `=`. A folder (`--prefix`) must lie below the working folder.

use super::checks::{Checked, accept, packages, plain, plain_with_options};
use super::{Operands, PROGRAM, Program, Subcommand, checked};
use crate::argument::Argument;

const RUNS: Option<&str> = Some("the package's scripts, and what its dependencies run when they are installed");

pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["npm"],
        options: "-v --version -s --silent -q --quiet --prefix=BELOW --workspace[=WORD] --workspaces",
        subcommands: NPM,
        runs: RUNS,
        ..PROGRAM
    },
    Program { names: &["yarn", "yarnpkg"], options: "-v --version -s --silent --cwd=BELOW", subcommands: YARN, runs: RUNS, ..PROGRAM },
    Program {
        names: &["pnpm"],
        options: "-v --version -s --silent -C=BELOW --dir=BELOW --filter=WORD -r --recursive -w --workspace-root",
        subcommands: PNPM,
        runs: RUNS,
        ..PROGRAM
    },
    Program {
        names: &["npx", "bunx", "pnpx"],
        options: "? !--version",
        operands: Operands::AtMost(0),
        runs: Some("any package that it is given"),
        ..PROGRAM
    },
    Program { names: &["corepack", "nvm", "fnm", "volta"], options: "? !--version", operands: Operands::AtMost(0), ..PROGRAM },
];

/// TABLE: subcommands of `npm`.
const NPM: &[Subcommand] = &[
    checked("run run-script", script, SCRIPT),
    checked("test t tst start stop restart", plain_with_options, SCRIPT),
    checked("ci clean-install install-test it install-ci-test cit", none, INSTALL),
    checked("install i add", packages, INSTALL),
    checked("uninstall remove rm un", packages, INSTALL),
    checked("update up upgrade", packages, INSTALL),
    checked("dedupe prune rebuild", packages, INSTALL),
    checked("audit fund", none, "--json --omit[=WORD] --audit-level[=WORD] --production --dry-run --workspace[=WORD] --workspaces"),
    checked(
        "ls list la ll",
        packages,
        "-a --all --json -l --long -p --parseable --depth=WORD --omit[=WORD] --prod --production --dev \
             --workspace[=WORD] --workspaces",
    ),
    checked("outdated", packages, "-a --all --json -l --long -p --parseable --prefix=BELOW --workspace[=WORD]"),
    checked("explain why", packages, "--json --workspace[=WORD]"),
    checked("view info show v", package_fields, "--json --workspace[=WORD]"),
    checked("version", none, "--json"),
    checked("root bin prefix whoami ping", none, ""),
    checked("query", plain, ""),
    checked("config.get", plain, "--json"),
    checked("config.list config.ls", none, "--json"),
    checked("pkg.get", plain, "--json"),
];

/// Options of scripts.
const SCRIPT: &str = "-s --silent -q --quiet --if-present --ignore-scripts --workspace[=WORD] --workspaces --include-workspace-root \
                      --prefix=BELOW";

/// Options of installing.
const INSTALL: &str = "-s --silent -q --quiet -S --save -D --save-dev -O --save-optional --save-peer -P --save-prod -E --save-exact \
                       -B --save-bundle --no-save --omit[=WORD] --include[=WORD] --production --prefer-offline --prefer-online --offline \
                       --no-audit --no-fund --no-package-lock --package-lock-only --legacy-peer-deps --strict-peer-deps -f --force \
                       --ignore-scripts --no-optional --dry-run --json --progress --no-progress --loglevel=WORD --verbose \
                       --prefix=BELOW --workspace[=WORD] --workspaces";

/// TABLE: subcommands of `yarn`.
const YARN: &[Subcommand] = &[
    checked("run", plain, "-s --silent"),
    checked("test build start lint", plain, "-s --silent"),
    checked(
        "install",
        none,
        "--frozen-lockfile --immutable --immutable-cache --check-cache --pure-lockfile --production --prod --ignore-scripts \
        --ignore-engines \
         --ignore-optional --non-interactive --offline --prefer-offline --silent -s --force --no-progress --json",
    ),
    checked("add", packages, "-D --dev -E --exact -T --tilde -O --optional -P --peer --ignore-scripts --silent -s"),
    checked("remove upgrade up", packages, "--silent -s --ignore-scripts --latest"),
    checked("list", packages, "--depth=WORD --pattern=WORD --json --prod --production"),
    checked("info why outdated", packages, "--json -A --all -R --recursive"),
    checked("workspaces.list workspaces.info", none, "--json"),
    checked("versions licenses.list check", none, "--json"),
];

/// TABLE: subcommands of `pnpm`.
const PNPM: &[Subcommand] = &[
    checked("run", plain, "-s --silent --if-present -r --recursive --parallel --no-bail --filter=WORD"),
    checked("test t start build lint", plain, "-s --silent --if-present -r --recursive --filter=WORD"),
    checked(
        "install i",
        none,
        "--frozen-lockfile --no-frozen-lockfile --lockfile-only --prefer-offline --offline --prefer-frozen-lockfile -P --prod -D --dev \
         --no-optional --ignore-scripts -r --recursive --force --silent -s --filter=WORD",
    ),
    checked(
        "add",
        packages,
        "-D --save-dev -E --save-exact -O --save-optional -P --save-prod --save-peer -w --workspace-root -r \
             --recursive --filter=WORD",
    ),
    checked("remove rm uninstall un update up upgrade", packages, "-r --recursive -L --latest -D --dev -P --prod --filter=WORD"),
    checked("list ls why outdated", packages, "--depth=WORD --json --long --parseable -r --recursive -P --prod -D --dev --filter=WORD"),
    checked("audit", none, "--json --audit-level=WORD -P --prod -D --dev"),
    checked("root bin", none, ""),
];

/// Accepts no operands.
fn none(operands: &[&Argument]) -> Checked {
    super::checks::none(operands)
}

/// Accepts a script's name, and plain arguments for it.
fn script(operands: &[&Argument]) -> Checked {
    let Some((name, rest)) = operands.split_first() else { return Ok(()) };
    plain(&[name])?;
    plain_with_options(rest)
}

/// Accepts a package's name, and names of its fields.
fn package_fields(operands: &[&Argument]) -> Checked {
    let Some((name, rest)) = operands.split_first() else { return Ok(()) };
    packages(&[name])?;
    accept(rest.iter().all(|field| field.as_known().is_some()), "a field that is computed")
}
