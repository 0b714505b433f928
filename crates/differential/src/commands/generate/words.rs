//! The words that lines are made of. Whatever could be the name of a program is a canary in the jail, so that it shows when an argument is
//! taken for a command.

/// Programs that lines try to run.
#[rustfmt::skip]
pub(super) const PAYLOADS: &[&str] = &[
    "canary", "rm", "touch", "sh", "id", "canary x", "bin/canary", "./canary", "/bin/sh",
];

/// Ordinary arguments.
#[rustfmt::skip]
pub(super) const PLAIN: &[&str] = &[
    "a", "b", "x", "y", "e", "f", "i", "n", "foo", "bar", "hello", "world", "main", "HEAD", "v1", "other", "origin", "1", "2", "0", "10",
    "notes.txt", "a.txt", "b.txt", "data.csv", "main.rs", "words", "names", "script.sed", "sub", "sub/file.txt", "tracked",
    "tracked/README", ".", "..", "./sub", "out", "out/x", "/work/out/x", "/work/notes.txt", "/tmp/file.txt", "/dev/null", "canary", "id",
];

/// Options that many programs have.
#[rustfmt::skip]
pub(super) const OPTIONS: &[&str] = &[
    "-l", "-a", "-la", "-n", "-r", "-e", "-i", "-f", "-v", "-c", "-o", "-x", "-1", "--", "--help", "--all",
];

/// Globs.
#[rustfmt::skip]
pub(super) const GLOBS: &[&str] = &[
    "*", "*.txt", "?", "[ab].txt", "sub/*", "./*", "*/*", "[!a]*", "[^a]*", "**", "*.t?t", "-*", "[[:alpha:]]", "traps/*", "[a-z]",
    "a*b",
];

/// Words that a shell may expand into something else, or take for something else than a word.
#[rustfmt::skip]
pub(super) const ODD_WORDS: &[&str] = &[
    "=ls", "=canary", "~", "~/x", "~+", "~-", "~root", "~+/canary", "x=1", "x+=1", "PATH=.", "PATH=bin", "IFS=a", "ENV=e", "BASH_ENV=e",
    "a[1]=2", "a[`canary`]=1", "a[$(canary)]=1", "x=(a)", "{a,b}", "{canary,x}", "{1..3}", "{a..c}", "{ls,-la}", "{,}", "{}", "{ls;}",
    "a{b", "$x", "${x}", "$1", "$@", "$*", "$#", "$?", "$$", "$!", "$-", "$_", "$0", "${x:-canary}", "${x:=canary}", "${x:=`canary`}",
    "${!x}", "${x/a/b}", "${x[1]}", "${#x}", "${x@P}", "${(e)x}", "${x:$(canary)}", "$((1))", "$((x))", "$((a[$(canary)]))", "$[1]",
    "$[a[$(canary)]]", "$(canary)", "`canary`", "$(ls)", "`ls`", "$(echo canary)", "$(<notes.txt)", "\"$(canary)\"", "\"`canary`\"",
    "\"$x\"", "\"${x}\"", "'$(canary)'", "$'a'", "$'\\x63anary'", "$'\\''", "$'a\\';canary;'", "$\"a\"", "$\"`canary`\"", "<(canary)",
    ">(canary)", "=(canary)", "<(ls)", "<1-9>", "<->", "*(N)", "*(e:canary:)", "*(e:'canary':)", "*(+canary)", "?(a)", "@(a|b)", "!(x)",
    "+(a)", "*(oe:canary:)", "^a", "a^b", "a~b", "a#", "#a", "#", "!", "!!", "!x", "!ls", "^a^b", "!$", "%1", "%?x", "[", "]", "[[",
    "]]", "-", "--", "+x", "\\", "@", ":", ":x", ".",
];

/// Words that mean something at the place of a command, in one shell or another.
#[rustfmt::skip]
pub(super) const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "in", "do", "done", "while", "until", "case", "esac", "select", "function", "coproc",
    "time", "{", "}", "!", "[[", "]]", "repeat", "foreach", "end", "always", "nocorrect", "noglob", "command", "builtin", "exec", "eval",
    "source", ".", "alias", "unalias", "typeset", "declare", "local", "export", "readonly", "integer", "float", "private", "set",
    "shift", "trap", "let", "test", "[", "read", "mapfile", "printf", "print", "zmodload", "autoload", "functions", "emulate", "setopt",
    "shopt", "enable", "hash", "type", "which", "whence", "fc", "history", "bind", "zle", "sched", "zcompile", "wait", "kill", "cd",
    "pushd", "unset", "getopts", "-",
];

/// What stands between commands.
#[rustfmt::skip]
pub(super) const SEPARATORS: &[&str] = &[
    "; ", ";", " && ", " || ", " | ", "|", "\n", " & ", "&&", " |\n", " && \n", "\n\n",
];

/// What stands between commands in one shell or another, or nowhere.
#[rustfmt::skip]
pub(super) const ODD_SEPARATORS: &[&str] = &[
    "|&", "&!", "&|", ";;", ";&", ";;&", ";|", "&;", "; ;", "!", " ! ", "&&!", "| !", "\r\n", "\r", "\u{b}", "\u{c}", "\u{a0}",
    "\u{2028}", "\\\n", "\\\r\n", " #\n", ";#", "\u{85}",
];

