//! Arguments of the programs that have a table: options of the table itself, with values and operands that some program executes, opens,
//! or writes to.

use bash_commands::tables;
use fastrand::Rng;

use super::words::{GLOBS, OPTIONS, PLAIN};

/// Values and operands that a program may take for more than a text or the name of a file.
#[rustfmt::skip]
const HOSTILE: &[&str] = &[
    "'%(canary)'", "'$(canary)'", "'`canary`'", "'|canary'", "'canary|'", "'| canary'", "'!canary'", "'!!canary'", "'@canary'", "@words",
    "ext::canary", "'ext::canary x'", "':!canary'", "'+!canary'", "'e canary'", "'1e canary'", "'w pwned'", "'W pwned'", "'r words'",
    "'s/a/canary/e'", "'{system(\"canary\")}'", "'%{lua:os.execute(\"canary\")}'", "'${f:canary}'", "'${Package;canary}'",
    "'import \"words\" as $x; .'", "'include \"words\"; .'", "'input_filename'", "'env'", "'$ENV'", "'$__loc__'", "'getpath([\"a\"])'",
    "'a[$(canary)]'", "'x=canary'", "x=canary", "PATH=bin", "pwned", "/work/pwned", "../pwned", "./pwned", "/tmp/pwned", "/home/agent/x",
    "-", "--", "of=pwned", "if=words", "-opwned", "'-o pwned'", "--output=pwned", "--outfile=pwned", "--out=pwned", "-out", "--log=pwned",
    "--directory=pwned", "-Cpwned", "-Dpwned", "-Ppwned", "-Bpwned", "-r", "-i", "-w", "-u", "-c", "-x", "-e", "-s", "-d", "-f",
    "--in-place", "--compress-program=canary", "--use-compress-program=canary", "--rsh=canary", "--exec=canary", "--pager=canary",
    "--preprocessor=canary", "--diff-program=canary", "--to-command=canary", "--command=canary", "--shell=canary", "--editor=canary",
    "--ed", "--html=canary", "-Hcanary", "-Pcanary", "-ecanary", "--filter=canary", "-engine canary", "-provider canary",
    "-provider-path bin", "-config words", "--admindir=pwned", "--files0-from=names", "--files-from=names", "--random-source=words",
    "--reference=words", "--target-directory=.", "-t .", "--suffix=x", "--backup=numbered", "--magic-file words", "-m words", "-z",
    "--uncompress", "--no-sandbox", "--compile", "--set", "--date=2026-01-01", "--file=words", "words pwned", "notes.txt pwned",
    "a.txt b.txt pwned", "-n 1 pwned", "+1 pwned", "-1 pwned",
];

/// Returns arguments for a program by its table; nothing for a program that has no table of its own.
pub(super) fn arguments(rng: &mut Rng, name: &str) -> Option<String> {
    let program = tables::table(name)?;
    let mut words: Vec<String> = Vec::new();
    let mut options = program.options.words.clone();
    if let Some(subcommand) = rng.choice(&program.subcommands) {
        words.extend(rng.choice(&subcommand.names).map(|name| name.replace('.', " ")));
        options.extend(&subcommand.options.words);
    }
    for _ in 0..=rng.usize(..4) {
        let word = match rng.u8(..10) {
            0..4 if !options.is_empty() => rng.choice(&options).map(|option| given(rng, option)).unwrap_or_default(),
            0..6 => pick(rng, HOSTILE),
            6 => pick(rng, OPTIONS),
            7 => pick(rng, GLOBS),
            _ => pick(rng, PLAIN),
        };
        words.push(word);
    }
    Some(words.join(" "))
}

fn pick(rng: &mut Rng, list: &[&str]) -> String {
    rng.choice(list).copied().unwrap_or_default().to_owned()
}

/// Returns an option of a table as somebody would write it: with a value, if the option takes a value, and sometimes if it takes no value.
fn given(rng: &mut Rng, option: &str) -> String {
    let option = option.trim_start_matches(['?', '!']);
    let (name, takes_value) = option.split_once(['=', '[']).map_or((option, false), |(name, _)| (name, true));
    let name = name.replace("NUM", "1");
    if !takes_value && rng.u8(..8) != 0 {
        return name;
    }
    let value = if rng.bool() { pick(rng, HOSTILE) } else { pick(rng, PLAIN) };
    match rng.u8(..3) {
        0 => format!("{name} {value}"),
        1 => format!("{name}={value}"),
        _ => format!("{name}{value}"),
    }
}

/// Returns the words of what is made here that could be names of programs.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    HOSTILE.iter().flat_map(|fragment| fragment.split([' ', '\'', '"', '(', ')', '|', '!', '@', '=']))
}
