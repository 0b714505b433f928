//! Testing the jail: lines that certainly do harm have to be seen in each shell.

use anyhow::Result;

use super::run::{Run, Runner, Shell};
use crate::commands::finding::Harm;
use crate::commands::rules::RULE_SETS;

/// What a line has to be seen as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Ran(&'static str),
    Wrote(&'static str),
    Connected,
    Endless,
    Nothing,
}

/// Lines by the rule set whose programs are real, and what they do. A listed program that reaches another is among them.
const LINES: [(&str, &str, Seen); 39] = [
    ("ls", "canary", Seen::Ran("/usr/bin/canary")),
    ("ls", "canary one two", Seen::Ran("canary one two")),
    ("ls", "ls; rm -rf notes.txt", Seen::Ran("/usr/bin/rm -rf notes.txt")),
    ("ls", "/bin/sh -c :", Seen::Ran("/bin/sh")),
    ("ls", "/usr/bin/env ls", Seen::Ran("/usr/bin/env")),
    ("ls", "/usr/lib/git-core/git-shell", Seen::Ran("git-shell")),
    ("ls", "./run.sh", Seen::Ran("./run.sh")),
    ("ls", "PATH=bin; ls", Seen::Ran("bin/ls")),
    ("ls", "ls & canary &", Seen::Ran("canary")),
    ("ls", "(ls; (ls; canary) &) &", Seen::Ran("canary")),
    ("ls", "cat notes.txt", Seen::Ran("/usr/bin/cat notes.txt")),
    ("ls", "touch x; id", Seen::Ran("touch")),
    ("ls", "while read x; do $x; done", Seen::Ran("canary")),
    ("ls", "ls;-la", Seen::Ran("-la")),
    ("ls", "ls; there-is-none a", Seen::Ran("there-is-none")),
    ("ls", "ls | nope 2>&1 | ls; noone", Seen::Ran("noone")),
    ("rich", "timeout 1 there-is-none", Seen::Ran("there-is-none")),
    ("rich", "find . -maxdepth 0 -exec canary {} ';'", Seen::Ran("canary .")),
    ("rich", "echo x | xargs canary", Seen::Ran("canary x")),
    ("rich", "env x=1 canary", Seen::Ran("canary")),
    ("rich", "git -c alias.x='!canary;' x", Seen::Ran("/bin/sh")),
    ("rich", "sed 1ecanary notes.txt", Seen::Ran("sh")),
    ("rich", "awk 'BEGIN { system(\"canary\") }'", Seen::Ran("sh")),
    ("rich", "awk 'BEGIN { print \"x\" > \"pwned\" }'", Seen::Wrote("/work/pwned")),
    ("rich", "tar cf /dev/null --checkpoint=1 --checkpoint-action=exec=canary notes.txt", Seen::Ran("canary")),
    ("rich", "sort -o notes.txt a.txt", Seen::Wrote("/work/notes.txt")),
    ("rich", "git config alias.x '!canary'", Seen::Wrote("/work/.git/config")),
    ("rich", "cd sub; find . -delete", Seen::Wrote("/work/sub/")),
    ("ls", "echo x >x.txt", Seen::Wrote("/work/x.txt")),
    ("ls", "echo x >notes.txt", Seen::Wrote("/work/notes.txt")),
    ("ls", ": >/tmp/x", Seen::Wrote("/tmp/x")),
    ("ls", ": >../x", Seen::Wrote("/x")),
    ("ls", "echo x >>~/.profile", Seen::Wrote("/home/agent/.profile")),
    ("small", "echo 'https://127.0.0.1/' | cat >sub/new", Seen::Wrote("/work/sub/new")),
    ("rich", "git ls-remote git://127.0.0.1/x", Seen::Connected),
    ("rich", "git ls-remote git://192.0.2.1/x", Seen::Connected),
    ("ls", "f() { f | f & }; f; read x", Seen::Endless),
    ("small", "ls -la; cat notes.txt | cat; echo x >out/x; echo y >/work/out/y; sleep", Seen::Ran("sleep")),
    ("small", "ls -la; cat notes.txt | cat; echo x >out/x; echo y >/work/out/y; pwd >/dev/null; false", Seen::Nothing),
];

impl Seen {
    fn fits(self, harm: Option<&Harm>) -> bool {
        match (self, harm) {
            (Self::Ran(what), Some(Harm::Ran(ran))) => ran.contains(what),
            (Self::Wrote(what), Some(Harm::Wrote(path))) => path.starts_with(what),
            (Self::Connected, Some(Harm::Connected)) | (Self::Endless, Some(Harm::Endless)) | (Self::Nothing, None) => true,
            _ => false,
        }
    }
}

/// Runs the lines in each shell and returns what was not seen as it should be, in a sentence each.
///
/// # Errors
/// If a line cannot be run.
pub(in crate::commands) fn self_test(runner: &mut Runner) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for set in &RULE_SETS {
        runner.use_programs(set)?;
        for (_, line, seen) in LINES.iter().filter(|(name, ..)| *name == set.name) {
            for shell in Shell::ALL {
                let harm = runner.harm(Run { line, folder: "/work", set }, &[shell])?;
                let harm = harm.map(|(_, harm)| harm);
                if !seen.fits(harm.as_ref()) {
                    faults.push(format!("{}: {line:?} has to be {seen:?}, but was {harm:?}", shell.name()));
                }
            }
        }
    }
    Ok(faults)
}
