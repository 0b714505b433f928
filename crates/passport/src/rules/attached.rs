//! What a message holds beside those who get it: files that are sent with it, addresses that are fetched or called for it, and lines of its
//! headers.
//!
//! Which arguments a host takes for files is not known. So every text of a message is judged by its value, as a file or an address, unless it
//! stands under a name of what is said.

use std::borrow::Cow;

use tollgate_json::{Parser, Text, Value};

use super::super::super::argument_bounds::check_braces;
use super::super::super::argument_names::{ArgumentNames, fold};
use super::super::super::argument_role::ArgumentRole;
use super::super::super::name_kind::{NameKind, last_word};
use super::super::super::path::NormalPath;
use super::super::file_path::PATH_BYTES_MAX;
use super::super::web::check_mentioned;
use super::super::{Denial, RuleCall, budget, deny_if, secrets};
use super::sent::{begins_path, check_file, is_data, is_secret};

/// The most texts of a message that are judged. Nobody sends as many files, addresses and settings.
const JUDGED_MAX: usize = 1_024;

/// The most names at any depth that are looked at. Blocks of a long message have some hundred.
const MEMBERS_MAX: usize = 4_096;

/// The most times that texts of a message may say `MEDIA:`. Behind each a line is looked at.
const SIGNS_MAX: usize = 64;

/// How often a text may hold another one that is written out as JSON.
const NESTED_MAX: usize = 4;

/// How deep such a text may be.
const NESTED_DEPTH_MAX: usize = 64;

/// TABLE: last words of names of what is said, which may have several lines.
const SAID: &str = "alt answer body caption code comment content contents data description details diff error explanation fallback field footer \
     html instruction instructions lines log logs markdown message msg note notes output plain pretext prompt question quote signature snippet \
     stderr stdout text traceback value variables";

/// TABLE: words among these under which some hosts take the path of a file.
const CONTENTS: &str = "base64 body bytes content contents data";

/// TABLE: names of arguments that become headers of a mail, wherever they stand and whatever lies in them.
const HEADERS: &str = "bcc cc from fromname headers inreplyto replyto sender sendername subject title to";

/// What a text is by the names above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It stands nowhere: these are the arguments of the call.
    Call,
    /// It is prose.
    Prose,
    /// It is said, or it is the path of what is sent.
    Contents,
    /// It names those who get the message.
    Recipient,
    /// It is an address that is called.
    Hook,
    /// It is anything else, such as a file that is sent.
    Unnamed,
}

/// How many lines a text may have by the names above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    Many,
    One,
    /// One, whatever the names below are.
    Header,
}

/// Where a text stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    kind: Kind,
    lines: Lines,
    /// What the last name says of addresses.
    name_kind: NameKind,
}

/// Checks the files, the addresses and the headers of a message. Returns what each check is called and what it says.
pub(super) fn checks(call: &RuleCall<'_>) -> [(&'static str, Result<(), Denial>); 4] {
    let mut parts = Parts::default();
    let outer = Place { kind: Kind::Call, lines: Lines::One, name_kind: NameKind::Unknown };
    for (key, value) in call.arguments.members() {
        parts.member(call, outer, &key, value, 0);
    }
    const BREAK: &str =
        "An argument that is no body of the message has a line break, behind which mailers read another header; write one line";
    const HIDDEN: &str = "A text that is written out as JSON names a recipient or a channel; write the recipient as an argument";
    let refuse = |is_so: bool, message| deny_if(is_so, "oap.invalid_tool_arguments", message);
    let (headers, recipients) = (refuse(parts.has_break, BREAK), refuse(parts.hides_recipient, HIDDEN));
    [
        ("recipients", recipients),
        ("files", parts.check_files(call)),
        ("private network", check_mentioned(&parts.addresses)),
        ("headers", headers),
    ]
}

