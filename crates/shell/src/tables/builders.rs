//! Programs that build and run what the project's files say: `make`, `ninja`, `cmake`, `just`, `bazel`, `terraform` and their like.
//!
//! Left out: other files of instructions (`-f`, `-P`), shells and variables (`make VAR=value`, `--eval`, `just --set`), launchers, and
//! places to write to. A folder (`-C`) is as good as `cd`. What is built is named plainly, because recipes put it into commands. What
//! applies changes elsewhere (`terraform apply`, `ansible-playbook`) a list has to name.

use super::checks::{Checked, accept, files, plain};
use super::{Operands, PROGRAM, Program, Style, Subcommand, checked};
use crate::argument::Argument;

pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["make", "gmake"],
        options: "-n --just-print --dry-run --recon -k --keep-going -s --silent --quiet -B --always-make -i --ignore-errors \
        -j[=N] --jobs[=N] -C=BELOW \
                  --directory=BELOW -q --question -t --touch --no-print-directory -v --version",
        operands: Operands::Checked(plain),
        runs: Some("the recipes of the makefile"),
        ..PROGRAM
    },
    Program {
        names: &["ninja", "ninja-build", "samu"],
        options: "-C=BELOW -j=WORD -k=WORD -l=WORD -n -v --verbose --quiet --version",
        operands: Operands::Checked(plain),
        runs: Some("the commands of the build file"),
        ..PROGRAM
    },
    Program {
        names: &["cmake"],
        options: "--version --build=FILE -t=BELOW --target=BELOW -j[=N] --parallel[=N] --config=NAME --clean-first -v \
        --verbose -S=FILE -B=BELOW \
                  -G=NAME -D=CMAKE --fresh",
        operands: Operands::Checked(sources),
        runs: Some("the commands of the project's CMakeLists.txt and build files"),
        ..PROGRAM
    },
    Program {
        names: &["ctest"],
        options: "--version -V --verbose --extra-verbose --output-on-failure -j[=N] --parallel[=N] -N --show-only -R=EXPRESSION \
                  --tests-regex=EXPRESSION -E=EXPRESSION -L=EXPRESSION -C=NAME --test-dir=BELOW --rerun-failed --stop-on-failure \
                  --timeout=NAME",
        style: Style::Anywhere,
        operands: Operands::Checked(plain),
        runs: Some("the tests of the build folder"),
        ..PROGRAM
    },
    Program {
        names: &["just"],
        options: "-l --list --summary -n --dry-run -q --quiet -v --verbose --show=NAME -s=NAME --color=NAME --unsorted -u --version -V",
        operands: Operands::Checked(plain),
        runs: Some("the recipes of the justfile"),
        ..PROGRAM
    },
    Program {
        names: &["rake"],
        options: "-T --tasks -n --dry-run -q --quiet -v --verbose -P --prereqs --version -V",
        operands: Operands::Checked(plain),
        runs: Some("the tasks of the Rakefile"),
        ..PROGRAM
    },
    Program {
        names: &["bazel", "bazelisk"],
        options: "--version",
        subcommands: BAZEL,
        runs: Some("the rules and tests of the workspace"),
        ..PROGRAM
    },
    Program {
        names: &["terraform", "tofu"],
        style: Style::Words,
        options: "-chdir[=FILE] -version --version",
        subcommands: TERRAFORM,
        runs: Some("the configuration's providers and data sources"),
        ..PROGRAM
    },
    Program {
        names: &[
            "ansible",
            "ansible-playbook",
            "ansible-galaxy",
            "ansible-inventory",
            "vagrant",
            "packer",
            "pulumi",
            "serverless",
            "meson",
            "scons",
            "earthly",
            "skaffold",
            "tilt",
            "buck",
            "buck2",
            "pants",
            "waf",
            "task",
            "mage",
            "act",
            "pre-commit",
        ],
        options: "? !--version",
        operands: Operands::AtMost(0),
        runs: Some("the commands of the files that it is given"),
        ..PROGRAM
    },
    Program {
        names: &["bundle", "bundler"],
        options: "--version -v",
        subcommands: BUNDLE,
        runs: Some("the project's Gemfile and its gems"),
        ..PROGRAM
    },
    Program { names: &["gem"], options: "--version -v", subcommands: GEM, ..PROGRAM },
    Program {
        names: &["composer"],
        options: "-V --version -n --no-interaction -q --quiet --no-ansi",
        subcommands: COMPOSER,
        runs: Some("the package's scripts and plugins"),
        ..PROGRAM
    },
    Program {
        names: &["dotnet"],
        options: "--version --info --list-sdks --list-runtimes",
        subcommands: DOTNET,
        runs: Some("the project's build and tests"),
        ..PROGRAM
    },
    Program { names: &["mix"], options: "-v --version", subcommands: MIX, runs: Some("the project's tasks and tests"), ..PROGRAM },
];

/// TABLE: subcommands of `bazel`.
const BAZEL: &[Subcommand] = &[
    checked(
        "build test coverage",
        labels,
        "-c=NAME --compilation_mode=NAME --config=NAME -k --keep_going -j=NAME --jobs=NAME --verbose_failures --test_output=NAME \
         --test_filter[=WORD] --test_timeout=NAME --test_tag_filters=NAME --nocache_test_results --build_tests_only --noshow_progress",
    ),
    checked("query cquery", labels, "--output=NAME --keep_going -k --noimplicit_deps --notool_deps"),
    checked("info version", plain, ""),
];

