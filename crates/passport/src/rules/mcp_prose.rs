//! Texts of several words that are said to a tool of an MCP server.

use super::super::super::denial::Denial;
use super::super::super::look_alike::plain_spelling;
use super::super::file_path::PATH_BYTES_MAX;
use super::super::{RuleCall, secrets};
use super::mcp_arguments::is_begun;
use super::{names_secret, secret};

/// Signs between the words of a text, and around them.
const BETWEEN: &str = ",;|\"'`()[]{}<>";

/// Returns whether a text under the name of what is said is no path and no address: it has several words, and does not begin as a path.
pub(super) fn is_prose(text: &str) -> bool {
    // Some readers leave out what stands in front of a path.
    let text = text.trim().trim_start_matches(|char: char| BETWEEN.contains(char) || "@=\u{feff}".contains(char)).trim();
    text.contains(char::is_whitespace) && !is_begun(text) && !plain_spelling(text).is_some_and(|spelling| is_begun(&spelling))
}

/// Checks that no word with a slash names a secret or a blocked place. Addresses of the web lead to no file.
pub(super) fn check_prose(call: &RuleCall<'_>, text: &str, writes: bool) -> Result<(), Denial> {
    let words = text.split(|char: char| char.is_whitespace() || BETWEEN.contains(char));
    let words = words.filter(|word| word.contains('/') && !word.contains("http://") && !word.contains("https://"));
    // Behind these signs a path may begin.
    let parts = words.flat_map(|word| word.split([':', '=', '@'])).map(|part| part.trim_end_matches(['.', '!', '?']));
    parts.filter(|part| part.contains('/')).try_for_each(|part| match part.len() <= PATH_BYTES_MAX {
        _ if names_secret(part) => Err(secret(part)),
        true if secrets::secret_word(part) => Err(secret(part)),
        true => call.files.check_unblocked(part, writes),
        false => Ok(()),
    })
}
