//! `mvn`, `gradle` and their like: the project's build by its usual goals and tasks.
//!
//! Left out: goals of plugins, which `mvn` fetches by name from where it likes; properties that name programs, classes or files (`-D`,
//! `-P`); other build files, settings and scripts (`-f`, `-s`, `-b`, `-I`, `--include-build`), logs (`-l`), and `--scan`, which uploads.

use super::checks::{Checked, accept, plain};
use super::{Operands, PROGRAM, Program, Style};
use crate::argument::Argument;

pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["mvn"],
        style: Style::Anywhere,
        options: "-v --version -B --batch-mode -q --quiet -X --debug -e --errors -o --offline -U --update-snapshots -am --also-make -amd \
                  --also-make-dependents -ntp --no-transfer-progress -fae --fail-at-end -ff --fail-fast -N --non-recursive -pl=WORD \
                  --projects=WORD -rf=WORD -T=WORD --threads=WORD -DskipTests[=WORD] -Dtest[=WORD] -Dit.test[=WORD] -DskipITs[=WORD] \
                  -Dmaven.test.skip[=WORD] -DfailIfNoTests[=WORD] -Dsurefire.failIfNoSpecifiedTests[=WORD] -DtrimStackTrace[=WORD] \
                  -Dstyle.color[=WORD]",
        operands: Operands::Checked(goals),
        runs: Some("the plugins and tests of the project"),
        ..PROGRAM
    },
    Program {
        names: &["gradle"],
        options: "-q --quiet -i --info -s --stacktrace -S --full-stacktrace -w --warn --no-daemon --daemon --offline \
        --rerun-tasks --continue \
                  -x=WORD --exclude-task=WORD --console=WORD --parallel --no-parallel --build-cache --no-build-cache -m --dry-run \
                  --tests=WORD --warning-mode=WORD --configure-on-demand --status -v --version",
        operands: Operands::Checked(plain),
        runs: Some("the build scripts and tests of the project"),
        ..PROGRAM
    },
    Program {
        names: &["ant", "sbt", "lein", "clojure", "mill", "scala-cli"],
        options: "? !--version",
        operands: Operands::AtMost(0),
        runs: Some("the build scripts of the project"),
        ..PROGRAM
    },
];

/// Accepts phases of the build, and goals of usual plugins that show or check.
fn goals(operands: &[&Argument]) -> Checked {
    const GOALS: &[&str] = &[
        "clean",
        "validate",
        "compile",
        "test-compile",
        "process-resources",
        "test",
        "package",
        "integration-test",
        "verify",
        "install",
        "dependency:tree",
        "dependency:resolve",
        "dependency:analyze",
        "spotless:check",
        "spotless:apply",
        "checkstyle:check",
        "surefire:test",
        "failsafe:integration-test",
    ];
    accept(operands.iter().all(|goal| goal.as_known().is_some_and(|goal| GOALS.contains(&goal))), "a goal that is not one of the usual")
}