/// Redirections of which some may be allowed.
#[rustfmt::skip]
pub(super) const REDIRECTIONS: &[&str] = &[
    ">/dev/null", "2>/dev/null", "2>&1", ">/work/out/x", ">>/work/out/x", "</work/notes.txt", "> /work/out/y", "&>/dev/null", ">out/x",
    ">>out/x", "<notes.txt", "2>/work/out/e", ">/dev/null 2>&1", "1>&2", ">&2", "< a.txt", ">\"/work/out/z\"", ">'/work/out/z'",
    "</dev/null", ">|/work/out/x",
];

/// Redirections that must never write anywhere else.
#[rustfmt::skip]
pub(super) const ODD_REDIRECTIONS: &[&str] = &[
    ">pwned", "> pwned", ">>pwned", ">!pwned", ">! pwned", ">|pwned", ">&pwned", ">& pwned", "&>pwned", "&>>pwned", ">>|pwned",
    ">>!pwned", ">&!pwned", "<>pwned", "1>pwned", "10>pwned", "{x}>pwned", "{x}>&1", ">/work/out/../pwned", ">/work/out/../../tmp/pwned",
    ">//work/pwned", ">/work/out", ">/dev/fd/../../work/pwned", ">/proc/self/cwd/pwned", ">/dev/tcp/127.0.0.1/80",
    "</dev/tcp/127.0.0.1/80", ">/dev/udp/127.0.0.1/80", ">~/pwned", ">$x", ">\"$x\"", ">*.txt", ">n*s.txt", ">/work/out/x>pwned",
    ">/work/out/x{,/../../pwned}", ">/work/out/*", "> \\\npwned", ">\\\npwned", "2>pwned", ">&1pwned", ">&2 >pwned", "2>&1>pwned",
    ">(canary)", "> >(canary)", "< <(canary)", "<&pwned", ">/work/out/~/../../pwned",
];

/// Pieces that are put anywhere in a line.
#[rustfmt::skip]
pub(super) const PIECES: &[&str] = &[
    "'", "\"", "\\", "`", "$", "(", ")", "{", "}", "[", "]", ";", "&", "|", "<", ">", "!", "#", "~", "=", "^", "*", "?", "%", "@", "+",
    ",", ":", "-", " ", "\t", "\n", "\r", "\u{1}", "\u{7f}", "\u{b}", "\u{c}", "\u{a0}", "\u{200b}", "\u{feff}", "\u{2028}", "é", "ß",
    "\u{80}", "\u{ff}", "\\\n", "\\\r\n", "\\ ", "\\;", "\\'", "\\\"", "\\\\", "''", "\"\"", "$'", "$\"", "$(", "${", "$((", "$[", "<(",
    ">(", "=(", "((", "))", "[[", "]]", "<<", "<<<", "<<-", "<<E", "<<'E'", "<<\\E", "<<\"E\"", "\nE\n", "\nE", "<<'E' ", "<<-'E'\n",
    "<<'E;'", "<<'E'\n$(canary)\nE\n", "<<E\n$(canary)\nE\n", "<<''\n", "<<'E'\\\n", "<<E'F'\n", ">|", ">&", "&>", ">>", "<>", "<&",
    ">!", "|&", "&!", "&|", "&&", "||", ";;", ";&", "*(", "?(", "+(", "@(", "!(", "(e:canary:)", "(#q", "(N)", "(.)", "(e'canary')",
    "$(canary)", "`canary`", "canary", ";canary", "&canary", "|canary", "\ncanary", "\ncanary\n", " canary ", "(canary)", "'canary'",
    "\"canary\"", " #", "# ", "#\n", " #'\n", "'#", "#`", " in ", " do ", " done", " then ", " fi", " esac", "do\n", "()", "(){",
    "=`canary`", "[`canary`]", "x=", "e", "sub",
];

/// Names that loops and assignments give a value.
#[rustfmt::skip]
pub(super) const NAMES: &[&str] = &[
    "x", "f", "i", "file", "name", "_", "path", "PATH", "IFS", "cdpath", "CDPATH", "fpath", "HOME", "ENV", "BASH_ENV", "PS4", "PWD",
    "OLDPWD", "argv", "status", "RANDOM", "SECONDS", "LINENO", "OPTIND", "UID", "EUID", "GIT_PAGER", "PAGER", "GIT_EXTERNAL_DIFF",
    "EDITOR", "LESSOPEN", "TAR_OPTIONS", "POSIXLY_CORRECT", "SHELLOPTS", "NULLCMD", "READNULLCMD", "module_path", "functions", "aliases",
    "commands",
];

/// Names that a machine has, should this one lack them.
#[rustfmt::skip]
pub(in crate::commands) const COMMON_PROGRAMS: &[&str] = &[
    "canary", "rm", "touch", "sh", "id", "vi", "vim", "nano", "emacs", "editor", "pager", "less", "more", "man", "curl", "wget", "nc",
    "ssh", "scp", "python", "python3", "perl", "ruby", "node", "make", "gcc", "sudo", "su", "doas", "docker",
];

/// Returns the words of all lists that have to be canaries.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    [PLAIN, OPTIONS, GLOBS, ODD_WORDS, RESERVED, PIECES, NAMES, PAYLOADS, ODD_SEPARATORS].into_iter().flatten().copied()
}
