//! What the limits of files and of the web say of the arguments of a tool of an MCP server.
//!
//! Under the name of a place a text is a path, whatever stands in it: blanks, and other paths behind commas and colons. Under other names it
//! is one if it looks so.

use std::borrow::Cow;

use bash_commands::{Below, decoded};
use tollgate_json::{DEPTH_MAX, Parser};

use crate::argument_bounds::check_braces;
use crate::argument_names::fold;
use crate::arguments::Sorted;

use crate::beginning::{count_parents, is_begun, is_rooted};
use crate::denial::{Denial, Report, report};
use crate::look_alike::has_encoded;
use crate::name_kind::NameKind;
use crate::pack::Pack;
use crate::requests::{decoded_in, quoted_in, runs};

use super::super::file_path::{PATH_BYTES_MAX, read_path};
use super::super::secrets::check_no_secret;
use super::super::web::check_mentioned;
use super::super::{RuleCall, budget};
use super::mcp_effects::{Effects, effects};
use super::mcp_options::{check_options, check_variable};
use super::mcp_paths::{check_line_pieces, check_path, check_place, check_program, check_prose, is_prose};
use super::{WRITTEN_MAX, check_secrets, is_place_by_name};

/// The most parts of texts under names of places that are looked at: each may be a place of its own.
const PARTS_MAX: usize = 4_096;

/// The most pieces of texts that are looked at: each may be a blocked place.
const PIECES_MAX: usize = 65_536;

/// How many characters at the beginning of a text are looked at for the scheme of an address.
const SCHEME_CHARS_MAX: usize = 32;

/// TABLE: schemes by which something is fetched from a host that need not be of this network.
const FETCHING: [&str; 9] = ["dict", "ftp", "ftps", "git", "gopher", "gophers", "rsync", "svn", "tftp"];

/// A text that a tool is given, and what its name says of it.
struct Given<'t> {
    kind: NameKind,
    text: Cow<'t, str>,
}

/// Reports what the limits of files and of the web say of arguments that look like a path or an address.
pub(super) fn check_arguments(call: &RuleCall<'_>, sorted: &Sorted<'_>, to: &mut dyn Report) {
    let mut read = Read::default();
    if let Err(denial) = read.sorted(call, sorted, 0) {
        return report(to, "arguments", Err(denial));
    }
    let Read { mut given, addresses } = read;
    given.iter_mut().for_each(|given| given.text = without_dots(std::mem::take(&mut given.text)));
    if let Err(denial) = check_braces(given.iter().map(|given| &*given.text).filter(|text| !budget::is_text(text))) {
        return report(to, "arguments", Err(denial));
    }
    let has_parts = |given: &&Given<'_>| match given.kind {
        NameKind::Prose | NameKind::Program => false,
        NameKind::Unknown => given.text.contains("://") || given.text.trim_start().starts_with('-'),
        _ => true,
    };
    let is_sign = |char: &char| char.is_whitespace() || matches!(char, ',' | ':' | ';' | '|' | '=');
    let parts: usize = given.iter().filter(|given| has_parts(given)).map(|given| given.text.chars().filter(is_sign).count() + 1).sum();
    if parts > PARTS_MAX {
        let message = format!("Tool arguments hold {parts} parts of texts that may be places; at most {PARTS_MAX} are looked at");
        return report(to, "arguments", Err(Denial::new("oap.context_too_large", message)));
    }
    let mut effects = effects(call);
    let is_compared = |text: &&str| effects.takes_whole || text.contains(['*', '?', '[', '{']);
    let compared = given
        .iter()
        .filter(|given| !given.kind.is_text())
        .map(|given| &*given.text)
        .filter(|text| !budget::is_text(text))
        .filter(is_compared);
    if let Err(denial) = budget::check_compared(compared, call.files.limits.entries()) {
        return report(to, "budget", Err(denial));
    }
    let pieces: usize = given.iter().map(|given| given.text.matches(['.', '/', '_', '\\']).count()).sum();
    if pieces > PIECES_MAX {
        let message = format!("Tool arguments hold {pieces} pieces of texts that may be paths; at most {PIECES_MAX} are looked at");
        return report(to, "arguments", Err(Denial::new("oap.context_too_large", message)));
    }
    let is_place = |given: &Given<'_>| given.kind.is_place() && !given.text.contains("://") || is_begun(given.text.trim());
    let is_word = |given: &Given<'_>| given.kind == NameKind::Unknown && given.text.contains('/') && !given.text.contains("://");
    effects.writes |= effects.fetches && given.iter().any(|given| given.kind != NameKind::Url && (is_place(given) || is_word(given)));
    // What stands under another name too may be what is taken.
    let times = |text: &str| given.iter().filter(|given| given.text == text).count();
    effects.destinations.retain(|text, named| times(text) <= *named);
    effects.elsewhere.retain(|text, named| times(text) <= *named);
    given.iter().for_each(|given| check_text(call, given, &effects, to));
    // What an unknown name holds may be a command line.
    let short = given.iter().filter(|given| given.kind == NameKind::Unknown && given.text.len() <= PATH_BYTES_MAX);
    let mut words = short.flat_map(|given| given.text.split_whitespace()).filter(|word| word.starts_with(['/', '~']));
    let named = words.try_for_each(check_no_secret);
    if effects.writes && given.iter().any(is_place) {
        check_size(call, to);
    }
    report(to, "secrets", named.and_then(|()| check_secrets(call)));
    report(to, "private network", check_mentioned(&addresses));
    let is_address = |given: &Given<'_>| given.text.contains("://") || given.kind == NameKind::Url;
    if given.iter().any(is_address) {
        let unknown = given.iter().filter(|given| given.kind == NameKind::Unknown).map(|given| given.text.trim());
        report(to, "allowed_methods", call.files.check_methods(call, unknown));
    }
}

