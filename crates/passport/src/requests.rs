//! What a request to the web holds beside its URL: bodies, routes, and words that a tool fetches.

use bash_commands::decoded;

use super::beginning::is_path;
use super::look_alike::has_encoded;
use super::name_kind::NameKind;

/// Returns whether the body of a request is a file: behind `@`, as `curl` takes it, or as a path among what is attached.
pub(super) fn is_file_sent(name: &str, text: &str) -> bool {
    let is_attached = matches!(name, "attachment" | "attachments" | "multipart");
    text.trim_start().strip_prefix('@').is_some_and(|path| is_path(path) || path.contains(['/', '.']))
        || is_attached && is_path(text.trim_start())
}

/// Returns whether a route may be more than a path behind the address of a server: `//host`, `@host`, `:80@host`, `.host`.
pub(super) fn may_lead_away(route: &str) -> bool {
    let route = route.trim();
    // Behind a slash it is a path, unless that begins a host.
    if let Some(rest) = route.strip_prefix(['/', '\\']) {
        return rest.starts_with(['/', '\\']);
    }
    let is_port = route.strip_prefix(':').is_some_and(|port| port.starts_with(|first: char| first.is_ascii_digit()));
    let first = route.split(['/', '?', '#']).next().unwrap_or_default();
    is_port || first.contains('@') || first.starts_with('.') && !matches!(first, "." | "..")
}

/// Returns the address to which such a route leads.
pub(super) fn led_to(route: &str) -> String {
    format!("http://{}", route.trim_start_matches(['/', '\\', '@', '.', ':']))
}

/// Returns the URLs among the words of a text, without what stands around them.
pub(super) fn urls_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text
        .split(|char: char| char.is_whitespace() || char == '\u{feff}')
        .map(|word| word.trim_matches(|char: char| "<>()[]{}\"'`,;.".contains(char)));
    words.filter(|word| word.contains("://"))
}

/// TABLE: folders that lie at the root of every system, or of many.
const ROOT_FOLDERS: &str =
    "app bin boot data dev etc home lib lib64 media mnt opt private proc root run sbin srv sys tmp users usr var volumes workspace";

/// Returns what a query or a program under a name may open, with what it is: the text itself, of which no word may be a blocked place, and what stands
/// in quotes as a whole address or path, alone in code, or without a name between signs. A path from the root is one if its first folder is known, since
/// routes and patterns are written so too.
pub(super) fn quoted_in<'t>(name: &str, text: &'t str) -> impl Iterator<Item = (NameKind, &'t str)> {
    let (signs, is_code) = match name {
        "code" | "script" => ("'\"`()[]{};,=<>|& \t\r\n", true),
        "" => ("'\"`()[]{};<>|", false),
        _ => ("'\"`", false),
    };
    let mut front = "";
    let quoted =
        text.split(move |char| signs.contains(char)).filter(move |piece| is_code || piece.len() < text.len()).filter_map(move |piece| {
            let before = std::mem::replace(&mut front, piece).trim_end().to_ascii_lowercase();
            // It is shown or compared.
            let is_value = before.ends_with("select") || before.ends_with("like");
            let first = piece.strip_prefix('/').and_then(|rest| rest.split('/').next()).map(str::to_ascii_lowercase);
            let is_known = first.is_some_and(|first| ROOT_FOLDERS.split_ascii_whitespace().any(|folder| folder == first));
            match () {
                () if piece.contains("://") && !piece.contains(char::is_whitespace) => Some((NameKind::Unknown, piece)),
                () if is_value || piece == "/dev/null" => None,
                () if is_known || piece.starts_with("~/") || piece.starts_with("../") => Some((NameKind::File, piece)),
                () => None,
            }
        });
    std::iter::once((NameKind::Program, text)).filter(move |_| text.contains(['/', '.'])).chain(quoted)
}

/// Returns the words and values of a text in which percent signs stand for what nobody has to write so, read as often as two readers do, each with the
/// name in front of it: `path=%2Fetc`.
pub(super) fn decoded_in(text: &str) -> impl Iterator<Item = (&str, String)> {
    let words = text.split(|char: char| char.is_whitespace() || "&?;".contains(char)).filter(|word| word.contains('%'));
    words.filter_map(|word| {
        let (name, value) = word.split_once('=').unwrap_or(("", word));
        let once = decoded(value);
        (has_encoded(value) || has_encoded(&once)).then(|| (name, decoded(&once)))
    })
}

/// Returns whether a text is an address of which the scheme says that it runs something: a helper of git, a script, or a page in the address.
pub(super) fn runs(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme = scheme.to_ascii_lowercase();
    let is_page = || rest.split(',').next().is_some_and(|kind| ["html", "xml", "svg", "script"].iter().any(|part| kind.contains(part)));
    match scheme.as_str() {
        "ext" | "fd" => rest.starts_with(':'),
        "javascript" | "vbscript" => !rest.starts_with(char::is_whitespace),
        "data" => is_page(),
        _ => false,
    }
}
