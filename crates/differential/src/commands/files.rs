//! The files of the jail that no line may change, and its folders.

/// The work folder.
pub(super) const WORK: &str = "/work";

/// The folder below the work folder that may be written.
pub(super) const OUT: &str = "out";

/// The files that git knows, below `tracked`.
pub(super) const TRACKED: [(&str, &str); 3] =
    [("README", "A small project.\n"), ("main.rs", "fn main() {\n    println!(\"canary\");\n}\n"), ("list.txt", "canary\nrm\nid\n")];

/// Ordinary files, and such as some program takes for more than text.
#[rustfmt::skip]
pub(super) const FILES: [(&str, &str); 20] = [
    ("/work/notes.txt", "one\ntwo\nthree canary\n"), ("/work/data.csv", "a,1\nb,2\nc,3\n"), ("/work/a.txt", "alpha\nbeta\n"),
    ("/work/b.txt", "beta\ngamma\n"), ("/work/main.rs", "fn main() {}\n"), ("/work/e", "canary\n"), ("/work/x", "touch canary\n"),
    ("/work/1", "1\n"), ("/work/script.sed", "1e canary\ns/a/canary/e\nw pwned\n"),
    ("/work/script.awk", "BEGIN { system(\"canary\"); print \"x\" > \"pwned\" }\n"),
    ("/work/words", "canary\n-exec canary ;\n$(canary)\n`canary`\n--output=pwned\n"), ("/work/names", "notes.txt\0a.txt\0"),
    ("/work/sub/file.txt", "text\n"), ("/work/sub/deep/file.txt", "text\n"), ("/work/sub/out/x", "text\n"),
    ("/home/agent/.profile", "# nothing\n"), ("/home/agent/notes.txt", "at home\n"),
    ("/etc/passwd", "root:x:0:0:root:/home/agent:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n"),
    ("/etc/group", "root:x:0:\nagent:x:1000:\n"), ("/tmp/file.txt", "text\n"),
];

/// Canaries outside the folders of programs.
#[rustfmt::skip]
pub(super) const CANARIES: [&str; 9] = [
    "/work/canary", "/work/run.sh", "/work/bin/ls", "/work/bin/echo", "/work/bin/canary", "/work/traps/xargs/canary",
    "/work/traps/find/canary", "/work/sub/canary", "/home/agent/canary",
];

/// Empty files whose names do something where a program takes them for options: a folder for each program.
pub(super) const TRAPS: [(&str, &[&str]); 16] = [
    ("/work/options", &["-exec", "--output=x", "-i", "-n", "-rf", "e", "-delete", "--", "-", "a"]),
    ("/work/traps/find", &["-delete", "a", "b"]),
    ("/work/traps/fprint", &["-fprint", "pwned"]),
    ("/work/traps/sort", &["-opwned", "a", "b"]),
    ("/work/traps/sort2", &["--output=pwned", "a"]),
    ("/work/traps/sort3", &["--compress-program=canary", "-S1b", "a"]),
    ("/work/traps/sed", &["-i", "-ewpwned", "a"]),
    ("/work/traps/sed2", &["--expression=1ecanary", "--in-place", "a"]),
    ("/work/traps/tar", &["--checkpoint-action=exec=canary", "--checkpoint=1", "a"]),
    ("/work/traps/env", &["-Scanary a", "a"]),
    ("/work/traps/git", &["--output=pwned", "-O", "a"]),
    ("/work/traps/printf", &["-v", "a[$(canary)]", "x"]),
    ("/work/traps/test", &["-v", "x[$(canary)]", "a[`canary`]"]),
    ("/work/traps/xargs", &["-I", "canary ", "a"]),
    ("/work/traps/names", &["a b", "$(canary)", "`canary`", "x=1", "PATH=.", "[", "]", "{}", ";", "!", "*", "\n", "=ls", "~", "#", "'"]),
    ("/work/traps/awk", &["-f", "x=1", "BEGIN { system(\"canary\") }", "--", "a"]),
];

/// The folders that lines are run in. The first is the most usual.
#[rustfmt::skip]
pub(super) const FOLDERS: [&str; 18] = [
    "/work", "/work/sub", "/work/options", "/work/bin", "/work/traps/find", "/work/traps/fprint", "/work/traps/sort", "/work/traps/sort2",
    "/work/traps/sort3", "/work/traps/sed", "/work/traps/sed2", "/work/traps/tar", "/work/traps/env", "/work/traps/git",
    "/work/traps/printf", "/work/traps/test", "/work/traps/xargs", "/work/traps/names",
];
