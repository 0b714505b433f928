//! Programs that print lines, sums or differences, and have an option or operand that writes or sets something.
//!
//! Left out: `sort -o`, `-T`, `--compress-program`; the second operand of `uniq` and `xxd`; `shuf -o`, `iconv -o`, `base64 -o` and the
//! values that BSD's `-i` takes; `tree -o`, `-R`; `date -s` and BSD's operands without `+`; `hostname NAME`, and `-f`, `-d`, `-i`, which
//! ask name servers; `file -C`, `-z`; `diff -l` (starts `pr`); what `less` and `more` execute (`+`, `-o`, `-k`); the options of `man` that
//! name programs; `dd of=`.

use super::reading::OPERAND;
use super::{Operands, PROGRAM, Program, Started, Style, Unlisted};
use crate::argument::{Argument, Certainty};

/// TABLE: the programs.
pub const PROGRAMS: &[Program] = &[
    // That of macOS starts a program.
    Program { names: &["arch"], operands: Operands::AtMost(0), ..PROGRAM },
    Program { names: &["base32", "base64"], options: "-d -w=NUM --decode --wrap=NUM", operands: Operands::AtMost(1), ..PROGRAM },
    Program {
        names: &["date", "gdate"],
        options: "-u -d=TEXT -r=FILE -R -I[=FORMAT] --utc --universal --date=TEXT --reference=FILE --rfc-email --rfc-3339=FORMAT
            --iso-8601[=FORMAT]",
        operands: Operands::Checked(date),
        style: Style::First,
        ..PROGRAM
    },
    Program { names: &["dd"], operands: Operands::Own(dd), ..PROGRAM },
    Program {
        names: &["diff", "gdiff"],
        options: "-u -U=NUM -c -C=NUM -r -q -s -b -w -B -i -N -a -t -y -W=NUM -d -e -n -p -T -E -Z -I=RE -x=PATTERN -X=FILE -L=LABEL -NUM
            --unified[=NUM] --context[=NUM] --recursive --brief --report-identical-files --ignore-space-change --ignore-all-space
            --ignore-blank-lines --ignore-case --new-file --text --expand-tabs --side-by-side --width=NUM --minimal
            --ignore-trailing-space --ignore-tab-expansion --ignore-matching-lines=RE --exclude=PATTERN --exclude-from=FILE
            --label=LABEL --strip-trailing-cr --color[=WHEN] --no-dereference --suppress-common-lines --left-column --normal
            --show-c-function",
        ..PROGRAM
    },
    Program {
        names: &["file"],
        options: "-b -i -I -L -h -k -n -N -0 -r -E --brief --mime --mime-type --mime-encoding --dereference --no-dereference
            --keep-going --no-pad --print0 --raw --extension",
        ..PROGRAM
    },
    Program { names: &["hostname"], options: "-s -I", operands: Operands::AtMost(0), ..PROGRAM },
    Program { names: &["iconv"], options: "-f=BELOW -t=BELOW -c -l --from-code=BELOW --to-code=BELOW --list", ..PROGRAM },
    Program {
        names: &["less", "more"],
        options: "-N -S -R -r -F -X -E -e -n -i -s",
        style: Style::First,
        operands: Operands::Checked(pager),
        ..PROGRAM
    },
    Program { names: &["man"], options: "-f -k", style: Style::First, operands: Operands::Checked(man), ..PROGRAM },
    Program {
        names: &["nm", "size"],
        operands: Operands::Checked(no_file_of_arguments),
        options: "-a -A -C -D -g -n -p -r -u -S --demangle --dynamic --extern-only",
        ..PROGRAM
    },
    Program {
        names: &["shuf"],
        options: "-e -i=RANGE -n=NUM -r -z --echo --input-range=RANGE --head-count=NUM --repeat --zero-terminated",
        ..PROGRAM
    },
    Program {
        names: &["sort", "gsort"],
        options: "-b -d -f -g -h -i -M -n -R -r -V -c -C -m -s -u -z -k=KEY -t=TEXT -S=SIZE -o=WRITTEN --output=WRITTEN --ignore-leading-blanks --dictionary-order
            --ignore-case --general-numeric-sort --human-numeric-sort --ignore-nonprinting --month-sort --numeric-sort --random-sort
            --reverse --version-sort --check[=HOW] --merge --stable --unique --zero-terminated --key=KEY --field-separator=TEXT
            --buffer-size=SIZE --parallel=NUM --sort=HOW --debug",
        ..PROGRAM
    },
    Program {
        names: &["strings"],
        operands: Operands::Checked(no_file_of_arguments),
        options: "-a -d -f -w -NUM -n=NAME -t=NAME -e=NAME --all --data --print-file-name --include-all-whitespace --bytes=NAME
            --radix=NAME --encoding=NAME",
        ..PROGRAM
    },
    Program {
        // Letters that take a value take the next argument, wherever in the bundle they stand.
        names: &["tree"],
        options: "-a -d -f -i -l -x -q -N -Q -p -u -g -s -h -D -F -v -t -c -U -r -n -C -A -S -X -J -L=NEXT -I=NEXT -P=NEXT --noreport
            --dirsfirst --gitignore --prune --du --si --inodes --device --nolinks --matchdirs --ignore-case --filelimit=NEXT",
        ..PROGRAM
    },
    Program {
        // BSD's and POSIX' take what stands behind the first operand for the output.
        names: &["uniq", "guniq"],
        options: "-c -d -u -i -z -f=NUM -s=NUM -w=NUM --count --repeated --unique --ignore-case --zero-terminated --skip-fields=NUM
            --skip-chars=NUM --check-chars=NUM",
        style: Style::First,
        operands: Operands::AtMost(1),
        ..PROGRAM
    },
    Program {
        names: &["xxd"],
        options: "-a -b -e -i -p -ps -u -r -c=NEXT -g=NEXT -l=NEXT -s=NEXT",
        style: Style::Words,
        operands: Operands::AtMost(1),
        ..PROGRAM
    },
];

