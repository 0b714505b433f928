//! Reads `programs.txt`, whose head says how it is written.

use rustc_hash::FxHashMap;

use super::options::Options;
use super::{Program, Style, Subcommand, operands};

/// Returns the programs of a text. What cannot be read is refused: a test holds that nothing is.
pub(super) fn read(text: &'static str) -> Vec<Program> {
    let mut shared: FxHashMap<&str, Vec<&'static str>> = FxHashMap::default();
    let mut programs: Vec<Program> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words = line.split_ascii_whitespace();
        if let Some(name) = line.strip_prefix('@').and_then(|rest| rest.split_ascii_whitespace().next()) {
            shared.entry(name).or_default().extend(words.skip(1));
            continue;
        }
        if let Some(head) = line.strip_prefix("* ") {
            programs.push(program(head));
            continue;
        }
        let Some(program) = programs.last_mut() else { continue };
        let options = words.clone().flat_map(|word| match word.strip_prefix('@').and_then(|name| shared.get(name)) {
            Some(words) => words.clone(),
            None => vec![word],
        });
        if let Some(names) = line.strip_prefix("+ ") {
            program.names.extend(names.split_ascii_whitespace());
        } else if let Some(what) = line.strip_prefix("runs ") {
            program.runs = Some(what);
        } else if line.starts_with("    ") {
            program.subcommands.last_mut().into_iter().for_each(|subcommand| subcommand.options.extend(options.clone()));
        } else if line.starts_with(' ') {
            let (names, kind) = line.split_once(" / ").unwrap_or((line, "any"));
            let names = names.split_ascii_whitespace().collect();
            program.subcommands.push(Subcommand { names, options: Options::default(), operands: operands::named(kind) });
        } else {
            program.options.extend(options);
        }
    }
    programs
}

fn program(head: &'static str) -> Program {
    let (names, words) = head.split_once(" / ").unwrap_or((head, ""));
    let (style, rest) = words.split_once(' ').unwrap_or((words, "any"));
    let style = match style {
        "first" => Some(Style::First),
        "words" => Some(Style::Words),
        "anywhere" => Some(Style::Anywhere),
        _ => None,
    };
    let kind = if style.is_some() { rest } else { words };
    let operands = operands::named(if kind.is_empty() { "any" } else { kind });
    let names = names.split_ascii_whitespace().collect();
    Program { names, options: Options::default(), style: style.unwrap_or(Style::Gnu), operands, subcommands: Vec::new(), runs: None }
}
