//! Command lines of developers' programs that the tables allow or refuse, read from a file.

use std::collections::BTreeMap;

use super::tests::split;
use super::{Operands, PROGRAMS, read};
use crate::argument::Argument;

const LINES: &str = include_str!("../../tests/tables/developers.txt");

#[test]
fn lines_of_developers_are_allowed_or_refused_as_listed() {
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in LINES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (mark, command) = line.split_at(2);
        let words = split(command);
        let (program, arguments) = words.split_first().unwrap();
        let verdict = read(&program.text, arguments);
        *counts.entry(mark).or_default() += 1;
        match (mark, &verdict) {
            ("+ ", Ok(_)) | ("- ", Err(_)) => {}
            _ => wrong.push(format!("{line}: {verdict:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {counts:?}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(counts.values().sum::<usize>() >= 300 && counts.len() == 2, "{counts:?}");
}

#[test]
fn every_program_of_the_tables_has_a_line_that_is_refused_unless_it_only_tells_its_version() {
    let refused = LINES.lines().filter_map(|line| line.strip_prefix("- ")).chain(include_str!("../../tests/tables/refused.txt").lines());
    let refused: Vec<&str> = refused.filter_map(|line| line.split(' ').next()).collect();
    let has_line = |name: &str| refused.contains(&name);
    let tables = PROGRAMS.iter().filter(|program| !matches!(program.operands, Operands::Version | Operands::Open | Operands::Refused));
    let missing: Vec<_> = tables.map(|program| &program.names).collect();
    let missing: Vec<_> = missing.into_iter().filter(|names| !names.iter().any(|name| has_line(name))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn programs_that_only_tell_their_version_do_nothing_else() {
    for program in PROGRAMS.iter().filter(|program| matches!(program.operands, Operands::Version)) {
        for name in &program.names {
            assert!(read(name, &[Argument::known("--version")]).is_ok(), "{name}");
            for other in ["", "x", "-c", "--", "--help", "--version=x"] {
                assert!(read(name, &[Argument::known(other)]).is_err(), "{name} {other}");
            }
            assert!(read(name, &[Argument::known("--version"), Argument::known("x")]).is_err(), "{name}");
            assert!(read(name, &[]).is_err(), "{name}");
        }
    }
}

#[test]
fn the_first_word_that_is_not_in_a_table_is_named() {
    let place = |line: &str| read(split(line)[0].text.as_str(), &split(line)[1..]).unwrap_err().index;
    for (line, index) in [
        ("ssh host uptime", 0),
        ("ssh -p 22 host", 0),
        ("docker run x", 0),
        ("vim file", 0),
        ("psql", 0),
        ("git rebase --exec=x", 1),
        ("git commit", 1),
        ("git -C x frobnicate", 2),
        ("git push ext::x", 1),
        ("kubectl -n x get pods --server y", 4),
    ] {
        assert_eq!(place(line), index, "{line}");
    }
}
