//! What a request to the web holds beside its URL: bodies, routes, and words that a tool fetches.

use bash_commands::decoded;

use super::address::is_local_name;
use super::beginning::{climbs, is_path};
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

/// Signs in which programs quote, with the sign of databases.
pub(super) const QUOTES: [char; 4] = ['\'', '"', '`', '$'];

/// TABLE: words of a query behind which it names what it opens.
const OPENING: &str = "attach database directory from infile install into load outfile program to";

/// TABLE: functions in which `from` and `to` name a part of a text.
const OF_TEXTS: &str = "extract overlay position substring trim";

/// TABLE: parts of names of functions that open what a query gives them.
const OPENERS: [&str; 12] = ["_scan", "attach", "csv", "dir", "export", "file", "import", "load", "open", "parquet", "read", "write"];

/// Returns what a query or a program under a name may open, with what it is: the text itself, of which no word may be a blocked place, and what stands
/// in quotes as a whole address or path, alone in code, or without a name between signs. Behind a word or in a function that opens files any name is
/// a path. Elsewhere a path from the root is one if its first folder is known, since routes and patterns are written so too.
pub(super) fn quoted_in<'t>(name: &str, text: &'t str) -> impl Iterator<Item = (NameKind, &'t str)> {
    let (signs, is_code) = match name {
        "code" | "script" => ("'\"`()[]{};,=<>|& \t\r\n", true),
        "" => ("'\"`()[]{};<>|", false),
        _ => ("'\"`", false),
    };
    let mut opened = (false, false);
    let quoted = pieces_of(text, signs).into_iter().filter_map(move |(front, piece, sign)| {
        // Between the others stands the name of a table or a column.
        opened = (opened.1, !is_code && ['\'', '"', '$'].contains(&sign) && opens(front, opened.0));
        let before = front.trim_end().to_ascii_lowercase();
        // It is shown or compared.
        let is_value = before.ends_with("select") || before.ends_with("like");
        let first = piece.strip_prefix('/').and_then(|rest| rest.split('/').next()).map(str::to_ascii_lowercase);
        let is_known = first.is_some_and(|first| ROOT_FOLDERS.split_ascii_whitespace().any(|folder| folder == first));
        let has_blank = piece.contains(char::is_whitespace);
        match () {
            () if !is_code && piece.len() == text.len() => None,
            () if piece.contains("://") && !has_blank => Some((NameKind::Unknown, piece)),
            () if is_value || matches!(piece, "" | "/dev/null") => None,
            () if opened.1 && !has_blank => Some((NameKind::File, piece)),
            () if is_known || piece.starts_with("~/") || piece.starts_with("../") || climbs(piece) && !has_blank => {
                Some((NameKind::File, piece))
            }
            () if QUOTES.contains(&sign) && !has_blank => address_of(piece),
            () => None,
        }
    });
    std::iter::once((NameKind::Program, text)).filter(move |_| text.contains(['/', '.'])).chain(quoted)
}

/// Returns the pieces of a text between some signs, and those between the dollar signs in which databases quote, each with the piece in front of it
/// and the sign there.
pub(super) fn pieces_of<'t>(text: &'t str, signs: &str) -> Vec<(&'t str, &'t str, char)> {
    let (mut front, mut at) = ("", 0);
    let between = text.split(|char| signs.contains(char)).map(|piece| {
        let sign = text.get(..at).and_then(|before| before.chars().next_back()).unwrap_or(' ');
        at += piece.len() + 1;
        (std::mem::replace(&mut front, piece), piece, sign)
    });
    let mut pieces: Vec<_> = between.collect();
    let parts: Vec<&str> = text.split('$').collect();
    let is_tag = |tag: &str| tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    pieces.extend(parts.windows(4).filter_map(|parts| match parts {
        [front, tag, piece, end] if tag == end && is_tag(tag) => Some((*front, *piece, '$')),
        _ => None,
    }));
    pieces
}

/// Returns whether a query opens what stands in quotes behind a text. `is_listed` says that it opens the piece before in a list.
fn opens(front: &str, is_listed: bool) -> bool {
    let front = front.to_ascii_lowercase();
    // A letter that touches a quote says how the text is written.
    let written = front.strip_suffix(['e', 'n']).filter(|rest| rest.ends_with([' ', '\n', '\t', ',']));
    let front = written.or_else(|| front.strip_suffix("u&")).unwrap_or(&front).trim();
    let last = |text: &str| text.rsplit(|char: char| !char.is_ascii_alphanumeric() && char != '_').next().unwrap_or_default().to_owned();
    let word = last(front);
    let function = front.rsplit_once('(').filter(|(_, behind)| !behind.contains(')')).map(|(name, _)| last(name.trim_end()));
    let is_in = |table: &str, word: &str| table.split_ascii_whitespace().any(|known| known == word);
    let name = function.unwrap_or_default();
    is_in(OPENING, &word) && !is_in(OF_TEXTS, &name) || OPENERS.iter().any(|part| name.contains(part)) || is_listed && front == ","
}

/// Returns a piece in quotes that is an address to browsers: a scheme without slashes, or a host behind two slashes alone.
fn address_of(piece: &str) -> Option<(NameKind, &str)> {
    let rest = piece.trim_start_matches(['/', '\\']);
    let host = rest.split(['/', '?', '#', ':', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let has_scheme = piece
        .split_once(':')
        .is_some_and(|(scheme, rest)| !rest.is_empty() && ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)));
    let is_host = || piece.len() >= rest.len() + 2 && (!is_local_name(&host) || !NameKind::Url.addresses_in(rest).is_empty());
    match () {
        () if has_scheme => Some((NameKind::Unknown, piece)),
        () if is_host() => Some((NameKind::Url, rest)),
        () => None,
    }
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
