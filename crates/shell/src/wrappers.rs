//! TABLE: programs that start the command which stands among their arguments.
//!
//! A row says how to get past a program's own words. To add a program, write its name, the short options that take a value, the other
//! short options, the long options that take a value as a word of their own, and how many words stand before the command. An option that
//! is not in the row is not guessed at: the allow side refuses it, and the deny side reads the words both ways.

/// How a program takes the command that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// As words: `sudo rm -rf /`.
    Words,
    /// As words that it joins and gives to a shell: `watch 'rm -rf /'`.
    Text,
}

/// A row of the table.
#[derive(Debug)]
pub struct Wrapper {
    /// The program.
    pub name: &'static str,
    /// Short options that take a value.
    pub valued: &'static str,
    /// Short options that take none.
    pub plain: &'static str,
    /// Long options that take a value as the next word. (`--option=value` is one word and always understood.)
    pub long_valued: &'static [&'static str],
    /// Words before the command: a duration, a directory, a user.
    pub before: usize,
    /// How it takes the command.
    pub takes: Takes,
}

const fn words(name: &'static str, valued: &'static str, plain: &'static str, long_valued: &'static [&'static str]) -> Wrapper {
    Wrapper { name, valued, plain, long_valued, before: 0, takes: Takes::Words }
}

const fn after(before: usize, wrapper: Wrapper) -> Wrapper {
    Wrapper { before, ..wrapper }
}

const fn text(wrapper: Wrapper) -> Wrapper {
    Wrapper { takes: Takes::Text, ..wrapper }
}

/// TABLE: the programs, in groups. `NAME=value` words in front of the command are passed over everywhere.
pub const WRAPPERS: &[Wrapper] = &[
    // The shell's own.
    words("builtin", "", "", &[]),
    words("command", "", "p", &[]),
    words("exec", "a", "cl", &[]),
    // As another user.
    words(
        "sudo",
        "CDghpRrTtUu",
        "ABbEeHiKklNnPSsVv",
        &["close-from", "chdir", "group", "host", "prompt", "chroot", "role", "type", "command-timeout", "other-user", "user"],
    ),
    words("doas", "Cu", "Lns", &[]),
    words("pkexec", "", "", &["user"]),
    words("run0", "u", "", &["user", "group", "unit", "property", "slice", "nice", "chdir", "setenv"]),
    words("runuser", "cugG", "lmPp", &["user", "group", "supp-group"]),
    after(1, words("gosu", "", "", &[])),
    after(1, words("su-exec", "", "", &[])),
    after(1, words("setuidgid", "", "", &[])),
    words(
        "setpriv",
        "",
        "",
        &[
            "ruid",
            "euid",
            "rgid",
            "egid",
            "reuid",
            "regid",
            "groups",
            "inh-caps",
            "ambient-caps",
            "bounding-set",
            "securebits",
            "pdeathsig",
        ],
    ),
    // In another environment, root or namespace.
    words("env", "uCS", "0iv", &["unset", "chdir", "split-string"]),
    after(1, words("chroot", "", "", &["userspec", "groups"])),
    words("unshare", "RwSG", "mcruipnUTf", &["root", "wd", "setuid", "setgid", "propagation", "setgroups", "map-user", "map-group"]),
    words("nsenter", "tSGrw", "amuipnCUTF", &["target", "setuid", "setgid"]),
    words("fakeroot", "lsbi", "vh", &["lib", "faked"]),
    words(
        "systemd-run",
        "pGMHuEdt",
        "SqrtP",
        &[
            "unit",
            "property",
            "slice",
            "uid",
            "gid",
            "nice",
            "working-directory",
            "setenv",
            "description",
            "on-active",
            "on-calendar",
            "machine",
            "host",
        ],
    ),
    after(1, words("setarch", "", "RvB3LZ", &[])),
    words("linux32", "", "RvB3LZ", &[]),
    words("linux64", "", "RvB3LZ", &[]),
    words("dbus-run-session", "", "", &["config-file", "dbus-daemon"]),
    words("xvfb-run", "enfps", "al", &["error-file", "server-num", "auth-file", "xauth-protocol", "server-args"]),
    words("firejail", "", "", &[]),
    words("proxychains", "f", "q", &[]),
    words("proxychains4", "f", "q", &[]),
    words("torsocks", "uap", "dqi", &[]),
    words("eatmydata", "", "", &[]),
    words("tini", "p", "gsvw", &[]),
    words("dumb-init", "", "cv", &[]),
    // With other limits, priority or time.
    words("time", "fo", "apqvV", &["format", "output"]),
    words("nice", "n", "0123456789", &["adjustment"]),
    words("ionice", "cnpPu", "t", &["class", "classdata"]),
    words("nohup", "", "", &[]),
    words("setsid", "", "cfw", &[]),
    after(1, words("timeout", "ks", "fpv", &["kill-after", "signal"])),
    after(1, words("gtimeout", "ks", "fpv", &["kill-after", "signal"])),
    words("stdbuf", "ioe", "", &["input", "output", "error"]),
    after(1, words("taskset", "", "ac", &[])),
    after(1, words("chrt", "TPD", "bfiordRav", &["sched-runtime", "sched-period", "sched-deadline"])),
    words("numactl", "NmCpilP", "a", &["cpunodebind", "membind", "physcpubind", "preferred", "interleave"]),
    words("prlimit", "", "", &[]),
    words("cpulimit", "lpeP", "bziv", &["limit", "exe", "path"]),
    words("choom", "n", "", &["adjust"]),
    words("caffeinate", "tw", "dimsu", &[]),
    after(1, words("faketime", "f", "m", &[])),
    // Watched, logged, repeated, locked.
    words("strace", "abeEIoOpPsSuUX", "cCdDfFhiknqrtTvVwxyYzZ", &[]),
    words("ltrace", "aAeDlnopsuxXF", "bcCfhiLrStTV", &[]),
    words("gdb", "", "", &[]),
    words("valgrind", "", "qvh", &[]),
    words("rlwrap", "bCfHlPqrsSt", "aAceimnNopRuvw", &[]),
    words("unbuffer", "", "p", &[]),
    words("chronic", "", "ev", &[]),
    words("ifne", "", "n", &[]),
    text(words("watch", "nq", "bcdegptrwx", &["interval", "equexit"])),
    after(1, words("flock", "cEw", "enosuxFv", &["conflict-exit-code", "timeout", "wait"])),
    words("entr", "", "acdnprsxz", &[]),
    words("watchexec", "wefisEod", "crnqv", &["watch", "exts", "filter", "ignore", "signal", "env", "on-busy-update", "debounce"]),
    words("retry", "", "", &[]),
    // Many programs in one.
    words("busybox", "", "", &[]),
    words("toybox", "", "", &[]),
    // On another machine, by its shell.
    after(1, text(words("ssh", "BbcDEeFIiJLlmOopQRSWw", "46AaCfGgKkMNnqsTtVvXxYy", &[]))),
    after(1, text(words("sshpass", "fdpP", "evhV", &[]))),
];

/// Returns the row of a program, if it starts others.
#[must_use]
pub fn wrapper(program: &str) -> Option<&'static Wrapper> {
    if program.starts_with("ld-linux") || program.starts_with("ld-musl") || program == "ld.so" {
        return Some(&LOADER);
    }
    WRAPPERS.iter().find(|wrapper| wrapper.name == program)
}

