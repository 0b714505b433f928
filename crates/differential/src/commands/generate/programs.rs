//! Arguments of the programs that have options which run, write or connect, near to those that do not.

use fastrand::Rng;

use super::tabled;
use super::words::{GLOBS, PLAIN};

/// The fragments of one program's arguments.
struct Fragments {
    program: &'static str,
    /// Such as are harmless.
    harmless: &'static [&'static str],
    /// Such as are not, or not in every place.
    odd: &'static [&'static str],
}

/// All of them. A fragment is one word or several.
#[rustfmt::skip]
const PROGRAMS: &[Fragments] = &[
    Fragments {
        program: "find",
        harmless: &[
            ".", "sub", "-name '*.txt'", "-type f", "-maxdepth 1", "-print", "-o", "-not", "!", "\\( -name a \\)", "-newer a.txt",
            "-size +1k", "-print0", "-path './sub/*'", "-mtime -1", "-iname x", "-regex '.*'", "-empty", "-prune", "-printf '%p\\n'",
            "-ls", "-quit", "-L", "-H",
        ],
        odd: &[
            "-exec canary {} \\;", "-exec canary {} +", "-execdir canary \\;", "-ok canary \\;", "-okdir canary \\;", "-delete",
            "-fprint pwned", "-fprintf pwned x", "-fls pwned", "-fprint0 pwned", "-files0-from words", "-D exec", "'-exec' canary ';'",
            "-ex\"ec\" canary \\;", "-ex?c canary \\;", "-f", "-e*", "-exec ls \\; -exec canary \\;", "-name -exec canary \\;",
            "-exec canary ';'", "-exec grep x {} \\; -delete", "-samefile -delete",
        ],
    },
    Fragments {
        program: "xargs",
        harmless: &[
            "-n 1", "-0", "-I {}", "-r", "-P 2", "-L 1", "-t", "ls", "echo", "grep x", "-n1", "--null", "-d '\\n'", "-x", "--",
            "-a names", "head -n 1", "wc -l",
        ],
        odd: &[
            "canary", "sh", "-I canary", "-I ls", "-i", "-e", "-l", "-E x", "-a words", "--arg-file=words", "-I{} {}", "-I {} ls {}",
            "env", "xargs canary", "find", "sed", "--process-slot-var=PATH", "-p canary", "-o canary", "-s 1", "-n 1 env", "-rI canary",
            "-n1canary", "-0n 1 canary", "-J % canary", "--max-a 1 canary", "git", "sort", "tar cf /work/out/x", "env", "find .",
        ],
    },
    Fragments {
        program: "env",
        harmless: &[
            "x=1", "ls", "echo a", "-u x", "-i", "LC_ALL=C", "--", "sort a.txt", "FOO=bar", "git status", "grep x", "--unset=x",
        ],
        odd: &[
            "canary", "-S 'canary x'", "-Scanary", "-vS canary", "--split-string='canary x'", "--split 'canary'", "-iS canary", "PATH=.",
            "PATH=bin", "-C sub ./canary", "--chdir=bin", "-uPATH", "-", "-i canary", "-P bin", "-P . canary", "a=b canary",
            "BASH_ENV=e", "GIT_PAGER=canary", "LD_PRELOAD=x", "GIT_EXTERNAL_DIFF=canary", "-u PATH canary", "env canary",
            "--block-signal", "--ignore-signal=INT canary", "-0 canary", "--argv0=x canary", "-a x canary", "GIT_SSH_COMMAND=canary",
            "TAR_OPTIONS=-Icanary", "1=2", "x= canary", "=x",
        ],
    },
    Fragments {
        program: "git",
        harmless: &[
            "status", "log", "diff", "show", "branch", "-C sub", "--no-pager", "log --oneline -5", "status -s", "add tracked",
            "commit -m 'a message'", "diff --stat", "show HEAD", "log -p", "log --format='%h %s'", "blame tracked/README",
            "rev-parse HEAD", "ls-files", "remote -v", "tag", "stash list", "describe --tags", "config user.name", "grep x", "-n 1",
            "--graph", "checkout main", "shortlog", "cat-file -p HEAD", "config --list", "reflog", "merge-base HEAD v1", "rev-list HEAD",
            "for-each-ref", "symbolic-ref HEAD", "--stat", "HEAD~1", "--",
        ],
        odd: &[
            "-c alias.x='!canary' x", "-c core.pager=canary log", "--paginate log", "-p log", "-c core.fsmonitor=canary status",
            "diff --output=pwned", "diff --outp=pwned", "log --output=pwned", "grep -Ocanary x", "grep --open-files-in-pager=canary x",
            "grep --open=canary x", "-c diff.external=canary diff --ext-diff", "difftool -x canary", "difftool --extcmd=canary",
            "config alias.x '!canary'", "config core.pager canary", "archive -o pwned HEAD", "archive --output=pwned HEAD",
            "archive --remote=x HEAD", "archive --exec=canary --remote=. HEAD", "format-patch -1 HEAD", "bundle create pwned HEAD",
            "clone . pwned", "init pwned", "fetch --upload-pack=canary .", "ls-remote --upload-pack=canary .", "ls-remote ext::canary",
            "fetch ext::canary", "-c protocol.ext.allow=always ls-remote ext::canary", "rebase -x canary HEAD~0",
            "rebase --exec=canary HEAD", "bisect run canary", "submodule foreach canary", "filter-branch", "worktree add pwned",
            "--exec-path=bin status", "--exec-path=/work/bin canary", "canary", "x", "hook run x", "maintenance run",
            "-c core.editor=canary commit --amend", "commit -e", "tag -a x", "notes edit", "config -e", "config --edit", "send-email",
            "instaweb", "gui", "daemon", "shell", "mergetool", "help -w", "help log", "help -a", "--help log", "web--browse x",
            "--config-env=core.pager=x log", "-c core.sshCommand=canary fetch ssh://x/y", "push --receive-pack=canary .", "apply words",
            "am words", "rm -f a", "clean -fd", "clean -fdx", "mv tracked pwned", "checkout-index --prefix=pwned -a",
            "checkout-index --temp tracked/README", "cat-file --textconv HEAD:x", "cat-file --filters HEAD:tracked/README",
            "blame --contents words x", "diff --no-index a.txt b.txt", "log --ext-diff", "show --textconv", "var GIT_EDITOR",
            "update-index --add x", "fast-export", "fast-import", "credential fill", "replace --edit HEAD", "branch --edit-description",
            "--git-dir=words status", "--work-tree=/ status", "--namespace=x log", "-C /tmp status", "log --help", "column",
            "diff -O words", "fetch", "pull", "push", "remote update", "remote show origin", "ls-remote", "stash push", "stash -u",
            "merge other", "cherry-pick HEAD", "revert HEAD", "interpret-trailers --in-place a.txt", "mailsplit -opwned",
            "unpack-file HEAD:tracked/README", "merge-file a.txt a.txt b.txt", "rev-parse --parseopt", "log --no-index --output pwned",
            "range-diff --output=pwned HEAD HEAD", "diff-tree --output=pwned HEAD v1", "diff-index --output=pwned HEAD",
            "stash show --output=pwned", "show --output pwned", "reflog show --output=pwned", "whatchanged --output=pwned",
            "for-each-repo --config=x",
        ],
    },
    Fragments {
        program: "sed",
        harmless: &[
            "-n", "-n 1p", "s/a/b/", "'s/a/b/g'", "-e s/a/b/", "-E", "1,3p", "'/a/d'", "-n '/x/p'", "--expression=p", "-r", "$d",
            "'$!d'", "-s", "-u", "-z", "--quiet", "y/a/b/", "--posix", "--sandbox", "'s/a/b/;s/c/d/'", "-n '1,/x/p'", "q",
        ],
        odd: &[
            "-i", "-i.bak", "--in-place", "--in-pl", "-ni", "-Ei", "1e", "e", "'1e canary'", "1ecanary", "s/a/canary/e",
            "'s/a/canary/ge'", "'s/.*/canary/e'", "'w pwned'", "wpwned", "'s/a/b/w pwned'", "'s/a/b/wpwned'", "-f script.sed",
            "-fscript.sed", "--file=script.sed", "--fil=script.sed", "-nf script.sed", "-e 1ecanary", "-ne 1ecanary",
            "--expression=1ecanary", "--expr=e", "'s,a,canary,e'", "'sxaxcanaryxe'", "'s/[/]/canary/e'", "'s/a\\/b/canary/e'",
            "'/a/{e canary\n}'", "'1{e'", "'a\\\ncanary'", "'b e;e canary'", "':a;e canary'", "'y/e/e/;e canary'", "'1!e canary'",
            "'$e canary'", "'W pwned'", "'r words'", "'R words'", "'1,2e canary'", "'\\,a,e canary'", "'/a/I e canary'",
            "'s/a/b/I;e canary'", "'s/a/b/me canary'", "'}e canary'", "'#n\ne canary'", "'i x\ne canary'", "'i\\\ne canary'",
            "-E 's/(a)/canary/e'", "'s/a/b/\ne canary'", "'s\na\ncanary\ne'", "'0~1e canary'", "'F;e canary'", "'=;e canary'",
            "'l 1;e canary'", "'q5;e canary'", "'t;e canary'", "'v;e canary'", "'v 4.2\ne canary'", "'c\\'", "-s --in", "-l 5 e", "-l5e",
        ],
    },
    Fragments {
        program: "awk",
        harmless: &[
            "'{print $1}'", "'{print}'", "'NR==1'", "-F, '{print $2}'", "-F : '{print $1}'", "-v x=1", "'/a/'", "'BEGIN {print 1}'",
            "'{s+=$1} END {print s}'", "'{print $1, $2}'", "'length($0) > 3'", "-F'\\t'", "'$1 > 2'", "'$1 ~ /a/ {print $2}'",
            "'{printf \"%s\\n\", $1}'",
        ],
        odd: &[
            "'{system(\"canary\")}'", "'BEGIN{system(\"canary\")}'", "'{print | \"canary\"}'", "'{\"canary\" | getline}'",
            "'{print > \"pwned\"}'", "'{print > $1}'", "'{print >> \"pwned\"}'", "'{printf \"x\" > \"pwned\"}'", "-f script.awk",
            "-fscript.awk", "--file=script.awk", "-E script.awk", "--exec script.awk", "-i inplace", "-l x", "-o", "-opwned", "-p", "-d",
            "-W exec script.awk", "-Wexec=script.awk", "-We script.awk", "-W dump", "--version", "-e 'BEGIN{system(\"canary\")}'",
            "'BEGIN { \"canary\" |& getline }'", "'@load \"x\"'", "'BEGIN{print \"x\" > \"/work/out/x\"}'",
            "'BEGIN{while((\"canary\"|getline x)>0)print x}'", "'/a/ {print > \"pwned\"}'", "'{print /a/ > \"pwned\"}'",
            "'{print a>\"pwned\" }'", "'{print (1>2) > \"pwned\"}'", "'{print \"a\" \">\" \"b\"}'", "'{print \"a\\\"\" > \"pwned\"}'",
            "'{s=\"system\"; @s(\"canary\")}'", "'{sys\\\ntem(\"canary\")}'", "'{system (\"canary\")}'", "'{ print | x }' x=canary",
            "-v x=canary '{print|x}'",
        ],
    },
    Fragments {
        program: "sort",
        harmless: &[
            "-n", "-r", "-u", "-k 2", "-k2,2", "-t,", "-h", "a.txt", "b.txt", "-rn", "--reverse", "--key=1", "-c", "-s", "-f", "-z",
            "-m",
        ],
        odd: &[
            "-o pwned", "-opwned", "--output=pwned", "--outp=pwned", "--o pwned", "-no pwned", "-uopwned",
            "--compress-program=canary -S1b", "--comp=canary", "--compress-prog canary -S 1k", "-T .", "-Tsub", "--files0-from=names",
            "--random-source=words", "-nro a.txt", "-k2o", "-to", "-S1b", "--batch-size=2", "--debug", "-k 1 -o", "-t -o pwned",
        ],
    },
    Fragments {
        program: "tar",
        harmless: &[
            "-tf x.tar", "tf x.tar", "-czf /work/out/x.tar sub", "cf /work/out/x.tar sub", "-tvf x", "--list", "-f x.tar", "-z", "-v",
            "-C sub", "--exclude=x",
        ],
        odd: &[
            "xf x.tar", "-xf x.tar", "cf pwned sub", "-cf pwned sub", "-Icanary -tf x", "-I canary -cf /work/out/x sub",
            "--use-compress-program=canary", "--use-comp=canary -tf x", "--checkpoint=1 --checkpoint-action=exec=canary",
            "--to-command=canary", "--to-c=canary", "-Fcanary", "--info-script=canary", "--new-volume-script=canary",
            "--rsh-command=canary -tf x:y", "--rmt-command=canary -tf x:y", "-tf host:x", "--delete", "--remove-files",
            "-cf /dev/null --remove-files a.txt", "-g pwned", "--listed-incremental=pwned", "--index-file=pwned", "-T words",
            "--files-from=words", "-X words", "cIf canary /work/out/x sub", "tIf canary x", "-uf pwned a", "-rf pwned a", "-Af pwned x",
        ],
    },
    Fragments {
        program: "grep",
        harmless: &[
            "-n", "-r x", "-i", "canary", "-v x", "-l", "-E 'a|b'", "-c", "x *.txt", "-rn x .", "-A 1", "-e x", "-q x",
            "--include='*.txt'", "-o", "-w", "-F x", "--color=never", "-H",
        ],
        odd: &[
            "-f words", "-fwords", "--file=words", "-P x", "-d recurse", "-e", "--exclude-from=words", "-R / -m1", "-D read",
        ],
    },
    Fragments {
        program: "timeout",
        harmless: &[
            "5 ls", "5 echo a", "1s ls", "-k 1 5 ls", "-s KILL 5 ls", "--signal=INT 5 ls", "--foreground 5 ls", "5 git status", "0.5 ls",
            "5",
        ],
        odd: &[
            "5 canary", "-k 1 ls canary", "-s 5 ls canary", "--kill 1 5 canary", "-k1 canary", "5 sh", "--preserve-status 5 canary",
            "-v 5 canary", "-vk 1 5 canary", "5 env canary", "5 -- canary", "-- 5 canary", "x canary", "5 timeout 5 canary",
            "-sKILL 5 canary", "--sig KILL 5 canary", "-f 1 canary",
        ],
    },
    Fragments {
        program: "nice",
        harmless: &[
            "ls", "-n 5 ls", "-n5 ls", "--adjustment=5 ls", "-5 ls", "echo a", "-n 1 git status",
        ],
        odd: &[
            "canary", "-n ls canary", "-n 5 canary", "-5 canary", "-n5 canary", "--adj 5 canary", "--adjustment 5 canary", "-- canary",
            "--5 canary", "-n -5 canary", "+5 canary", "-n 5 env canary", "nice canary",
        ],
    },
    Fragments {
        program: "test",
        harmless: &[
            "-f a.txt", "-d sub", "-n x", "x = y", "1 -eq 1", "! -f x", "-e out", "-z ''", "-s a.txt", "a != b", "-x canary",
        ],
        odd: &[
            "-v a[$(canary)]", "-v 'a[$(canary)]'", "'a[$(canary)]' -eq 1", "-t 'a[$(canary)]'", "x -nt y", "-o x", "-R x",
            "1 -eq 'a[`canary`]'", "-v x -a y", "a > pwned", "a '>' b", "a \\< b", "\\( x \\)", "-a x", "x == y", "x =~ y", "-v *", "*",
        ],
    },
    Fragments {
        program: "[",
        harmless: &[
            "-f a.txt ]", "-d sub ]", "x = y ]", "1 -eq 1 ]", "! -f x ]", "-n x ]", "-z '' ]", "a != b ]",
        ],
        odd: &[
            "-v a[$(canary)] ]", "-v 'a[$(canary)]' ]", "'a[$(canary)]' -eq 1 ]", "-t 'a[$(canary)]' ]", "1 -eq 'a[`canary`]' ]",
            "a > pwned ]", "x", "* ]", "-o x ]", "x == y ]", "-R x ]", "a == * ]", "x ] ; canary",
        ],
    },
    Fragments {
        program: "printf",
        harmless: &[
            "'%s\\n' a", "'%d\\n' 1", "hello", "'%s %s\\n' a b", "-- '%s' a", "'a\\n'", "'%5.2f\\n' 1", "\"%s\\n\" x",
        ],
        odd: &[
            "-v x a", "-v 'a[$(canary)]' x", "-va[$(canary)] x", "-v'a[$(canary)]' x", "'%d' 'a[$(canary)]'", "%d 'a[`canary`]'",
            "'%*d' 'a[$(canary)]' 1", "%n x", "'%n' 'a[$(canary)]'", "'%(x)T' 'a[$(canary)]'", "%b '\\0140'", "-- -v", "-v PATH .",
            "%q x", "%.*s 'a[$(canary)]' x", "'%99999999d' 1", "%s *", "*",
        ],
    },
    Fragments {
        program: "read",
        harmless: &[
            "x", "-r x", "line", "a b", "-r line </work/notes.txt", "-r a b",
        ],
        odd: &[
            "'a[$(canary)]'", "a[$(canary)]", "-a x", "-A path", "PATH", "-u 'a[$(canary)]' x", "-t 'a[$(canary)]' x",
            "-n 'a[$(canary)]' x", "-d x y", "-e x", "-p x", "path", "-k 1", "-q", "'x?a[$(canary)]'", "x\\[1\\]", "*", "-i x", "-N 1 x",
            "-s x", "IFS", "-E x", "-z",
        ],
    },
    Fragments {
        program: "cd",
        harmless: &[
            "sub", "..", "/work", "/work/sub", "- ", "tracked", "bin", "sub/deep", "options", "traps/sort", "traps/find", "traps/sed",
            "traps/tar", "traps/git",
        ],
        odd: &[
            "-e x", "-q sub", "-P sub", "+1", "-1", "*", "a b", "~", "~+", "CDPATH=x", "-", "-s sub", "''",
        ],
    },
];

