//! `pip`, `pytest`, `tox`, `uv`, `poetry` and their like: the project's tests, and its dependencies by plain names.
//!
//! Left out: other indexes and packages from addresses (`--index-url`, `--find-links`, `-e git+…`), places to write to (`--target`,
//! `--log`, `--junitxml`), files and modules that are loaded (`-c`, `-p`, `-W`, `--rootdir`), debuggers, which read commands, and files of
//! arguments (`@file`), which `pytest` reads wherever they stand.

use super::checks::{Checked, accept, files, is_package, none, packages};
use super::values::is_below;
use super::{Operands, PROGRAM, Program, Subcommand, checked};
use crate::argument::Argument;

const INSTALLS: Option<&str> = Some("what packages run when they are installed");

pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["pip", "pip3"],
        options: "-V --version -q --quiet -v --verbose --disable-pip-version-check --no-input --no-color --no-cache-dir",
        subcommands: PIP,
        runs: INSTALLS,
        ..PROGRAM
    },
    Program {
        names: &["pytest", "py.test"],
        options: PYTEST,
        operands: Operands::Checked(files),
        runs: Some("the project's tests and their configuration"),
        ..PROGRAM
    },
    Program {
        names: &["tox", "nox"],
        options: "--version -e=NAME -s=NAME -l --list --listenvs -q -v -r --recreate -k=EXPRESSION -p[=NAME] --parallel[=NAME] \
        --skip-missing-interpreters -R \
                  --no-install",
        operands: Operands::Checked(none),
        runs: Some("the commands of the project's configuration"),
        ..PROGRAM
    },
    Program {
        names: &["uv"],
        options: "-V --version -q --quiet -v --verbose --no-progress --offline",
        subcommands: UV,
        runs: INSTALLS,
        ..PROGRAM
    },
    Program {
        names: &["poetry"],
        options: "-V --version -n --no-interaction -q --quiet -v",
        subcommands: POETRY,
        runs: INSTALLS,
        ..PROGRAM
    },
    Program { names: &["pipenv"], options: "--version --venv --where", subcommands: PIPENV, runs: INSTALLS, ..PROGRAM },
    Program {
        names: &["pdm", "hatch", "rye", "conda", "mamba", "micromamba", "pyenv", "pipx", "uvx"],
        options: "? !--version !-V",
        operands: Operands::AtMost(0),
        ..PROGRAM
    },
];

/// TABLE: options of `pytest`. Versions before 5.4 evaluate what `-k` and `-m` say.
const PYTEST: &str = "-v --verbose -q --quiet -x --exitfirst -s -k=EXPRESSION -m=EXPRESSION --lf --last-failed --ff --failed-first --nf \
                      --new-first --sw --stepwise --stepwise-skip --tb=NAME --maxfail=NAME -l --showlocals --no-showlocals \
                      --durations=NAME --durations-min=NAME --collect-only --co -r=NAME --no-header --no-summary --disable-warnings \
                      --disable-pytest-warnings -p=DISABLED -W=WARNING -n=NAME --numprocesses=NAME --dist=NAME --cov[=NAME] \
                      --cov-report=NAME --cov-branch --no-cov --cov-fail-under=NAME --timeout=NAME --deselect=WORD --ignore=NAME \
                      --ignore-glob=NAME --color=NAME --cache-clear --fixtures --markers --setup-show --setup-plan --strict-markers \
                      --strict-config --strict --runxfail --capture=NAME --import-mode=NAME --asyncio-mode=NAME --reruns=NAME \
                      --show-capture=NAME --full-trace --forked --version -V -h --help";

const fn starts(names: &'static str, options: &'static str) -> Subcommand {
    Subcommand { names, options, operands: Operands::Command { assignments: false } }
}

/// Options of installing.
macro_rules! install {
    () => {
        "-q --quiet -v --verbose -r=BELOW --requirement=BELOW -c=BELOW --constraint=BELOW -U --upgrade --upgrade-strategy=WORD --user --pre \
         --no-deps --force-reinstall -I --ignore-installed --no-build-isolation --no-cache-dir --break-system-packages --dry-run \
         --disable-pip-version-check --no-input --no-color --progress-bar=WORD --only-binary=WORD --no-binary=WORD --prefer-binary \
         --timeout=WORD --retries=WORD --root-user-action=WORD --no-warn-script-location --no-compile --compile --require-hashes "
    };
}