/// The row of the dynamic linker, which starts the program that it is given.
const LOADER: Wrapper =
    words("the dynamic linker", "", "", &["library-path", "preload", "argv0", "audit", "inhibit-rpath", "glibc-hwcaps-prepend"]);

/// The programs of the table that start a shell where no command is given; the shell reads what they read.
pub const SHELL_WITHOUT_COMMAND: [&str; 8] = ["sudo", "doas", "run0", "runuser", "chroot", "unshare", "nsenter", "ssh"];

/// The long options without a value, of any program of the table.
pub const LONG_PLAIN: [&str; 22] = [
    "background",
    "ctty",
    "debug",
    "exclusive",
    "fork",
    "foreground",
    "ignore-environment",
    "login",
    "non-interactive",
    "nonblock",
    "null",
    "pipe",
    "preserve-env",
    "preserve-status",
    "quiet",
    "set-home",
    "shared",
    "shell",
    "stdin",
    "verbose",
    "wait",
    "color",
];

/// TABLE: options whose value, the next word or behind `=`, is a text that the program gives to a shell or splits into a command.
pub const TEXT_OPTIONS: &[(&str, &[&str])] = &[
    // The shell's own.
    ("mapfile", &["-C"]),
    ("readarray", &["-C"]),
    ("complete", &["-C"]),
    ("compgen", &["-C"]),
    ("bind", &["-x"]),
    // Users, sessions, locks.
    ("su", &["-c", "--command", "--session-command"]),
    ("runuser", &["-c", "--command", "--session-command"]),
    ("script", &["-c", "--command"]),
    ("flock", &["-c", "--command"]),
    ("env", &["-S", "--split-string"]),
    ("xterm", &["-e"]),
    ("sg", &["-c"]),
    ("start-stop-daemon", &["--exec", "-x", "--startas", "-a"]),
    // Transfers.
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S"]),
    ("sftp", &["-S"]),
    ("wget", &["--use-askpass"]),
    // Archives and filters.
    (
        "tar",
        &["-I", "-F", "--use-compress-program", "--to-command", "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"],
    ),
    ("zip", &["-TT", "--unzip-command"]),
    ("split", &["--filter"]),
    ("sort", &["--compress-program"]),
    ("rg", &["--pre"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    // Developers' tools.
    ("npx", &["-c", "--call"]),
    ("npm", &["-c", "--call"]),
    ("nix-shell", &["--run", "--command"]),
    ("nodemon", &["-x", "--exec"]),
    ("vagrant", &["-c", "--command"]),
    ("gcloud", &["--command"]),
];

/// TABLE: programs and subcommands behind which a command stands that runs elsewhere (in a container, a virtual environment) or by a
/// runner whose options are not listed here. The allow side asks only for the program; the deny side takes every later word for a
/// command's beginning.
pub const RUNNERS: &[(&str, &[&str])] = &[
    ("docker", &["exec", "run"]),
    ("podman", &["exec", "run"]),
    ("nerdctl", &["exec", "run"]),
    ("kubectl", &["exec", "run", "debug"]),
    ("lxc", &["exec"]),
    ("multipass", &["exec"]),
    ("distrobox", &["enter"]),
    ("flatpak", &["run"]),
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("conda", &["run"]),
    ("mamba", &["run"]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("bun", &["x"]),
    ("bundle", &["exec"]),
    ("rbenv", &["exec"]),
    ("pyenv", &["exec"]),
    ("mise", &["exec", "x"]),
    ("asdf", &["exec"]),
    ("direnv", &["exec"]),
    ("nix", &["run", "shell", "develop"]),
    ("op", &["run"]),
    ("doppler", &["run"]),
    ("aws-vault", &["exec"]),
    ("perf", &["stat", "record", "trace"]),
    ("bwrap", &[]),
    ("proot", &[]),
    ("wsl", &[]),
    ("tmux", &[]),
    ("screen", &[]),
    ("hyperfine", &[]),
    ("run-parts", &[]),
    ("capsh", &[]),
    ("ip", &["exec"]),
    ("cgexec", &[]),
    ("dotenv", &[]),
    ("nc", &[]),
    ("ncat", &[]),
    ("expect", &[]),
    ("pwsh", &[]),
    ("nu", &[]),
    ("xonsh", &[]),
];