/// Returns arguments for a program: of its fragments, or by its table. Nothing for a program that has neither, or by chance.
pub(super) fn arguments(rng: &mut Rng, program: &str) -> String {
    let fragments = PROGRAMS.iter().find(|fragments| fragments.program == program);
    let Some(fragments) = fragments.filter(|_| rng.u8(..3) > 0) else {
        return tabled::arguments(rng, program).unwrap_or_default();
    };
    let mut words = String::new();
    let odd_percent = rng.choice([0, 0, 10, 40]).unwrap_or(0);
    for _ in 0..=rng.usize(..3) {
        let list = if rng.u32(..100) < odd_percent { fragments.odd } else { fragments.harmless };
        let fragment = rng.choice(list).copied().unwrap_or_default();
        let fragment = if rng.u32(..200) < odd_percent { respelled(rng, fragment) } else { fragment.to_owned() };
        if !words.is_empty() {
            words.push(' ');
        }
        words += &fragment;
    }
    if rng.u8(..4) == 0 {
        let operand = if rng.bool() { rng.choice(PLAIN) } else { rng.choice(GLOBS) };
        words = format!("{words} {}", operand.copied().unwrap_or_default());
    }
    words
}

/// Spells an option in another way: abbreviated, with its value attached or apart, in a bundle, quoted, or from a glob.
fn respelled(rng: &mut Rng, fragment: &str) -> String {
    let (option, rest) = fragment.split_once([' ', '=']).unwrap_or((fragment, ""));
    match rng.u8(..8) {
        0 if option.starts_with("--") && option.len() > 4 => {
            let end = rng.usize(3..option.len());
            format!("{}={rest}", option.get(..end).unwrap_or(option))
        }
        1 => format!("{option}={rest}"),
        2 => format!("{option}{rest}"),
        3 => format!("'{option}' {rest}"),
        4 if option.len() == 2 => format!("-{}{} {rest}", rng.alphabetic(), option.trim_start_matches('-')),
        5 => format!("-{fragment}"),
        6 => format!("-- {fragment}"),
        _ => {
            let mut chars: Vec<char> = option.chars().collect();
            let place = rng.usize(..chars.len().max(1));
            if let Some(char) = chars.get_mut(place) {
                *char = '?';
            }
            format!("{} {rest}", chars.into_iter().collect::<String>())
        }
    }
}

/// Returns the words of all fragments.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    PROGRAMS
        .iter()
        .flat_map(|fragments| fragments.harmless.iter().chain(fragments.odd))
        .flat_map(|fragment| fragment.split([' ', '\'', '"', '\n']))
}
