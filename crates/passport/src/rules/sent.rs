//! A file that is sent with a message: what a text may mean to a host that reads it as a file.

use bash_commands::decoded;

use super::super::super::beginning::{AROUND, bare, climbs, is_path, without_scheme};
use super::super::super::look_alike::plain_spelling;
use super::super::super::path::NormalPath;
use super::super::file_path::{PATH_BYTES_MAX, read_path};
use super::super::mcp::is_scheme;
use super::super::{Denial, RuleCall, budget, secrets};

/// Characters behind which another file may begin, also in lists of other languages (`['/a', '/b']`), and those that end one.
const BEFORE: [char; 11] = [',', ';', '|', '=', '@', ':', '[', '{', '(', '"', '\''];
const BEHIND: [char; 8] = [',', ';', '|', ']', '}', ')', '"', '\''];

/// How many files in one text are looked at.
const PIECES_MAX: usize = 64;

/// Returns whether a text begins like a path, or climbs like one, in some spelling.
pub(super) fn begins_path(text: &str) -> bool {
    let text = text.trim().trim_start_matches(AROUND);
    is_path(text) || plain_spelling(text).is_some_and(|spelling| is_path(&spelling))
}

/// Returns whether a text of one line, in a message, is the name of a secret. A word alone, such as `credentials`, is more likely a topic.
pub(super) fn is_secret(text: &str) -> bool {
    let text = bare(text);
    text.contains(['.', '/', '_']) && !text.contains("://") && text.len() <= PATH_BYTES_MAX && secrets::is_secret(&NormalPath::new(text))
}

/// Checks a text that may be a file, which is a path unless it is an address of the web or plainly data.
pub(super) fn check_file(call: &RuleCall<'_>, text: &str) -> Result<(), Denial> {
    let text = text.trim();
    if text.is_empty() || is_data(text) {
        return Ok(());
    }
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some(scheme) if !scheme.ends_with("file") && is_scheme(scheme) => {
            const READERS: [&str; 6] = ["jar", "phar", "php", "zip", "expect", "glob"];
            if READERS.contains(&scheme) {
                return read_path(text).map(drop);
            }
            // An address without a host is a path, and what follows an address may be one.
            if let Some(path) = text.split_once(":///").map(|(_, path)| path) {
                check_path(call, &format!("/{path}"))?;
            }
            let mut others = text.split_whitespace().skip(1).chain(text.split([',', ';', '|']).skip(1).map(str::trim));
            others.try_for_each(|other| if begins_path(other) { check_path(call, other) } else { Ok(()) })
        }
        _ if text.matches(BEFORE).nth(PIECES_MAX).is_some() => {
            Err(Denial::new("oap.too_costly", "Message sends a file whose name has more signs than are looked at"))
        }
        // A text of several lines may be a list of files.
        _ if text.contains('\n') => {
            text.lines().filter(|line| begins_path(line) || is_secret(line)).try_for_each(|line| check_path(call, line))
        }
        _ => {
            check_path(call, text)?;
            let pieces =
                text.match_indices(BEFORE).filter_map(|(at, _)| text.get(at + 1..)?.split(BEHIND).next()).chain(text.split(BEHIND).next());
            let words = text.split_whitespace().skip(1).filter(|word| word.trim_start_matches('/').contains('/'));
            pieces.chain(words).filter(|piece| begins_path(piece) || is_secret(piece)).try_for_each(|piece| check_path(call, piece))
        }
    }
}

/// Checks one path, as it stands and as what decodes an address reads it.
fn check_path(call: &RuleCall<'_>, text: &str) -> Result<(), Denial> {
    let path = without_scheme(bare(text));
    check_spelled(call, path)?;
    if !path.contains('%') {
        return Ok(());
    }
    let decoded = decoded(path);
    let is_digits = |(at, _): (usize, &str)| decoded.get(at + 1..at + 3).is_some_and(|digits| u8::from_str_radix(digits, 16).is_ok());
    if decoded.match_indices('%').any(is_digits) {
        const MESSAGE: &str = "File path has percent signs that stand for other percent signs; write it without them";
        return Err(Denial::new("oap.invalid_tool_arguments", MESSAGE));
    }
    check_spelled(call, &decoded)
}

fn check_spelled(call: &RuleCall<'_>, path: &str) -> Result<(), Denial> {
    // Words that do not begin as a path does are rather a text. They may still name a file below the working folder.
    let is_words = path.contains(char::is_whitespace) && !begins_path(path);
    let normal = if is_words { NormalPath::new(path) } else { read_path(path)? };
    let is_glob = path.contains(['*', '?', '[', '{']);
    let expansions = if is_glob { bash_commands::braces(path) } else { Vec::new() };
    budget::check_glob(&expansions, path)?;
    let spelled = plain_spelling(path);
    let secret = secrets::secret_of(&normal)
        .or_else(|| secrets::secret_of_word(path))
        .or_else(|| spelled.as_deref().and_then(|path| secrets::secret_of(&NormalPath::new(path))));
    if secret.is_some() || expansions.iter().any(|glob| secrets::secret_glob(glob)) {
        return Err(secrets::denial("Message sends a file that", secret));
    }
    if is_words && !path.contains(['/', '.']) {
        return call.files.check_unblocked(path, false);
    }
    expansions.iter().filter(|place| *place != path).try_for_each(|place| call.files.check_path(place, true, false))?;
    call.files.check_path(path, is_glob, false)
}

/// Returns whether a text is data and no path: an address that holds its data, the Base64 of a picture (no system has a folder `/9j`), or Base64
/// that is longer than any path, whatever of it readers leave out.
pub(super) fn is_data(text: &str) -> bool {
    let is_inline = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) && !climbs(text);
    let is_base64 = || text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte));
    let bytes = || text.split('/').filter(|component| !component.is_empty()).map(|component| component.len() + 1).sum::<usize>();
    is_inline || (text.starts_with("/9j/") || text.len() > PATH_BYTES_MAX && bytes() > PATH_BYTES_MAX) && is_base64()
}
