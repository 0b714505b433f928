//! Reads the lines of `tests/tables`: a line is split at blanks, quotes hold words together, `␤` is a line feed. `$x` is a word that is not
//! known, `$@` are several, `*.c` is a glob that may find options, `./*` one that finds none. Every program is listed but `evil`.

use super::*;
use crate::argument::Certainty;

const ALLOWED: &str = include_str!("../../tests/tables/allowed.txt");
const REFUSED: &str = include_str!("../../tests/tables/refused.txt");

fn word(raw: &str) -> Argument {
    let mut text = String::new();
    let mut quote = None;
    let (mut computed, mut many) = (None, false);
    for c in raw.chars() {
        match c {
            '\'' | '"' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            '$' if quote != Some('\'') => {
                computed.get_or_insert(text.len());
                text.push('*');
            }
            '*' if quote.is_none() => {
                computed.get_or_insert(text.len());
                many = true;
                text.push('*');
            }
            '␤' => text.push('\n'),
            c => text.push(c),
        }
    }
    many |= raw.contains("$@");
    let certainty = match computed.and_then(|at| text.get(..at)) {
        None => Certainty::Known,
        Some(beginning) if beginning.starts_with("--") && beginning.contains('=') => Certainty::Value,
        Some(beginning) if beginning.is_empty() || beginning.starts_with('-') => Certainty::Nothing,
        Some(_) => Certainty::Operand,
    };
    Argument { text, certainty, many, ..Argument::default() }
}

/// Returns the words of a line.
pub(super) fn split(line: &str) -> Vec<Argument> {
    let mut words = Vec::new();
    let mut raw = String::new();
    let mut quote = None;
    for c in line.chars() {
        match c {
            ' ' if quote.is_none() => words.extend(Some(std::mem::take(&mut raw)).filter(|raw| !raw.is_empty())),
            '\'' | '"' => {
                quote = match quote {
                    None => Some(c),
                    Some(open) if open == c => None,
                    open => open,
                };
                raw.push(c);
            }
            c => raw.push(c),
        }
    }
    words.extend(Some(raw).filter(|raw| !raw.is_empty()));
    words.iter().map(|raw| word(raw)).collect()
}

/// Returns why a command is refused, with what it starts.
fn refusal(words: &[Argument]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let Some(name) = program.as_known().filter(|name| *name != "evil") else { return Some(format!("{program:?} is not listed")) };
    match read(name, arguments) {
        Err(unlisted) => Some(format!("{unlisted:?}")),
        Ok(started) => started.iter().find_map(|started| match started {
            Started::Command(words) => refusal(words),
            Started::Text(text) => refusal(&split(text.as_known()?)),
        }),
    }
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn every_line_that_is_known_to_be_harmless_is_allowed() {
    let wrong: Vec<String> = lines(ALLOWED).filter_map(|line| refusal(&split(line)).map(|why| format!("{line}: {why}"))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines(ALLOWED).count() > 150);
}

#[test]
fn every_line_that_may_do_harm_is_refused() {
    let wrong: Vec<&str> = lines(REFUSED).filter(|line| refusal(&split(line)).is_none()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines(REFUSED).count() > 200);
}

#[test]
fn a_refused_argument_is_told_by_its_place() {
    let place = |line: &str| {
        let words = split(line);
        read(words[0].as_known().unwrap(), &words[1..]).unwrap_err().index
    };
    assert_eq!(place("sed -n -i s/a/b/ x"), 1);
    assert_eq!(place("find . -name x -fls y"), 3);
    assert_eq!(place("tar uf x.tar"), 0);
    assert_eq!(place("uniq a b"), 1);
    // What is refused always is told behind all words, so that no entry of a list holds it.
    assert_eq!(place("alias a=b"), 1);
}

#[test]
fn the_tables_are_written_as_they_are_read() {
    for line in
        include_str!("programs.txt").lines().filter(|line| line.starts_with("* ") || line.starts_with("  ") && !line.starts_with("   "))
    {
        let words = line.split_once(" / ").map_or("any", |(_, words)| words);
        let style = ["first ", "words ", "anywhere "].iter().find_map(|style| words.strip_prefix(style));
        let word = style.unwrap_or(words);
        assert!(operands::known(word).is_some() || ["first", "words", "anywhere"].contains(&word), "{line}");
    }
    for program in PROGRAMS.iter() {
        let options = std::iter::once(&program.options).chain(program.subcommands.iter().map(|subcommand| &subcommand.options));
        let words = options.flat_map(|options| &options.words).map(|word| word.trim_start_matches(['!', '?']));
        for word in words.filter(|word| !word.is_empty()) {
            let name = word.split(['=', '[']).next().unwrap();
            let value = word.strip_prefix(name).unwrap();
            let is_value = |value: &str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_uppercase());
            let has_form = value.is_empty()
                || value.strip_prefix('=').is_some_and(is_value)
                || value.strip_prefix("[=").and_then(|value| value.strip_suffix(']')).is_some_and(is_value);
            assert!(has_form, "{:?}: {word}", program.names);
            let letters = name.strip_prefix("--").or_else(|| name.strip_prefix('-').filter(|rest| !rest.starts_with('-')));
            assert!(letters.is_some_and(|letters| !letters.is_empty()), "{:?}: {word}", program.names);
            let is_short = name.starts_with("--") || name.chars().count() == 2 || name == "-NUM";
            assert!(is_short || program.style.has_words(), "{:?}: {word}", program.names);
        }
    }
}