/// The parts of a message that are judged.
#[derive(Debug, Default)]
struct Parts {
    /// Texts that are files, or addresses of files.
    files: Vec<Cow<'static, str>>,
    addresses: Vec<Cow<'static, str>>,
    has_break: bool,
    /// Whether a text that is written out names somebody who gets the message.
    hides_recipient: bool,
    /// How many names have been looked at.
    members: usize,
    /// How many signs of a file there are in texts.
    signs: usize,
    /// Whether there is more than is looked at.
    is_over: bool,
}

impl Parts {
    fn member(&mut self, call: &RuleCall<'_>, outer: Place, key: &str, value: Value<'_>, nested: usize) {
        self.members += 1;
        self.is_over |= self.members > MEMBERS_MAX;
        if self.is_over {
            return;
        }
        self.has_break |= outer.lines != Lines::Many && has_break(key);
        // A file may be given as the name of a member.
        self.file(key, begins_path(key) || outer.kind == Kind::Unnamed && key.contains(['/', '\\']));
        self.walk(call, outer.below(&call.names, key), value, nested);
    }

    fn walk(&mut self, call: &RuleCall<'_>, place: Place, value: Value<'_>, nested: usize) {
        value.items().for_each(|item| self.walk(call, place, item, nested));
        for (key, value) in value.members() {
            let key = key.as_text().and_then(Text::into_str).unwrap_or_default();
            self.member(call, place, &key, value, nested);
        }
        if let Some(text) = value.as_text().and_then(Text::into_str) {
            self.text(call, place, &text, nested);
        }
    }

    fn text(&mut self, call: &RuleCall<'_>, place: Place, text: &str, nested: usize) {
        self.has_break |= place.lines != Lines::Many && has_break(text);
        let is_written_out = !matches!(place.kind, Kind::Prose | Kind::Contents) && text.trim_start().starts_with(['{', '[']);
        if is_written_out && let Ok(value) = Parser::new().parse(text.trim().as_bytes(), NESTED_DEPTH_MAX) {
            self.is_over |= nested == NESTED_MAX;
            return if nested < NESTED_MAX {
                self.walk(call, place, value, nested + 1)
            };
        }
        self.media(text);
        match place.kind {
            Kind::Call | Kind::Prose => {}
            Kind::Contents => self.file(text, begins_path(text) || is_secret(text)),
            Kind::Recipient => {
                self.hides_recipient |= nested > 0;
                self.addressed(NameKind::Place, text);
            }
            // What is called may be written without its scheme.
            Kind::Hook => {
                let text = text.trim();
                self.addresses.push(if text.contains("://") { text.to_owned().into() } else { format!("http://{text}").into() });
            }
            Kind::Unnamed => {
                // A word alone is rather a setting, such as `high`.
                let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
                self.file(text, !is_word || place.name_kind.is_place() || secrets::is_secret(&NormalPath::new(text)));
                self.addressed(place.name_kind, text);
            }
        }
    }

    fn addressed(&mut self, kind: NameKind, text: &str) {
        self.addresses.extend(kind.addresses_in(text).into_iter().map(Cow::Owned));
    }

    fn file(&mut self, text: &str, is_file: bool) {
        let has_room = self.files.len().max(self.addresses.len()) < JUDGED_MAX;
        self.is_over |= is_file && !has_room;
        if is_file && has_room {
            self.files.push(Cow::Owned(text.to_owned()));
        }
    }

