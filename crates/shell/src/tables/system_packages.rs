//! Package managers of systems: questions to what is installed and to the index that is configured.
//!
//! Left out: all that installs, removes or updates; other settings, roots, indexes and hooks (`-o`, `-c`, `--root`, `--setopt`); what
//! takes a formula or package from a path or an address; macros of `rpm` (`--eval`, `--define`, `--qf`, `--pipe`).

use super::checks::{Checked, accept, packages};
use super::{Operands, PROGRAM, Program, Style, Subcommand, any};
use crate::argument::Argument;

pub const PROGRAMS: &[Program] = &[
    Program { names: &["apt"], options: "--version", subcommands: APT, ..PROGRAM },
    Program { names: &["apt-get"], options: "? !--version !-v", operands: Operands::AtMost(0), ..PROGRAM },
    Program { names: &["apt-cache"], options: "--version -v", subcommands: APT, ..PROGRAM },
    Program { names: &["apt-mark"], options: "--version -v", subcommands: MARK, ..PROGRAM },
    Program {
        names: &["dpkg"],
        options: "? !-l !--list !-L !--listfiles !-s !--status !-S !--search !-p !--print-avail !--get-selections !--print-architecture \
                  !--print-foreign-architectures !--version !-V !--verify !--compare-versions --no-pager",
        ..PROGRAM
    },
    Program {
        names: &["dpkg-query"],
        options: "? !-l !--list !-L !--listfiles !-s !--status !-S !--search !-W !--show -f=WORD --showformat[=WORD] !--version --no-pager",
        ..PROGRAM
    },
    Program {
        names: &["rpm"],
        // Whole words: `-i` alone installs.
        style: Style::Anywhere,
        options: "? !-q !--query !-qa !-qi !-ql !-qf !-qc !-qd !-qR !-qai !-qil !-qif !--version --all --info --list --file --configfiles \
                  --docfiles --requires --provides --changelog --last --triggers --whatprovides --whatrequires",
        operands: Operands::Checked(installed),
        ..PROGRAM
    },
    Program { names: &["yum", "dnf", "microdnf"], options: "--version -q --quiet -C --cacheonly", subcommands: DNF, ..PROGRAM },
    Program { names: &["apk"], options: "--version -V", subcommands: APK, ..PROGRAM },
    Program { names: &["brew"], options: "--version -v", subcommands: BREW, ..PROGRAM },
    Program {
        names: &["pacman"],
        options: "? !-Q !--query !-V !--version -i --info -l --list -s --search -o --owns -e --explicit -d --deps -m \
        --foreign -n --native -t \
                  --unrequired -u --upgrades -q --quiet -g --groups -c --changelog -k --check",
        ..PROGRAM
    },
    // The others connect, install or both: a list has to say what.
    Program {
        names: &["snap", "flatpak", "zypper", "port", "nix", "nix-env", "nix-shell", "guix", "emerge", "opkg", "choco", "winget", "scoop"],
        options: "? !--version",
        operands: Operands::AtMost(0),
        ..PROGRAM
    },
];

const fn named(names: &'static str, options: &'static str) -> Subcommand {
    Subcommand { names, options, operands: Operands::Checked(packages) }
}

/// TABLE: what `apt` and `apt-cache` answer.
const APT: &[Subcommand] = &[
    any("list", "--installed --upgradable --upgradeable --manual-installed -a --all-versions -v --verbose"),
    // `show` may be given a file.
    named("show showpkg showsrc policy madison", "-a --all-versions --no-all-versions -q --quiet"),
    any("search", "-n --names-only -f --full"),
    named("depends rdepends", "-i --important --recurse --installed --no-recommends --no-suggests"),
    any("pkgnames stats", ""),
];

/// TABLE: what `apt-mark` answers.
const MARK: &[Subcommand] = &[any("showauto showmanual showhold", "")];

/// TABLE: what `dnf` answers.
const DNF: &[Subcommand] = &[
    named("list", "-q --quiet --installed --available --upgrades --all --showduplicates"),
    named("info search provides whatprovides", "-q --quiet --installed --available --all"),
    any("repolist check-update", "-q --quiet --all --enabled --disabled -v --verbose"),
];

/// TABLE: what `apk` answers.
const APK: &[Subcommand] = &[
    named(
        "info",
        "-v --verbose -q --quiet -a --all -d --description -e --installed -L --contents -R --depends -w --webpage -W \
             --who-owns -s --size",
    ),
    named("list", "-v --verbose -q --quiet -I --installed -a --available -u --upgradable"),
    named("search", "-v --verbose -q --quiet -a --all -d --description -e --exact -x"),
    named("policy version", "-v --verbose"),
];

/// TABLE: what `brew` answers.
const BREW: &[Subcommand] = &[
    named("list ls", "-1 -l -r -t --full-name --versions --formula --formulae --cask --casks --pinned -v --verbose -q --quiet"),
    named("info", "--json[=WORD] --installed --formula --formulae --cask --casks -v --verbose -q --quiet"),
    named("search", "--formula --formulae --cask --casks --desc"),
    named("deps uses", "--tree --installed -n --full-name --direct --formula --cask"),
    named("outdated leaves", "--json[=WORD] -v --verbose -q --quiet --greedy --formula --cask"),
];

/// Accepts names of packages and paths of files that are installed, and no addresses.
fn installed(operands: &[&Argument]) -> Checked {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-/~*?".contains(&byte));
    accept(operands.iter().all(|operand| operand.as_known().is_some_and(is_plain)), "a name with characters that rpm may read as a macro")
}