#[test]
fn what_runs_code_is_told_whatever_its_version() {
    for name in ["python", "python3", "python3.13", "lua5.4", "perl", "bash", "sh", "node", "vim", "ruby3.2"] {
        assert!(runs(name).is_some(), "{name}");
    }
    for name in ["awk", "find", "sed", "ls", "unknown", "env"] {
        assert!(runs(name).is_none(), "{name}");
    }
}

#[test]
fn a_name_has_one_table() {
    let mut seen = std::collections::BTreeSet::new();
    for name in PROGRAMS.iter().flat_map(|program| &program.names) {
        assert!(seen.insert(name), "{name} has two tables");
    }
}

/// The page that shows the tables, and the heading behind which they stand.
const PAGE: &str = "../../docs/command-lines.md";
const HEADING: &str = "### The programs\n\n";

/// Returns the programs as the page shows them.
fn page() -> String {
    let code = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ");
    let all = |is_one: fn(&Program) -> bool| {
        let mut names: Vec<&str> = PROGRAMS.iter().filter(|program| is_one(program)).flat_map(|program| program.names.clone()).collect();
        names.sort_unstable();
        code(&names)
    };
    let subcommands = PROGRAMS.iter().filter(|program| !program.subcommands.is_empty()).map(|program| {
        let known = program.subcommands.iter().filter(|subcommand| !matches!(subcommand.operands, Operands::Refused));
        // A name that ends with a dot has the options of a group.
        let names: Vec<&str> = known.flat_map(|subcommand| subcommand.names.clone()).filter(|name| !name.ends_with('.')).collect();
        format!("| {} | {} |\n", code(&program.names), code(&names).replace('.', " "))
    });
    let rows = [
        ("may be given anything", all(|program| matches!(program.operands, Operands::Open))),
        (
            "are held to their options and operands",
            all(|program| {
                let is_other = matches!(program.operands, Operands::Open | Operands::Refused | Operands::Version | Operands::Nothing);
                program.subcommands.is_empty() && !is_other
            }),
        ),
        ("may be given nothing that an entry does not name", all(|program| matches!(program.operands, Operands::Nothing))),
        ("may tell their version; an entry has to name all else", all(|program| matches!(program.operands, Operands::Version))),
        ("are refused, listed or not", all(|program| matches!(program.operands, Operands::Refused))),
    ];
    let rows = rows.into_iter().map(|(what, names)| format!("| {names} | {what} |\n"));
    format!("| programs | what they may be given |\n|---|---|\n{}{}", subcommands.collect::<String>(), rows.collect::<String>())
}

#[test]
fn the_page_shows_the_programs() {
    let text = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = text.split_once(HEADING).unwrap();
    let after: String = rest.lines().skip_while(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect();
    let wanted = format!("{before}{HEADING}{}\n{}", page().replace("`|`", "`\\|`"), after.trim_start());
    if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
        std::fs::write(PAGE, &wanted).unwrap();
    }
    assert!(text == wanted, "{PAGE} is stale; TOLLGATE_UPDATE_FIXTURES=1 cargo test -p bash-commands writes it anew");
}
