//! The words of a command without the options that its program's table knows: an entry of a list has a command whatever known options stand
//! between its words.

use super::reading::Reader;
use super::{Operands, Program, Style, table};
use crate::argument::Argument;

/// Returns the places of the arguments of a program without those options, and their values, that its table knows in front of its subcommand or
/// target, between the words of the subcommand, and behind it. `None` if nothing is left out.
///
/// Options behind the subcommand are left out only where the program takes them behind the operands too, and where they name no file and start
/// nothing: `git push -u origin main` is `git push origin main -u`.
#[must_use]
pub fn without_options(program: &str, arguments: &[Argument]) -> Option<Vec<usize>> {
    let has_targets = matches!(program, "gmake" | "make");
    let table = table(program).filter(|table| has_targets || !table.subcommands.is_empty())?;
    let mut reader = Reader::new(arguments);
    if has_targets { reader.options(&table.options, Style::First).map(drop) } else { reader.globals(table) }.ok()?;
    if has_targets && reader.ended {
        return None;
    }
    let behind = reader.at..arguments.len();
    let places = behind_subcommand(table, reader).unwrap_or_else(|| behind.collect());
    (!places.is_empty() && places.len() < arguments.len()).then_some(places)
}

/// Returns the places of the words of the subcommand and of what stands behind it without its options.
fn behind_subcommand(table: &'static Program, mut reader: Reader<'_>) -> Option<Vec<usize>> {
    let subcommand = reader.subcommand(table).ok()??;
    let files = reader.files.len();
    let mut places = std::mem::take(&mut reader.named);
    let from = reader.at;
    let style = table.style_of(subcommand);
    let is_free = matches!(style, Style::Gnu | Style::Anywhere) && !matches!(subcommand.operands, Operands::Forwarded { .. });
    let read = if is_free { reader.options(&subcommand.options, style).ok() } else { None };
    match read.filter(|_| reader.files.len() == files && reader.started.is_empty() && !reader.ended) {
        Some(operands) => places.extend(operands),
        None => places.extend(from..reader.arguments.len()),
    }
    Some(places)
}

/// Returns the subcommand of a program, if its table has the words.
#[must_use]
pub fn subcommand_name(program: &str, arguments: &[Argument]) -> Option<String> {
    let mut reader = Reader::new(arguments);
    reader.subcommand(table(program)?).ok()??;
    let words = reader.named.iter().filter_map(|at| arguments.get(*at)).map(|word| word.text.as_str());
    Some(words.collect::<Vec<_>>().join(" "))
}