/// TABLE: subcommands of `terraform` that change nothing elsewhere.
const TERRAFORM: &[Subcommand] = &[
    checked("version", plain, "-json"),
    checked("validate", plain, "-json -no-color"),
    checked("fmt", files, "-check -diff -recursive -list[=WORD] -write[=WORD] -no-color"),
    checked("init", none, "-input[=WORD] -no-color -upgrade -backend[=WORD] -reconfigure -lockfile=WORD"),
    checked(
        "plan",
        none,
        "-input[=WORD] -no-color -detailed-exitcode -refresh[=WORD] -refresh-only -compact-warnings -json -lock[=WORD] \
             -lock-timeout=WORD -parallelism=WORD -target=WORD -destroy",
    ),
    checked("show", files, "-json -no-color"),
    checked("output", plain, "-json -raw -no-color"),
    checked("providers graph get", none, "-no-color"),
    checked("state.list state.show", literal, "-no-color -id=WORD"),
    checked("workspace.list workspace.show", none, "-no-color"),
];

/// TABLE: subcommands of `bundle`. What `bundle exec` starts is a command of its own.
const BUNDLE: &[Subcommand] = &[
    Subcommand { names: "exec", options: "", operands: Operands::Command { assignments: false } },
    checked("install", none, "-j=NAME --jobs=NAME --quiet --local --prefer-local --retry=NAME --frozen --verbose"),
    checked("check list outdated env", none, "--verbose --name-only --paths --strict --parseable"),
    checked("show info", plain, "--paths --path"),
];

/// TABLE: what `gem` answers.
const GEM: &[Subcommand] = &[
    checked("list", plain, "-l --local -a --all -d --details --no-versions --versions -q --quiet -i --installed -e --exact"),
    checked("env environment which contents dependency", plain, "-l --local -a --all -q --quiet"),
];

/// TABLE: subcommands of `composer`.
const COMPOSER: &[Subcommand] = &[
    checked(
        "install",
        none,
        "--no-dev --dev --prefer-dist --prefer-source --no-progress --no-scripts --no-autoloader -o \
             --optimize-autoloader --dry-run -n --no-interaction -q --quiet -v --ignore-platform-reqs",
    ),
    checked(
        "validate diagnose dump-autoload dumpautoload check-platform-reqs licenses",
        none,
        "--strict --no-check-all --no-check-publish -o --optimize --no-dev -q --quiet -n --no-interaction",
    ),
    checked(
        "show info outdated why depends why-not prohibits",
        packages,
        "-i --installed -l --latest -t --tree -D --direct -a --all --format=NAME -n --no-interaction",
    ),
    checked("run-script run test", plain, "-l --list -n --no-interaction -q --quiet --no-dev --dev"),
];

/// TABLE: subcommands of `dotnet`. What begins with `/` is an option for the build.
const DOTNET: &[Subcommand] = &[
    checked(
        "build",
        projects,
        "-c=NAME --configuration=NAME -f=NAME --framework=NAME --no-restore --no-dependencies --no-incremental \
             --nologo -v=WORD --verbosity=WORD",
    ),
    checked(
        "test",
        projects,
        "-c=NAME --configuration=NAME -f=NAME --framework=NAME --no-restore --no-build --nologo --filter=WORD -t \
             --list-tests -v=WORD --verbosity=WORD",
    ),
    checked("run", projects, "-c=NAME --configuration=NAME -f=NAME --framework=NAME --project=FILE --no-restore --no-build"),
    checked("restore clean", projects, "--nologo --no-cache -v=WORD --verbosity=WORD"),
    checked("format", projects, "--verify-no-changes --no-restore -v=WORD --verbosity=WORD"),
];

/// TABLE: subcommands of `mix`.
const MIX: &[Subcommand] = &[
    checked(
        "test",
        files,
        "--trace --only=WORD --exclude=WORD --include=WORD --seed=WORD --max-failures=WORD --failed --stale --cover --color \
        --no-color --slowest=WORD \
         --warnings-as-errors --no-start --no-compile --no-deps-check",
    ),
    checked("compile", none, "--force --warnings-as-errors --all-warnings --no-deps-check"),
    checked("format", files, "--check-formatted --dry-run"),
    checked(
        "deps.get deps deps.tree deps.compile app.tree phx.routes help credo dialyzer hex.outdated",
        plain,
        "--only=WORD --all --strict",
    ),
];

/// Accepts no operands.
fn none(operands: &[&Argument]) -> Checked {
    super::checks::none(operands)
}

/// Accepts what is written out.
fn literal(operands: &[&Argument]) -> Checked {
    super::checks::literal(operands)
}

/// Accepts names of packages.
fn packages(operands: &[&Argument]) -> Checked {
    accept(operands.iter().all(|operand| operand.as_known().is_some_and(|text| !text.starts_with('-'))), "a package that is computed")
}

/// Accepts the folder of a project.
fn sources(operands: &[&Argument]) -> Checked {
    plain(operands)
}

/// Accepts labels of targets, and queries for them.
fn labels(operands: &[&Argument]) -> Checked {
    let is_fine = |text: &str| !text.starts_with('-') || text.starts_with("-//");
    accept(operands.iter().all(|operand| operand.as_known().is_some_and(is_fine)), "a target that is not a plain label")
}

/// Accepts projects and folders.
fn projects(operands: &[&Argument]) -> Checked {
    plain(operands)?;
    accept(operands.iter().all(|operand| !operand.text.starts_with('/')), "an option for the build")
}
