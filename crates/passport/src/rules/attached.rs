//! What a message holds beside those who get it: files that are sent with it, addresses that are fetched or called for it, and lines of its
//! headers.
//!
//! Which files a host attaches is not known. So each text is judged by the names above it: under the name of an attachment it is a path or an
//! address, under the name of what is said it is data, and under any other name it is a path if it begins like one.

use std::borrow::Cow;

use tollgate_json::{DEPTH_MAX, Parser, Text, Value};

use super::super::super::argument_names::fold;
use super::super::super::argument_role::ArgumentRole;
use super::super::super::arguments::{Sorted, check_braces};
use super::super::file_path::PATH_BYTES_MAX;
use super::super::web::check_said;
use super::super::{Denial, RuleCall, budget};
use super::sent::{begins_path, check_file, is_bare_secret};

/// The most files and addresses of a message that are looked at. Nobody sends as many.
const PLACES_MAX: usize = 512;

/// The most names of arguments that no table has. Nobody sends as many.
const NAMES_MAX: usize = 256;

/// The most names at any depth that are looked at. Blocks of a long message have some hundred.
const MEMBERS_MAX: usize = 4_096;

/// How often a text may hold another one that is written out as JSON.
const NESTED_MAX: usize = 4;

/// How deep such a text may be.
const NESTED_DEPTH_MAX: usize = 64;

/// Parts of names of arguments of which the texts are files that are sent.
const SENT: &str = "animation attach artifact asset audio avatar doc file gif icon image img logo media path pdf photo picture recording \
     screenshot sticker thumb upload video voice";

/// Ends of such names that make them names of something else: of data, of a kind, or of words about the file.
const NOT_SENT: &str =
    "alt base64 body bytes caption content contents data description emoji format html profile prompt size text title type";

/// Names in an attachment that say something of it, as Slack has them.
const SHOWN: &str = "author authorname authorlink callbackid color link servicename short style titlelink ts";

/// Parts of names of what is said, which may have several lines.
const BODIES: &str = "answer attach block body button caption card code comment component content context data description detail element embed \
     error explanation fallback field footer html instruction intent justification keyboard markdown markup message mrkdwn msg note option param \
     payload plain pretext prompt purpose question quote reason section signature snippet template text thought value variable";

/// Names of such that are too short for parts.
const WHOLE_BODIES: &str = "alt changelog diff lines log logs output stderr stdout taskprogress trace traceback";

/// Ends of names that make them names of a choice or an id, which has one line.
const ONE_LINE: &str =
    "color count encoding format from id ids label language length mode name names path priority sender size subject type url";

/// Names of arguments that become headers of a mail, wherever they stand and whatever lies in them.
const HEADERS: &str = "bcc cc from fromname headers inreplyto replyto sender sendername subject title to";

/// Names of what is said that tools take as JSON that is written out.
const WRITTEN_OUT: &str = "block blocks card cards component components embed embeds";

/// What a text is by the names above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is said to somebody.
    Said,
    /// It stands under an unknown name in what is said: most likely it is shown.
    Shown,
    /// It is a file or an address that is sent.
    Sent,
    /// It names those who get the message.
    Recipient,
    /// It is an address that is called.
    Hook,
    Unknown,
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
    is_written_out: bool,
}

/// Checks the files, the addresses and the headers of a message. Returns what each check is called and what it says.
pub(super) fn checks(call: &RuleCall<'_>) -> [(&'static str, Result<(), Denial>); 3] {
    // That arguments cannot be sorted has been reported with their recipients.
    let Ok(sorted) = call.sorted() else { return [("files", Ok(())), ("private network", Ok(())), ("headers", Ok(()))] };
    let parts = Parts::of(call, &sorted);
    let addresses: Vec<Cow<'_, str>> = parts.addresses.iter().map(|address| Cow::Borrowed(address.as_str())).collect();
    const BREAK: &str =
        "An argument that is no body of the message has a line break, behind which mailers read another header; write one line";
    let headers = if parts.has_break { Err(Denial::new("oap.invalid_tool_arguments", BREAK)) } else { Ok(()) };
    [("files", parts.check_files(call)), ("private network", check_said(&addresses)), ("headers", headers)]
}

