//! The paths in a text that a tool of an MCP server is given: a path itself, several in a line, or pieces between other signs.

use std::borrow::Cow;

use bash_commands::Below;

use crate::beginning::{AROUND, bare, climbs, count_parents, is_begun, is_rooted};
use crate::denial::Denial;
use crate::look_alike::plain_spelling;
use crate::name_kind::NameKind;
use crate::requests::{QUOTES, pieces_of};

use super::super::file_path::{PATH_BYTES_MAX, check_group, read_path};
use super::super::secrets::{check_no_secret, denial_of, names_secret};
use super::super::{RuleCall, budget, secrets};
use super::mcp_effects::Effects;

/// Checks a text without a scheme and all paths that it may hold.
pub(super) fn check_place(call: &RuleCall<'_>, text: &str, said: NameKind, effects: &Effects<'_>) -> Result<(), Denial> {
    if said == NameKind::Id && text.starts_with('/') && !text.contains(['*', '?', '[', '{', '\\']) && !climbs(text) {
        return check_no_secret(text).and_then(|()| call.files.check_unblocked(text, effects.writes));
    }
    if said.is_place() && text.contains('\n') {
        return text.lines().map(str::trim).filter(|line| !is_remark(line)).try_for_each(|line| check_line(call, line, said, effects));
    }
    let has_blank = text.contains(char::is_whitespace);
    // What stands behind the comma of such an address is data: pictures often begin with a slash there.
    let is_data = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) && text.contains(";base64,") && !has_blank;
    if said.is_place() && !is_data || has_blank {
        return check_line(call, text, said, effects);
    }
    if !is_data {
        check_values(call, text, effects)?;
    }
    check_path(call, text, said, effects)
}

/// Checks the values in a word under a name that no table has: those of an option, and those that begin as a path.
fn check_values(call: &RuleCall<'_>, text: &str, effects: &Effects<'_>) -> Result<(), Denial> {
    let option = text.strip_prefix('-');
    let attached = option.and_then(|rest| rest.get(rest.find(['/', '~']).or_else(|| rest.find(".."))?..)).filter(|_| !text.contains('='));
    // It may be a variable of a program as well.
    let is_variable = |name: &str| !name.contains(|char: char| char.is_ascii_lowercase());
    let shown = text.split_once('=').filter(|(name, value)| is_variable(name) && is_rooted(value));
    if let Some((_, value)) = shown {
        return call.files.check_unblocked(value, false);
    }
    let values = text.split(['=', ',', ':', '&']).skip(1).map(|value| value.trim_matches(AROUND)).chain(attached);
    let mut values = values.filter(|value| !value.is_empty() && (option.is_some() || is_rooted(value)));
    values.try_for_each(|value| check_path(call, value, NameKind::File, effects))
}

/// Returns whether a line is a remark in a program rather than a path.
fn is_remark(line: &str) -> bool {
    ["/* ", "/** ", "// "].iter().any(|sign| line.starts_with(sign)) || matches!(line, "" | "//" | "/" | "/*" | "/**" | "*/")
}

/// Checks a line: as a path, and each part that begins at the root or a home. No word with a slash may be a blocked place.
fn check_line(call: &RuleCall<'_>, line: &str, said: NameKind, effects: &Effects<'_>) -> Result<(), Denial> {
    // Words under a name that is not only that of files may be of a language or of a program.
    let is_words = said != NameKind::File && line.contains(char::is_whitespace);
    let begins = |part: &&str| part.len() > 1 && is_rooted(part);
    let is_deep = |part: &&str| !is_words || part.get(1..).is_some_and(|rest| rest.contains('/'));
    let is_around = |char: char| char.is_whitespace() || AROUND.contains(&char) || said == NameKind::Unknown && "()[]<>,;.".contains(char);
    let bare = |part| {
        if is_words && said != NameKind::Unknown {
            str::trim(part)
        } else {
            part.trim_start_matches(|char| char != '.' && is_around(char)).trim_end_matches(is_around)
        }
    };
    let is_single = !is_words || said == NameKind::Unknown;
    let is_between = |char| ",:;|".contains(char) || is_single && "=[({\"'".contains(char);
    let parts = line.split(is_between).filter(|part| part.len() < line.len()).filter_map(|part| part.split([']', ')', '}']).next());
    let mut places = parts.chain(line.split_whitespace().skip(1)).map(bare).filter(begins).filter(is_deep);
    places.try_for_each(|place| check_path(call, place, said, effects))?;
    let mut words = line.split_whitespace().map(bare).filter(|word| is_words && word.contains('/'));
    words.try_for_each(|word| match count_parents(word) {
        0 => call.files.check_unblocked(word, effects.writes),
        _ => check_path(call, word, said, effects),
    })?;
    check_path(call, line, said, effects)
}

/// Returns a path with slashes for the backslashes of Windows.
fn slashed(path: &str) -> Cow<'_, str> {
    if path.contains('\\') { path.replace('\\', "/").into() } else { path.into() }
}

