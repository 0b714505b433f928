//! Reads a command's arguments behind the words of the list's entry that it matches: those are the author's, the rest is the table's.

use super::argument::Argument;
use super::tables::{self, Started, Unlisted};

/// Reads the arguments of a program by its table. The first `given` words, the program with them, are the words of an entry of the list. Where
/// the table refuses one of these, it is the author's word: it is passed over, and the table reads the rest. Behind a subcommand that the
/// table does not know, the rest must be literal.
///
/// # Errors
/// [`Unlisted`] is the first argument that neither the table nor the entry has.
pub fn read(name: &str, arguments: &[Argument], given: usize) -> Result<Vec<Started>, Unlisted> {
    if given > 1 && matches!(name, "tar" | "gtar" | "bsdtar") {
        return behind_operation(arguments, given);
    }
    let mut unlisted = match tables::read(name, arguments) {
        Err(unlisted) if unlisted.index + 1 < given => unlisted,
        result => return result,
    };
    let mut rest: Vec<(usize, Argument)> = arguments.iter().cloned().enumerate().collect();
    let mut is_value = false;
    loop {
        let (place, argument) = rest.get(unlisted.index).cloned().unwrap_or_default();
        if place + 1 >= given || unlisted.index >= rest.len() {
            return Err(Unlisted { index: place, ..unlisted });
        }
        // Behind an option stands its value, and what is no subcommand is passed over as an option is.
        if unlisted.what == tables::SUBCOMMAND && !is_value {
            let computed = arguments.iter().position(|argument| !argument.is_literal());
            return computed.map_or(Ok(Vec::new()), |index| Err(Unlisted { index, what: tables::LITERAL }));
        }
        is_value = argument.text.starts_with('-');
        rest.remove(unlisted.index);
        let words: Vec<Argument> = rest.iter().map(|(_, argument)| argument.clone()).collect();
        match tables::read(name, &words) {
            Ok(started) => return Ok(started),
            Err(next) => unlisted = next,
        }
    }
}

/// Reads what stands behind the operation of `tar` that an entry names, such as `tar xf`: names of archives and members, no options.
fn behind_operation(arguments: &[Argument], given: usize) -> Result<Vec<Started>, Unlisted> {
    let is_name = |argument: &Argument| argument.is_operand() && argument.is_literal() && !argument.text.contains(':');
    match arguments.iter().skip(given - 1).position(|argument| !is_name(argument)) {
        Some(index) => Err(Unlisted { index: index + given - 1, what: tables::OPERAND }),
        None => Ok(Vec::new()),
    }
}