/// The parts of a message that are looked at.
#[derive(Debug, Default)]
struct Parts {
    /// Texts that are files, or addresses of files.
    files: Vec<Cow<'static, str>>,
    addresses: Vec<String>,
    has_break: bool,
    /// How many names of arguments have been looked at.
    members: usize,
    /// Whether there are more of them than are looked at.
    is_over: bool,
}

impl Parts {
    fn of(call: &RuleCall<'_>, sorted: &Sorted<'_>) -> Self {
        let mut parts = Self { is_over: sorted.unknown_names.len() > NAMES_MAX, ..Self::default() };
        let outer = Place { kind: Kind::Unknown, lines: Lines::One, is_written_out: true };
        for (key, value) in call.arguments.members() {
            parts.has_break |= has_break(&key);
            parts.walk(call, outer.below(call, &key), value, 0);
        }
        sorted.of(ArgumentRole::Path).for_each(|text| parts.files.push(Cow::Owned(text.to_string())));
        parts.addresses.extend(sorted.of(ArgumentRole::Recipient).chain(sorted.of(ArgumentRole::Channel)).filter_map(|text| address(text)));
        parts
    }

    fn walk(&mut self, call: &RuleCall<'_>, place: Place, value: Value<'_>, nested: usize) {
        value.items().for_each(|item| self.walk(call, place, item, nested));
        for (key, value) in value.members() {
            self.members += 1;
            if self.members > MEMBERS_MAX {
                self.is_over = true;
                return;
            }
            let key = key.as_text().and_then(Text::into_str).unwrap_or_default();
            self.has_break |= place.lines != Lines::Many && has_break(&key);
            if place.kind == Kind::Sent {
                self.guessed(&key);
            }
            self.walk(call, place.below(call, &key), value, nested);
        }
        if let Some(text) = value.as_text().and_then(Text::into_str) {
            self.text(call, place, &text, nested);
        }
    }

    fn text(&mut self, call: &RuleCall<'_>, place: Place, text: &str, nested: usize) {
        self.has_break |= place.lines != Lines::Many && has_break(text);
        if place.is_written_out && text.trim_start().starts_with(['{', '[']) {
            let (mut parser, json) = (Parser::new(), text.trim().as_bytes());
            match parser.parse(json, NESTED_DEPTH_MAX) {
                Ok(value) if nested < NESTED_MAX => return self.walk(call, place, value, nested + 1),
                Ok(_) => self.is_over = true,
                Err(_) => self.is_over |= Parser::new().parse(json, DEPTH_MAX).is_ok(),
            }
        }
        match place.kind {
            Kind::Said => self.media(text),
            Kind::Shown => {
                self.media(text);
                self.guessed(text);
            }
            Kind::Sent => {
                self.files.push(Cow::Owned(text.to_owned()));
                self.addresses.extend(address(text));
            }
            Kind::Recipient => self.addresses.extend(address(text)),
            // What is called may be written without its scheme.
            Kind::Hook => self.addresses.push(address(text).unwrap_or_else(|| format!("http://{}", text.trim()))),
            Kind::Unknown => {
                self.media(text);
                self.guessed(text);
                self.addresses.extend(address(text));
            }
        }
    }

    /// Takes a text under a name that is no attachment's for a file if it begins like a path or is the name of a secret.
    fn guessed(&mut self, text: &str) {
        if begins_path(text) || is_bare_secret(text) {
            self.files.push(Cow::Owned(text.to_owned()));
        }
    }

    /// Takes what stands behind `MEDIA:` in a text: a common host attaches it, as a word or with the rest of its line.
    fn media(&mut self, text: &str) {
        const SIGN: &str = "media:";
        let lower = text.to_ascii_lowercase();
        if lower.matches(SIGN).nth(PLACES_MAX).is_some() {
            self.is_over = true;
            return;
        }
        for (at, sign) in lower.match_indices(SIGN) {
            let is_sign = text.get(at..at + sign.len()).is_some_and(|sign| sign == "MEDIA:");
            let rest = text.get(at + sign.len()..).unwrap_or_default();
            // What is longer is no path.
            let end = rest.char_indices().nth(PATH_BYTES_MAX + 2).map_or(rest.len(), |(end, _)| end);
            let rest = rest.get(..end).unwrap_or_default().lines().next().unwrap_or_default().trim();
            let word = rest.split_whitespace().next().unwrap_or_default().trim_matches(['`', '"', '\'', '<']);
            let word = word.trim_end_matches(['>', ')', ']', ',', ';', '!', '.']);
            self.is_over |= is_sign && word.len() > PATH_BYTES_MAX;
            if word.len() <= PATH_BYTES_MAX && (is_sign || begins_path(word) || is_bare_secret(word)) {
                self.files.push(Cow::Owned(word.to_owned()));
                self.addresses.extend(address(word));
            }
            let line = rest.trim_matches(['`', '"', '\'']);
            if line.len() <= PATH_BYTES_MAX && begins_path(line) {
                self.files.push(Cow::Owned(line.to_owned()));
            }
        }
    }