/// TABLE: subcommands of `pip`. `-e` stands in front of the project's folder, which is an operand here.
const PIP: &[Subcommand] = &[
    checked("install", project_or_packages, concat!(install!(), "-e --editable")),
    checked("uninstall", packages, "-y --yes -r=BELOW --requirement=BELOW -q --quiet -v --break-system-packages --root-user-action=WORD"),
    checked(
        "list freeze",
        none,
        "-o --outdated -u --uptodate -e --editable -l --local --user --pre --format=WORD --not-required --exclude-editable --exclude=WORD \
         --all --disable-pip-version-check -q --quiet -v",
    ),
    checked("show", packages, "-f --files -v --verbose -q --quiet --disable-pip-version-check"),
    checked("check inspect debug", none, "-q --quiet --disable-pip-version-check"),
    checked("index.versions", packages, "--pre --disable-pip-version-check"),
    checked("cache.dir cache.info cache.list", none, ""),
];

/// TABLE: subcommands of `uv`. What `uv run` starts is a command of its own.
const UV: &[Subcommand] = &[
    starts("run", "--frozen --locked --no-sync --no-dev --all-extras --extra=WORD --group=WORD -q --quiet"),
    checked("pip.install", project_or_packages, concat!(install!(), "--system -e --editable")),
    checked("pip.list pip.freeze pip.check pip.tree", none, "--system --format=WORD --outdated -q --quiet"),
    checked("pip.show", packages, "--system -q --quiet -f --files"),
    checked("pip.uninstall", packages, "--system -q --quiet -r=BELOW"),
    checked(
        "sync lock",
        none,
        "--all-extras --extra=WORD --all-groups --group=WORD --no-dev --dev --frozen --locked --upgrade -U \
             --no-install-project --all-packages --check --dry-run -q --quiet",
    ),
    checked("add", packages, "--dev --optional=WORD --group=WORD --extra=WORD --frozen --locked --no-sync -q --quiet"),
    checked("remove", packages, "--dev --optional=WORD --group=WORD --frozen --locked --no-sync -q --quiet"),
    checked("tree", none, "--depth=WORD --prune=WORD --package=WORD --no-dedupe --invert --outdated --frozen --locked"),
    checked("version python.list tool.list cache.dir", none, "--short"),
];

/// TABLE: subcommands of `poetry`. What `poetry run` starts is a command of its own.
const POETRY: &[Subcommand] = &[
    starts("run", ""),
    checked(
        "install sync",
        none,
        "--with=WORD --without=WORD --only=WORD --no-root --sync --no-dev --all-extras --extras=WORD -E=WORD --dry-run \
             -n --no-interaction -q --quiet -v --no-ansi",
    ),
    checked(
        "add",
        packages,
        "-D --dev -G=WORD --group=WORD -E=WORD --extras=WORD --optional --dry-run --lock -n --no-interaction -q \
             --quiet",
    ),
    checked("remove update", packages, "-D --dev -G=WORD --group=WORD --dry-run --lock -n --no-interaction -q --quiet"),
    checked("show", packages, "-t --tree -l --latest -o --outdated -a --all -T --top-level --with=WORD --without=WORD --only=WORD"),
    checked(
        "lock check version env.info env.list",
        none,
        "--no-update --lock -s --short -p --path --strict -n --no-interaction -q --quiet",
    ),
];

/// TABLE: subcommands of `pipenv`. What `pipenv run` starts is a command of its own, or a script of the project.
const PIPENV: &[Subcommand] = &[
    starts("run", ""),
    checked("install update upgrade", packages, "-d --dev --deploy --ignore-pipfile --skip-lock --pre -v --verbose -q --quiet"),
    checked("uninstall", packages, "--all --all-dev --skip-lock"),
    checked(
        "sync clean verify graph lock check scripts",
        none,
        "-d --dev --json --json-tree --bare --reverse --dry-run --clear --pre -q --quiet",
    ),
];

/// Accepts names of packages, and the project itself: `.`, `.[extra]`, a folder below.
fn project_or_packages(operands: &[&Argument]) -> Checked {
    let is_project = |text: &str| {
        let (folder, extras) = text.split_once('[').unwrap_or((text, "]"));
        let is_extra = |byte: u8| byte.is_ascii_alphanumeric() || b",_-".contains(&byte);
        folder.starts_with('.') && is_below(folder) && extras.strip_suffix(']').is_some_and(|extras| extras.bytes().all(is_extra))
    };
    // Without quotes the extras are a glob, which finds them or a folder beside the project.
    let has_extras = |text: &str| text.starts_with(".[") && is_project(text);
    let is_fine = |operand: &&Argument| match operand.as_known() {
        Some(text) => is_project(text) || is_package(text),
        None => has_extras(&operand.text),
    };
    accept(operands.iter().all(is_fine), "a package that is not a plain name")
}