/// Reports whether the arguments of a call are more than a file may hold: any of them may be written, but for the names of places, which have a
/// line and are no longer than a path, and what is replaced.
fn check_size(call: &RuleCall<'_>, to: &mut dyn Report) {
    let is_place = |key: &str, text: &str| NameKind::under(key).is_place() && text.len() <= PATH_BYTES_MAX && !text.contains(['\n', '\r']);
    let is_left_out = |key: &str, text: &str| is_place(key, text) || fold(key).is_some_and(|name| name.starts_with("old"));
    let bytes = call.arguments.written_bytes(is_left_out);
    for rules in call.files.limits.files(Pack::FileWrite) {
        report(to, "max_file_size", rules.and_then(|rules| rules.check_bytes(bytes)));
    }
}

/// What the arguments of a call hold.
#[derive(Default)]
struct Read<'t> {
    given: Vec<Given<'t>>,
    /// Addresses of which the tool is not known to make anything.
    addresses: Vec<Cow<'t, str>>,
}

impl<'t> Read<'t> {
    /// Takes what arguments hold, which have been sorted by their names.
    fn sorted(&mut self, call: &RuleCall<'_>, sorted: &'t Sorted<'_>, depth: usize) -> Result<(), Denial> {
        let given = sorted.texts.iter().map(|(role, _, text)| (role.name_kind(), text));
        let unknown = sorted.unknown.iter().map(|text| (NameKind::Unknown, text));
        let mut texts = given.chain(unknown).chain(sorted.placed.iter().map(|(kind, text)| (*kind, text)));
        texts.try_for_each(|(kind, text)| self.text(call, kind, text, depth))?;
        sorted.unknown_names.iter().try_for_each(|name| check_variable(name))?;
        let names = sorted.unknown_names.iter().filter(|name| is_place_by_name(name));
        self.given.extend(names.map(|name| Given { kind: NameKind::Unknown, text: Cow::Borrowed(name) }));
        self.addresses.extend(sorted.mentioned.iter().map(|text| Cow::Borrowed(&**text)));
        Ok(())
    }

