//! Editors, pagers, debuggers, terminals and programs that start others in ways of their own.
//!
//! Most read commands from what they are given, from a file, or from a pipe: nothing but the version is listed, and a list has to say
//! what else is meant. Of pagers those options are listed that change what is shown; `+command`, logs, key files and prompts are not.

use super::checks::{Checked, accept, plain};
use super::{Operands, PROGRAM, Program, Subcommand};
use crate::argument::Argument;

pub const PROGRAMS: &[Program] = &[
    Program {
        names: &[
            "vim",
            "vi",
            "view",
            "nvim",
            "gvim",
            "vimdiff",
            "ex",
            "rvim",
            "nano",
            "pico",
            "emacs",
            "emacsclient",
            "ed",
            "red",
            "micro",
            "hx",
            "helix",
            "joe",
            "mcedit",
            "code",
        ],
        options: "? !--version",
        operands: Operands::AtMost(0),
        runs: Some("the commands that it reads"),
        ..PROGRAM
    },
    Program {
        names: &[
            "gdb",
            "lldb",
            "strace",
            "ltrace",
            "perf",
            "valgrind",
            "rr",
            "bpftrace",
            "script",
            "scriptreplay",
            "expect",
            "unbuffer",
            "rlwrap",
        ],
        options: "? !--version",
        operands: Operands::AtMost(0),
        runs: Some("the program or commands that it is given"),
        ..PROGRAM
    },
    Program {
        names: &["screen", "zellij", "dtach", "abduco", "crontab", "at", "batch", "anacron", "incrontab"],
        options: "? !--version",
        operands: Operands::AtMost(0),
        runs: Some("the commands that it is given"),
        ..PROGRAM
    },
    Program { names: &["tmux"], options: "? !-V", subcommands: TMUX, runs: Some("the commands that it is given"), ..PROGRAM },
    Program { names: &["atq"], options: "-V", operands: Operands::AtMost(0), ..PROGRAM },
    Program {
        names: &[
            "busybox",
            "toybox",
            "chroot",
            "unshare",
            "nsenter",
            "su",
            "runuser",
            "sg",
            "pkexec",
            "run0",
            "gosu",
            "su-exec",
            "setuidgid",
            "setpriv",
            "capsh",
            "parallel",
            "sem",
            "entr",
            "watchexec",
            "nodemon",
            "flock",
            "ssh-agent",
            "dbus-run-session",
            "dbus-launch",
            "systemd-run",
            "fakeroot",
            "xvfb-run",
            "firejail",
            "bwrap",
            "proot",
            "proxychains",
            "proxychains4",
            "torsocks",
            "tini",
            "dumb-init",
            "start-stop-daemon",
            "run-parts",
            "hyperfine",
            "xterm",
            "setarch",
            "linux32",
            "linux64",
            "cgexec",
            "prlimit",
            "numactl",
            "faketime",
            "direnv",
            "asdf",
            "mise",
            "rbenv",
            "op",
            "doppler",
            "aws-vault",
            "cpulimit",
        ],
        options: "? !--version",
        operands: Operands::AtMost(0),
        runs: Some("the program that it is given"),
        ..PROGRAM
    },
    Program {
        names: &["less", "zless"],
        options: "-N -S -R -r -F -X -i -I -M -m -E -e -s -n -f -g -G --LINE-NUMBERS --chop-long-lines --RAW-CONTROL-CHARS \
        --quit-if-one-screen --no-init \
                  --ignore-case -V --version",
        operands: Operands::Checked(pages),
        ..PROGRAM
    },
    Program { names: &["more"], options: "-d -f -l -c -s -u -p -NUM -V --version", operands: Operands::Checked(pages), ..PROGRAM },
    Program {
        names: &["man"],
        options: "-k --apropos -f --whatis -a --all -w --where --path -V --version",
        operands: Operands::Checked(manuals),
        ..PROGRAM
    },
];

/// TABLE: what `tmux` shows. Formats (`-F`) start programs, and `;` begins another command.
const TMUX: &[Subcommand] = &[
    Subcommand { names: "ls list-sessions", options: "", operands: Operands::AtMost(0) },
    Subcommand { names: "list-windows list-panes", options: "-a -s", operands: Operands::AtMost(0) },
];

/// Accepts files, and no command (`+command`).
fn pages(operands: &[&Argument]) -> Checked {
    super::checks::files(operands)
}

/// Accepts names of pages, and no files.
fn manuals(operands: &[&Argument]) -> Checked {
    plain(operands)?;
    accept(operands.iter().all(|operand| !operand.text.contains('/')), "a manual page from a file")
}
