//! Programs that search in files: `grep` and its like.
//!
//! Left out: `rg --pre`, `--hostname-bin`, `-z` (start programs), `ag --pager`, and its context
//! as an argument of its own (what is no number is read as an option); of `fd` `-x`, `-X` and `-l` (starts `ls`); of `ugrep`,
//! which stands under the name `grep` here and there, `--filter`, `--pager`, `--view`, `--save-config`, `--config`, `-Q`, `-t`, `-O`, `-u`
//! with its meanings. `zgrep` and its like are scripts, some versions of which execute names of files: these must be known.

use super::reading::OPERAND;
use super::reading::nothing;
use super::{Operands, PROGRAM, Program};
use crate::argument::Argument;

/// TABLE: the programs.
pub const PROGRAMS: &[Program] = &[
    Program {
        names: &["ag"],
        options:
            "-i -s -S -l -L -c -v -w -Q -H -a -n -o -A[=NUM] -B[=NUM] -C[=NUM] -G=RE -m=NUM --nocolor --color --nogroup --group --hidden
            --ignore=PATTERN --ignore-case --literal --word-regexp --files-with-matches --count --nonumbers --numbers --filename
            --nofilename",
        ..PROGRAM
    },
    Program {
        names: &["fd", "fdfind"],
        options: "-H -I -s -i -g -F -a -L -p -0 -1 -q -d=NUM -t=TYPE -e=TEXT -E=GLOB -S=SIZE -c=WHEN --hidden --no-ignore
            --no-ignore-vcs --case-sensitive --ignore-case --glob --fixed-strings --absolute-path --follow --full-path --print0 --quiet
            --max-depth=NUM --min-depth=NUM --exact-depth=NUM --type=TYPE --extension=TEXT --exclude=GLOB --size=SIZE
            --changed-within=TIME --changed-before=TIME --max-results=NUM --color=WHEN --strip-cwd-prefix",
        ..PROGRAM
    },
    Program {
        names: &["ggrep"],
        options: "-A=NUM -B=NUM -C=NUM -NUM -E -F -G -H -I -L -P -R -T -U -a -b -c -e=RE -f=FILE -h -i -l -m=NUM -n -o -q -r -s -v -w -x -y
            -z -Z -D=HOW -d=HOW --after-context=NUM --before-context=NUM --context=NUM --basic-regexp --extended-regexp --fixed-strings
            --perl-regexp --with-filename --no-filename --files-with-matches --files-without-match --text --binary
            --binary-files=TYPE --byte-offset --count --regexp=RE --file=FILE --ignore-case --no-ignore-case --max-count=NUM
            --line-number --only-matching --quiet --silent --recursive --dereference-recursive --no-messages --invert-match
            --word-regexp --line-regexp --null --null-data --include=GLOB --exclude=GLOB --exclude-dir=GLOB --exclude-from=FILE
            --color[=WHEN] --colour[=WHEN] --line-buffered --initial-tab --label=TEXT --directories=HOW --devices=HOW --version",
        ..PROGRAM
    },
    Program {
        names: &["rg"],
        options: "-A=NUM -B=NUM -C=NUM -E=NAME -F -H -I -L -M=NUM -N -P -S -T=TYPE -U -a -b -c -e=RE -f=FILE -g=GLOB -h -i -j=NUM -l -m=NUM
            -n -o -p -q -r=TEXT -s -t=TYPE -u -v -w -x -0 -d=NUM --after-context=NUM --before-context=NUM --context=NUM
            --encoding=NAME --fixed-strings --with-filename --no-filename --follow --max-columns=NUM --no-line-number --pcre2
            --smart-case --type-not=TYPE --multiline --multiline-dotall --text --byte-offset --count --count-matches --regexp=RE
            --file=FILE --glob=GLOB --iglob=GLOB --ignore-case --threads=NUM --files-with-matches --files-without-match --max-count=NUM
            --line-number --only-matching --pretty --quiet --replace=TEXT --case-sensitive --type=TYPE --unrestricted --invert-match
            --word-regexp --line-regexp --null --max-depth=NUM --files --hidden --no-hidden --no-ignore --no-ignore-vcs --no-config
            --no-heading --heading --no-messages --color=WHEN --colors=TEXT --column --json --vimgrep --stats --sort=HOW --sortr=HOW
            --trim --type-list --type-add=TEXT --passthru --crlf --no-pre --debug --version",
        ..PROGRAM
    },
    // They start pagers and other programs, by options and by what they find in names.
    Program { names: &["zcmp", "zdiff", "zless", "zmore"], operands: Operands::Own(nothing), ..PROGRAM },
    Program {
        names: &["bzgrep", "xzgrep", "zegrep", "zfgrep", "zgrep", "zstdgrep"],
        options: "-i -n -c -l -v -E -F -h -H -q -w -o -s",
        operands: Operands::Checked(names),
        ..PROGRAM
    },
];

/// Names that a script may hand on: known, and without what has a meaning in the scripts of another program.
fn names(operands: &[&Argument]) -> Result<(), &'static str> {
    let is_simple = |text: &str| !text.contains(['\n', '\\', '|', ';', '&']);
    operands.iter().all(|operand| operand.as_known().is_some_and(is_simple)).then_some(()).ok_or(OPERAND)
}