    fn check_files(&self, call: &RuleCall<'_>) -> Result<(), Denial> {
        if self.is_over || self.files.len() > PLACES_MAX || self.addresses.len() > PLACES_MAX {
            const MESSAGE: &str = "Message has more files, addresses or names of arguments than are looked at, or texts in texts; split it";
            return Err(Denial::new("oap.too_costly", MESSAGE));
        }
        let paths = self.files.iter().filter(|text| text.len() <= PATH_BYTES_MAX);
        budget::check_places(paths.clone(), call.files.limits.weight())?;
        check_braces(paths.map(|text| &**text))?;
        self.files.iter().try_for_each(|text| check_file(call, text))
    }
}

impl Place {
    /// Returns the place of what stands under a name here.
    fn below(self, call: &RuleCall<'_>, key: &str) -> Self {
        let folded = fold(key).unwrap_or_default();
        let name = folded.as_str();
        let role = call.names.role(name).map(|(role, _)| role);
        let is_body = is_one_of(name, WHOLE_BODIES) || has_part(name, BODIES) && !has_end(name, ONE_LINE);
        let is_said = is_body || role == Some(ArgumentRole::Text);
        let kind = match self.kind {
            _ if has_part(name, SENT) && !has_end(name, NOT_SENT) => Kind::Sent,
            Kind::Sent if is_said || has_end(name, NOT_SENT) || is_one_of(name, SHOWN) => Kind::Said,
            // An attachment may be called as it likes.
            Kind::Sent if name == "name" => Kind::Shown,
            Kind::Sent => Kind::Sent,
            _ if name.contains("hook") => Kind::Hook,
            _ if is_said => Kind::Said,
            Kind::Said | Kind::Shown => Kind::Shown,
            _ if matches!(role, Some(ArgumentRole::Recipient | ArgumentRole::Channel)) => Kind::Recipient,
            outer => outer,
        };
        let lines = match self.lines {
            Lines::Header => Lines::Header,
            _ if is_one_of(name, HEADERS) => Lines::Header,
            Lines::Many => Lines::Many,
            // What reads a path refuses breaks itself.
            Lines::One if is_body || kind == Kind::Sent => Lines::Many,
            Lines::One if is_said => Lines::Header,
            Lines::One => Lines::One,
        };
        let is_written_out = !matches!(kind, Kind::Said | Kind::Shown) || is_one_of(name, WRITTEN_OUT) || lines == Lines::Header;
        Self { kind, lines, is_written_out }
    }
}

fn is_one_of(name: &str, names: &str) -> bool {
    names.split_ascii_whitespace().any(|other| other == name)
}

fn has_part(name: &str, parts: &str) -> bool {
    // Names are short, and so are parts: a search of texts would take longer to begin than these take to compare.
    parts.split(' ').any(|part| !part.is_empty() && name.as_bytes().windows(part.len()).any(|window| window == part.as_bytes()))
}

fn has_end(name: &str, ends: &str) -> bool {
    ends.split_ascii_whitespace().any(|end| name.ends_with(end))
}

/// Returns whether a text has a line break of any kind, but for those at its end.
fn has_break(text: &str) -> bool {
    text.trim_end().contains(['\n', '\r', '\0', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'])
}

/// Returns the address that a text is, with two slashes whatever it has.
fn address(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches(['<', '"', '\'', '`']);
    for scheme in ["https:", "http:"] {
        if text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)) {
            let rest = text.get(scheme.len()..).unwrap_or_default().trim_start_matches(['/', '\\']);
            return Some(format!("{scheme}//{rest}"));
        }
    }
    let is_one = text.contains("://") && !text.contains(char::is_whitespace);
    is_one.then(|| text.to_owned()).or_else(|| text.starts_with("//").then(|| format!("http:{text}")))
}