/// `date` prints a format; without a plus the operand is a time that is set.
fn date(operands: &[&Argument]) -> Result<(), &'static str> {
    operands.iter().all(|operand| operand.is_operand() && operand.text.starts_with('+')).then_some(()).ok_or(OPERAND)
}

/// Behind a plus stands what a pager executes when it begins. Options may stand behind names too.
fn pager(operands: &[&Argument]) -> Result<(), &'static str> {
    operands.iter().all(|operand| operand.is_operand() && !operand.text.starts_with('+')).then_some(()).ok_or(OPERAND)
}

/// Names of pages and sections. A path would be a file that says which programs prepare it.
fn man(operands: &[&Argument]) -> Result<(), &'static str> {
    let is_name = |text: &str| !text.starts_with('-') && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:+-[".contains(&byte));
    operands.iter().all(|operand| operand.as_known().is_some_and(is_name)).then_some(()).ok_or(OPERAND)
}

/// `dd` without `of=` prints.
fn dd(arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    const HARMLESS: [&str; 9] = ["if", "bs", "ibs", "obs", "count", "skip", "conv", "iflag", "status"];
    let is_harmless = |word: &Argument| {
        matches!(word.certainty, Certainty::Known) && word.text.split_once('=').is_some_and(|(name, _)| HARMLESS.contains(&name))
    };
    match arguments.iter().position(|word| !is_harmless(word)) {
        Some(index) => Err(Unlisted { index, what: OPERAND }),
        // Without a file to read it is of no use, but harmless.
        None => Ok(Vec::new()),
    }
}

/// Refuses `@file`, which these programs replace by the arguments in the file.
fn no_file_of_arguments(operands: &[&Argument]) -> Result<(), &'static str> {
    let is_file = |operand: &&Argument| operand.is_operand() && !operand.text.starts_with(['@', '*', '?', '[']);
    if operands.iter().all(is_file) { Ok(()) } else { Err(OPERAND) }
}