    /// Takes what stands behind `MEDIA:` in a text: a common host attaches it. A name may have blanks, so that the file may be any beginning of the
    /// line that ends with an extension.
    fn media(&mut self, text: &str) {
        const SIGN: &str = "media:";
        let lower = text.to_ascii_lowercase();
        self.signs += lower.matches(SIGN).take(SIGNS_MAX + 1).count();
        self.is_over |= self.signs > SIGNS_MAX;
        for (at, sign) in lower.match_indices(SIGN).take(if self.is_over { 0 } else { SIGNS_MAX }) {
            let is_sign = text.get(at..at + sign.len()).is_some_and(|sign| sign == "MEDIA:");
            let rest = text.get(at + sign.len()..).unwrap_or_default();
            // What is longer is no path.
            let end = rest.char_indices().nth(PATH_BYTES_MAX + 2).map_or(rest.len(), |(end, _)| end);
            let is_before = |char: char| char.is_whitespace() || "`\"'<".contains(char);
            let is_behind = |char: char| char.is_whitespace() || "`\"'>)]},;!.".contains(char);
            let rest = rest.get(..end).unwrap_or_default().trim_start_matches(is_before);
            let line = rest.lines().next().unwrap_or_default();
            let word = line.split_whitespace().next().unwrap_or_default().trim_end_matches(is_behind);
            self.is_over |= is_sign && word.len() > PATH_BYTES_MAX;
            if word.len() <= PATH_BYTES_MAX && (is_sign || begins_path(word) || is_secret(word)) {
                self.file(word, true);
                self.addressed(NameKind::Place, word);
            }
            let blanks = line.match_indices(char::is_whitespace).map(|(at, _)| at).chain([line.len()]);
            let ends: Vec<usize> = if begins_path(word) { blanks.skip(1).collect() } else { Vec::new() };
            for named in ends.into_iter().filter_map(|at| Some(line.get(..at)?.trim_end_matches(is_behind))) {
                let has_extension = named.rsplit(char::is_whitespace).next().is_some_and(|last| last.contains('.'));
                self.file(named, named.len() <= PATH_BYTES_MAX && (has_extension || named.len() == line.trim_end_matches(is_behind).len()));
            }
        }
    }

    fn check_files(&self, call: &RuleCall<'_>) -> Result<(), Denial> {
        if self.is_over || self.addresses.len() > JUDGED_MAX {
            const MESSAGE: &str = "Message has more files, addresses or settings than are looked at, or texts in texts; split it";
            return Err(Denial::new("oap.too_costly", MESSAGE));
        }
        let paths = self.files.iter().filter(|text| !is_data(text));
        budget::check_places(paths.clone(), call.files.limits.weight())?;
        let globs = paths.clone().map(|text| &**text).filter(|text| text.contains(['*', '?', '[', '{']));
        budget::check_compared(globs, call.files.limits.entries())?;
        check_braces(paths.map(|text| &**text))?;
        self.files.iter().try_for_each(|text| check_file(call, text))
    }
}

impl Place {
    /// Returns the place of what stands under a name here.
    fn below(self, names: &ArgumentNames<'_>, key: &str) -> Self {
        let name = fold(key).unwrap_or_default();
        let role = names.role(&name).map(|(role, _)| role);
        let is_body = is_one_of(last_word(key), SAID);
        let kind = match self.kind {
            _ if name.contains("hook") => Kind::Hook,
            _ if matches!(role, Some(ArgumentRole::Recipient | ArgumentRole::Channel)) => Kind::Recipient,
            outer if outer != Kind::Call && is_one_of(&name, CONTENTS) => Kind::Contents,
            _ if role.is_none() && is_one_of(last_word(key), CONTENTS) => Kind::Contents,
            _ if role == Some(ArgumentRole::Text) || role.is_none() && is_body => Kind::Prose,
            outer @ (Kind::Recipient | Kind::Hook) => outer,
            _ => Kind::Unnamed,
        };
        let lines = match self.lines {
            Lines::Header => Lines::Header,
            _ if is_one_of(&name, HEADERS) => Lines::Header,
            Lines::Many => Lines::Many,
            Lines::One if is_body => Lines::Many,
            Lines::One if role == Some(ArgumentRole::Text) => Lines::Header,
            Lines::One => Lines::One,
        };
        // What is attached is a file.
        let name_kind = if role == Some(ArgumentRole::Body) { NameKind::File } else { NameKind::under(key) };
        Self { kind, lines, name_kind }
    }
}

fn is_one_of(name: &str, names: &str) -> bool {
    names.split_ascii_whitespace().any(|other| other.eq_ignore_ascii_case(name))
}

/// Returns whether a text has a line break of any kind, but for those at its end.
fn has_break(text: &str) -> bool {
    text.trim_end().contains(['\n', '\r', '\0', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'])
}
