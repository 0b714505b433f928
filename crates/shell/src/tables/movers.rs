//! Programs without a table that copy, move and take away files: names that a glob finds by their extension are no harmful options of theirs.
//!
//! Left out: `-S`, which makes names of backups.

use super::reading::{LITERAL, OPTION, Started, Unlisted, literal};
use crate::argument::{Argument, Certainty};

/// TABLE: programs that do nothing but what their names say with the files that they are given, whatever options stand among them.
const MOVERS: [&str; 5] = ["cp", "ln", "mv", "rm", "touch"];

/// Returns whether a program does nothing but what its name says, whatever options stand among its files.
pub(super) fn is_mover(program: &str) -> bool {
    MOVERS.contains(&program)
}

/// Reads the arguments of such a program: literal, or names in the working folder that a glob finds by their extension. A name that
/// looks like an option has a dot in it, which is no letter of an option, and no slash: at most it names a folder here.
///
/// # Errors
/// [`Unlisted`] is the first argument that is computed otherwise.
pub(super) fn movable(program: &str, arguments: &[Argument]) -> Result<Vec<Started>, Unlisted> {
    let is_suffix = |text: &str| text.starts_with("--su") || text.starts_with('-') && !text.starts_with("--") && text.contains('S');
    if let Some(index) = arguments.iter().position(|argument| program != "rm" && is_suffix(&argument.text)) {
        return Err(Unlisted { index, what: OPTION });
    }
    if program == "ln" {
        return literal(arguments);
    }
    let is_kind = |argument: &Argument| {
        let extension = argument.text.strip_prefix("*.").unwrap_or_default();
        let is_plain = !extension.is_empty() && extension.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        is_plain && !argument.computed && !argument.found
    };
    let is_kind = |argument: &Argument| argument.certainty == Certainty::Nothing && is_kind(argument);
    let computed = arguments.iter().position(|argument| !argument.is_literal() && !is_kind(argument));
    computed.map_or(Ok(Vec::new()), |index| Err(Unlisted { index, what: LITERAL }))
}