    /// Takes a text, or what stands in it if it is an object, a list or a text that is written out. The names there say what the texts are, as they do
    /// outside.
    fn text(&mut self, call: &RuleCall<'_>, kind: NameKind, text: &'t str, depth: usize) -> Result<(), Denial> {
        let kind = if kind == NameKind::Prose && !is_prose(text) { NameKind::Unknown } else { kind };
        // Under the name of a place such a text is refused.
        if !kind.is_text() && !kind.is_place() && text.contains('%') && !text.contains("://") {
            self.given.extend(decoded_in(text).map(|(name, text)| Given { kind: NameKind::of(name, &call.names), text: text.into() }));
        }
        let shown = within(text);
        if kind == NameKind::Program || !shown.starts_with(['{', '[', '"']) {
            if kind == NameKind::Unknown {
                let name = if text.contains(char::is_whitespace) { "text" } else { "" };
                let quoted = quoted_in(name, text).filter(|(kind, _)| *kind == NameKind::File);
                self.given.extend(quoted.map(|(kind, piece)| Given { kind, text: piece.into() }));
            }
            self.given.push(Given { kind, text: text.into() });
            return Ok(());
        }
        // Some readers leave out the quotes.
        if shown.starts_with('"') {
            self.given.push(Given { kind, text: text.into() });
        }
        let mut parser = Parser::new();
        match parser.parse(shown.as_bytes(), DEPTH_MAX) {
            Ok(value) if depth < WRITTEN_MAX => {
                let (sorted, mut inner) = (Sorted::under(kind, value, &call.names)?, Read::default());
                inner.sorted(call, &sorted, depth + 1)?;
                self.given.extend(inner.given.into_iter().map(|Given { kind, text }| Given { kind, text: text.into_owned().into() }));
                self.addresses.extend(inner.addresses.into_iter().map(|text| Cow::Owned(text.into_owned())));
            }
            Err(_) if shown.starts_with('"') => {}
            Err(_) if kind == NameKind::Prose => self.given.push(Given { kind, text: text.into() }),
            _ => {
                let parts = shown.split(|char: char| char.is_whitespace() || "{}[]\"',\\".contains(char));
                let parts = parts.filter(|part| !part.is_empty() && *part != ":");
                self.given.extend(parts.map(|part| Given { kind: NameKind::Unknown, text: part.into() }));
            }
        }
        Ok(())
    }
}

/// Returns an object or a list that is written out, without what stands in front of it and behind it: an invisible sign, a fence, brackets.
pub(super) fn within(text: &str) -> &str {
    let is_around = |char: char| char.is_whitespace() || "\u{feff}`();".contains(char);
    let shown = text.trim_start_matches(is_around);
    let fenced = shown.get(..4).filter(|language| language.eq_ignore_ascii_case("json")).and_then(|_| shown.get(4..)).unwrap_or(shown);
    let shown = fenced.trim_start_matches(is_around);
    if shown.starts_with(['{', '[']) { shown.trim_end_matches(is_around) } else { text.trim() }
}