/// Checks every piece of a text that may be a path to some reader: what stands between blanks and other signs (`HEAD:private/a`, `--body .env`,
/// `sqlite:private/x.db`), but for addresses of the web. No piece may be a secret or a blocked place. `is_path` says which pieces count: a word of
/// letters alone, such as `credentials`, is more likely no file.
pub(super) fn check_pieces(call: &RuleCall<'_>, text: &str, is_path: impl Fn(&str) -> bool, writes: bool) -> Result<(), Denial> {
    let is_around = |char: char| char.is_whitespace() || "'\"`,;|()[]{}<>\u{feff}".contains(char);
    let words = text.split(is_around).filter(|word| !word.contains("http://") && !word.contains("https://"));
    let pieces = words.flat_map(|word| word.split([':', '=', '&', '@', '?', '#'])).map(|piece| piece.trim_end_matches(['.', '!']));
    // In Markdown stars and low lines stand around what is stressed, and in a diff a letter in front of a path.
    let is_diff = text.contains("+++ ");
    let of_diff = move |piece| if is_diff { ["a/", "b/"].iter().find_map(|side| str::strip_prefix(piece, side)) } else { None };
    let bare = |piece| Some(str::trim_matches(piece, ['*', '_'])).filter(|bare| *bare != piece);
    let pieces = pieces.flat_map(|piece| std::iter::once(piece).chain(bare(piece)).chain(of_diff(piece)));
    let is_part = |piece: &&str| (piece.len() < text.len() || piece.contains('\\')) && piece.len() <= PATH_BYTES_MAX && is_path(piece);
    let paths: Vec<Cow<'_, str>> = pieces.filter(is_part).map(slashed).collect();
    budget::check_places(paths.iter(), call.files.limits.weight())?;
    // In a program a name with a dot is a member (`e.key`, `meta.env`).
    let is_code = text.contains(|char: char| "(){}[]$;>".contains(char));
    let is_member = |path: &str| is_code && !path.contains('/') && !path.starts_with('.') && path.contains('.');
    let check = |path: &Cow<'_, str>| match !is_member(path) && (names_secret(path) || secrets::secret_word(path)) {
        true => Err(denial_of(path)),
        // The name of a key has no other sign.
        false if path.contains(['/', '.']) => call.files.check_unblocked(path, writes),
        false => Ok(()),
    };
    paths.iter().try_for_each(check)
}

/// Checks the pieces of a text as it stands, and as who reads it as a line takes it: without quotes and backslashes.
pub(super) fn check_line_pieces(call: &RuleCall<'_>, text: &str, writes: bool) -> Result<(), Denial> {
    let may_be_file = |piece: &str| piece.contains(['/', '\\', '.', '_']);
    const QUOTES: [char; 3] = ['"', '\'', '\\'];
    check_pieces(call, text, may_be_file, writes)?;
    if text.contains(QUOTES) { check_pieces(call, &text.replace(QUOTES, ""), may_be_file, writes) } else { Ok(()) }
}

/// Checks a text that may be a path. A path below some folder may be one of the server's: it may be no secret, and no blocked place.
pub(super) fn check_path(call: &RuleCall<'_>, text: &str, said: NameKind, effects: &Effects<'_>) -> Result<(), Denial> {
    // The sign in front of a group stands around other paths.
    if text.contains('/') && !text.contains(char::is_whitespace) {
        check_group(text)?;
    }
    let text = bare(text);
    let has_blank = text.contains(char::is_whitespace);
    let spelling = plain_spelling(text);
    let begins = is_begun(text) || spelling.as_deref().is_some_and(is_begun);
    let is_spelled = || spelling.as_deref().is_some_and(names_secret);
    let is_named = said == NameKind::File || said.is_place() && (text.contains('/') || !has_blank);
    if text.is_empty() || !begins && !is_named && (has_blank || !text.contains(['/', '\\', '.'])) {
        return Ok(());
    }
    let is_taken = effects.takes_whole && !effects.destinations.contains_key(text) && (begins || said.is_place());
    let check_taken = || if is_taken { call.files.check_whole(text, Below::Moves) } else { Ok(()) };
    if said.may_be_url() && !begins && !text.contains(['/', '\\', '.']) {
        return call.files.check_unblocked(text, effects.writes).and_then(|()| check_taken());
    }
    let is_glob = || text.contains(['*', '?', '[', '{']) && !budget::is_text(text);
    let expansions = if is_glob() { bash_commands::braces(text) } else { Vec::new() };
    budget::check_glob(&expansions, text)?;
    let finds_secret = || expansions.iter().any(|expansion| secrets::secret_glob(expansion));
    let holds_secret = |piece: &str| names_secret(piece) || piece.len() <= PATH_BYTES_MAX && secrets::secret_word(piece);
    if budget::pieces(text).any(holds_secret) || names_secret(text) || is_spelled() || finds_secret() {
        return Err(denial_of(text));
    }
    let is_elsewhere = begins || climbs(text);
    if is_elsewhere && (!has_blank || said == NameKind::File) {
        read_path(text)?;
    }
    // Several places may stand in one text.
    let others = text.split_whitespace().filter(|word| has_blank && begins && word.starts_with(['/', '~']));
    let expanded = expansions.iter().map(String::as_str).filter(|place| place.contains('/'));
    others.chain(expanded).try_for_each(|place| call.files.check_path(place, false, effects.writes))?;
    // Without a slash it is a version or a name as well.
    if begins || text.contains('/') || said == NameKind::File {
        call.files.check_path(text, is_glob(), effects.writes)?;
    } else {
        call.files.check_unblocked(text, effects.writes)?;
    }
    check_taken()
}

/// Signs between the words of a text that is said, and around them.
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
    let mut quoted = pieces_of(text, "'\"`").into_iter().filter(|(_, _, sign)| QUOTES.contains(sign)).map(|(_, piece, _)| piece);
    match quoted.find(|piece| piece.starts_with('.') && names_secret(piece)) {
        Some(piece) => Err(denial_of(piece)),
        None => check_prose(call, text, writes),
    }
}
