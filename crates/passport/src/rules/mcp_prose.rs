//! Texts of several words that are said to a tool of an MCP server.

use super::super::super::beginning::is_begun;
use super::super::super::denial::Denial;
use super::super::super::look_alike::plain_spelling;
use super::super::RuleCall;
use super::super::secrets::{denial_of, names_secret};
use super::mcp_paths::check_pieces;

/// Signs between the words of a text, and around them.
const BETWEEN: &str = ",;|\"'`()[]{}<>";

/// Returns whether a text under the name of what is said is no path and no address: it has several words, and does not begin as a path.
pub(super) fn is_prose(text: &str) -> bool {
    // Some readers leave out what stands in front of a path.
    let text = text.trim().trim_start_matches(|char: char| BETWEEN.contains(char) || "@=\u{feff}".contains(char)).trim();
    // So a command to a bot begins.
    let is_command = |word: &str| {
        word.strip_prefix('/').is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-'))
    };
    if text.split_whitespace().next().is_some_and(is_command) {
        return true;
    }
    text.contains(char::is_whitespace) && !is_begun(text) && !plain_spelling(text).is_some_and(|spelling| is_begun(&spelling))
}

/// Checks that no word with a slash names a secret or a blocked place. Addresses of the web lead to no file.
pub(super) fn check_prose(call: &RuleCall<'_>, text: &str, writes: bool) -> Result<(), Denial> {
    check_pieces(call, text, |piece| piece.contains('/'), writes)
}

/// Checks that no word of a query or a program with a slash names a secret or a blocked place, and no text in quotes does that is a name alone.
pub(super) fn check_program(call: &RuleCall<'_>, text: &str, writes: bool) -> Result<(), Denial> {
    let mut quoted = text.split(['\'', '"', '`']).skip(1).step_by(2);
    match quoted.find(|piece| piece.starts_with('.') && names_secret(piece)) {
        Some(piece) => Err(denial_of(piece)),
        None => check_prose(call, text, writes),
    }
}
