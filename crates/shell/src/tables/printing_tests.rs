//! Cases for the commands that print secrets: `tests/tables/printing.txt`.

use super::*;

const CASES: &str = include_str!("../../tests/tables/printing.txt");

/// Returns the words of a line. `*` stands for what the line computes, in a line that quotes nothing.
fn words(line: &str) -> Vec<Argument> {
    let argument = |word: &str| match word.contains('*') {
        true => Argument { certainty: Certainty::Operand, ..Argument::known(word) },
        false => Argument::known(word),
    };
    match line.contains('*') {
        true => line.split(' ').map(argument).collect(),
        false => crate::literal_words(line).unwrap().iter().map(Argument::known).collect(),
    }
}

#[test]
fn commands_that_print_secrets_are_known() {
    let cases: Vec<(&str, &str)> = CASES.lines().skip(1).map(|case| case.split_once(' ').unwrap()).collect();
    for (mark, line) in &cases {
        let words = words(line);
        assert_eq!(prints_secrets(&words[0].text, &words[1..]), *mark == "+", "{line}");
    }
    assert!(cases.len() > 140 && cases.iter().all(|(mark, _)| ["+", "-"].contains(mark)));
}