/// Returns a long text without components that lead nowhere: they do not make a text of a path.
fn without_dots(text: Cow<'_, str>) -> Cow<'_, str> {
    if !budget::is_text(&text) || text.contains("://") || !text.contains("//") && !text.contains("/./") {
        return text;
    }
    let last = text.split('/').count().saturating_sub(1);
    let parts = text.split('/').enumerate().filter(|(at, part)| *at == 0 || *at == last || !matches!(*part, "" | "."));
    Cow::Owned(parts.map(|(_, part)| part).collect::<Vec<_>>().join("/"))
}

/// Reports the checks of a text that may be a path or an address.
fn check_text(call: &RuleCall<'_>, given: &Given<'_>, effects: &Effects<'_>, to: &mut dyn Report) {
    let text = given.text.trim();
    if effects.elsewhere.contains_key(text) && !text.contains("://") && count_parents(text) == 0 {
        return report(to, "secrets", check_no_secret(text));
    }
    match given.kind {
        NameKind::Prose => return report(to, "path", check_prose(call, text, effects.writes)),
        NameKind::Program => return report(to, "path", check_program(call, text, effects.writes)),
        _ => check_options(call, text, to),
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return check_schemed(call, given, (&scheme.to_ascii_lowercase(), text), effects, to);
    }
    if runs(text) {
        const MESSAGE: &str = "An address runs a program or holds a page of its own; write an http or https address";
        return report(to, "url", Err(Denial::new("oap.invalid_url", MESSAGE)));
    }
    if is_address_without_slashes(text) {
        return check_address(call, text, to);
    }
    if given.kind.is_place() && has_encoded(text) {
        const MESSAGE: &str = "An argument has percent signs that stand for letters, dots or slashes; write these";
        return report(to, "arguments", Err(Denial::new("oap.invalid_tool_arguments", MESSAGE)));
    }
    given.kind.web_addresses(text).for_each(|url| check_address(call, &url, to));
    // A value may be attached to the letter of its option.
    let attached = text.strip_prefix('-').and_then(|rest| rest.get(1..)).filter(|rest| !rest.contains(char::is_whitespace));
    let found = given.kind.addresses_in(text).into_iter().chain(NameKind::Unknown.addresses_in(attached.unwrap_or_default()));
    let addresses: Vec<Cow<'_, str>> = found.map(Cow::Owned).collect();
    report(to, "private network", check_mentioned(&addresses));
    report(to, "path", check_place(call, text, given.kind, effects).and_then(|()| check_line_pieces(call, text, effects.writes)));
}

/// Reports the checks of a text that has a scheme.
fn check_schemed(call: &RuleCall<'_>, given: &Given<'_>, (scheme, text): (&str, &str), effects: &Effects<'_>, to: &mut dyn Report) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_./:=@+~".contains(&byte);
    match scheme {
        "http" | "https" | "ws" | "wss" => {
            check_address(call, &text.replacen("ws", "http", usize::from(text.starts_with("ws"))), to);
            let mut others = text.split([',', ';', '|']).skip(1).filter(|other| is_rooted(other));
            report(to, "path", others.try_for_each(|other| check_path(call, other, NameKind::File, effects)));
        }
        "file" | "jar" | "phar" | "php" | "zip" => report(to, "path", read_path(text).map(drop)),
        // What fetches for another program.
        scheme if scheme.ends_with("+https") || scheme.ends_with("+http") => {
            check_address(call, text.split_once('+').map_or(text, |(_, address)| address), to);
        }
        // An address without a host is a path here: `unix:///run/x.sock`.
        scheme if is_scheme(scheme) && text.contains(":///") => {
            let path = text.split_once("://").map_or(text, |(_, path)| path);
            report(to, "path", check_path(call, path, given.kind, effects));
        }
        // A server may take what is behind its own scheme for a path.
        scheme if is_scheme(scheme) && count_parents(&decoded(text)) > 0 => report(to, "path", read_path(text).map(drop)),
        scheme if is_scheme(scheme) => {
            report(to, "private network", check_mentioned(&[Cow::Borrowed(text)]));
            // What another scheme fetches from a host comes from the web as well.
            if scheme.split('+').any(|part| FETCHING.contains(&part)) {
                check_address(call, &text.replacen(scheme, "http", 1), to);
            }
            report(to, "path", check_behind(call, text, effects));
        }
        // It may be a command line, of which each word is judged where every reader takes the same words.
        _ if given.kind == NameKind::Unknown && text.contains(' ') && text.bytes().all(is_plain) => {
            for word in text.split(' ').filter(|word| !word.is_empty()) {
                check_text(call, &Given { kind: NameKind::Unknown, text: Cow::Borrowed(word) }, effects, to);
                // The line may hand it to the address, with what lies below it.
                let is_place = !word.contains("://") && !word.starts_with('-');
                let sent = || call.files.check_unblocked(word, effects.writes).and_then(|()| call.files.check_whole(word, Below::Sent));
                report(to, "path", if is_place { sent() } else { Ok(()) });
            }
        }
        // Readers differ in where such an address leads.
        _ => check_address(call, text, to),
    }
}

/// Reports the checks of an address of the web. A port of this machine that a list has is for the host's own tools.
fn check_address(call: &RuleCall<'_>, url: &str, to: &mut dyn Report) {
    report(to, "private network", check_mentioned(&[Cow::Borrowed(url)]));
    call.files.check_address(url, to);
}

/// Checks what stands behind the scheme of a server's own, which may be a path to the server.
fn check_behind(call: &RuleCall<'_>, text: &str, effects: &Effects<'_>) -> Result<(), Denial> {
    let text = decoded(text);
    let path = text.split_once("://").map_or(text.as_str(), |(_, path)| path).split(['?', '#']).next().unwrap_or_default();
    check_no_secret(path)?;
    let rooted = format!("/{path}");
    [path, &rooted].iter().try_for_each(|path| call.files.check_unblocked(path, effects.writes))?;
    let is_of_system = ["/etc/", "/proc/", "/root/", "/sys/"].iter().any(|folder| rooted.starts_with(folder));
    if is_of_system { call.files.check_path(&rooted, false, effects.writes) } else { Ok(()) }
}

/// Returns whether a text is a scheme of an address.
pub(in super::super) fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Returns whether a text is an address of the web to readers that take any number of slashes, and leave out signs that are not shown.
fn is_address_without_slashes(text: &str) -> bool {
    let is_hidden = |char: &char| char.is_control() || *char == '\u{feff}';
    let begin = || text.chars().take(SCHEME_CHARS_MAX);
    let lower: String = begin().filter(|char| !is_hidden(char)).collect::<String>().to_ascii_lowercase();
    let rest = lower.strip_prefix("view-source:").unwrap_or(&lower);
    let rest = rest.strip_prefix("https:").or_else(|| rest.strip_prefix("http:"));
    let has_hidden = begin().any(|char| is_hidden(&char));
    rest.is_some_and(|rest| !rest.is_empty()) && (has_hidden || !text.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use crate::{ArgumentRole, Call, Outcome, Passport, Terms, ToolArguments, ToolInput, examine};

    use super::*;

    /// Holds whether a call is denied.
    #[derive(Default)]
    struct Denied(bool);

    impl Report for Denied {
        fn outcome(&mut self, _check: &'static str, outcome: Outcome) {
            self.0 |= matches!(outcome, Outcome::Denied(_));
        }
    }

    #[test]
    fn a_role_of_the_configuration_is_held_to_its_rules() {
        let passport = br#"{"spec_version": "oap/1.0", "status": "active", "capabilities": [{"id": "mcp.tool.execute"}],
            "limits": {"data.file.read": {"blocked_paths": ["/w/private"]}}}"#;
        let passport = Passport::read(passport).unwrap();
        let arguments = ToolArguments::new(None, [("mcp__x__get", "content", ArgumentRole::Path)]);
        let terms = Terms { arguments, ..Terms::default() };
        let is_denied = |text: &str| {
            let input = ToolInput::Encoded(tollgate_json::Text::plain(text.as_bytes()));
            let call = Call { tool_name: "mcp__x__get", input: &input, time_ms: Some(1), earliest_ms: Some(1) };
            let mut denied = Denied::default();
            examine(Some(Ok(&passport)), &terms, &call, &mut denied);
            denied.0
        };
        for content in [r#""/w/private/a""#, r#""/root/.ssh/id_rsa""#, r#""[\"/w/private/a\"]""#, r#"["/w/private"]"#] {
            assert!(is_denied(&format!(r#"{{"content": {content}}}"#)), "{content}");
        }
        assert!(!is_denied(r#"{"content": "/w/docs/a"}"#));
    }

    #[test]
    fn objects_are_found_behind_what_stands_in_front() {
        for text in ["{\"a\":1}", "\u{feff}{\"a\":1}", "```json {\"a\":1}```", "({\"a\":1})", " ```JSON\n{\"a\":1}\n``` "] {
            assert_eq!(within(text), "{\"a\":1}", "{text}");
        }
        assert_eq!(within(" (words) "), "(words)");
    }

    #[test]
    fn long_texts_lose_what_leads_nowhere() {
        let long = format!("/workspace/{}.e*", "./".repeat(300));
        assert_eq!(without_dots(Cow::Borrowed(&long)), "/workspace/.e*");
        assert_eq!(without_dots(Cow::Borrowed("/a/./b")), "/a/./b", "a short text is read as it is");
    }
}
