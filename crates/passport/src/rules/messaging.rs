//! The rules of `messaging.send`: messages by their recipients.
//!
//! A missing list does not restrict, an empty one allows nothing. A channel is looked up among the channels, or among the recipients if no
//! channels are listed.

use tollgate_json::{Shape, Text, Value};

use super::super::argument_role::ArgumentRole;
use super::super::fields::{item_path, strings, without};
use super::super::look_alike::folded;
use super::super::names::NameSet;
use super::mcp::check_secrets;
use super::{Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_limit, report};

const DENIED: &str = "oap.recipient_not_allowed";

#[derive(Debug)]
pub(super) struct MessagingLimits {
    allowed_recipients: Field<NameSet>,
    blocked_recipients: Field<NameSet>,
    allowed_channels: Field<NameSet>,
    blocked_channels: Field<NameSet>,
}

impl MessagingLimits {
    pub(super) fn new(section: &Section<'_>) -> Self {
        let names = |key| section.strings(key).and_then(NameSet::read);
        // What is blocked is so in other spellings too.
        let spelled =
            |entries: Vec<String>| Ok(NameSet::new(entries.into_iter().flat_map(|entry| [domain(&entry), plain(&entry), entry]).collect()));
        let blocked = |key| {
            let said = (
                "several names or a regular expression, which is no recipient",
                "one recipient or channel, in which * stands for anything",
            );
            let is_foreign =
                |entry: &str| entry.contains([',', ';', '|', '^', '$', '\\']) || entry.starts_with(".*") || entry.trim().is_empty();
            let entries = section.strings(key).and_then(|entries| without(entries, is_foreign, &section.path_of(key), said));
            entries.and_then(spelled)
        };
        let recipients = section.value("allowed_recipients");
        let allowed_recipients = match recipients.map(|value| read_recipients(value, &section.path_of("allowed_recipients"))) {
            None => Field::Absent,
            Some(Ok(names)) => Field::Valid(NameSet::new(names)),
            Some(Err(malformed)) => Field::Malformed(malformed),
        };
        Self {
            allowed_recipients,
            blocked_recipients: blocked("blocked_recipients"),
            allowed_channels: names("allowed_channels"),
            blocked_channels: blocked("blocked_channels"),
        }
    }
}

/// Reads recipients, which are strings or objects with an id. Limits inside such an object are not enforced here.
fn read_recipients(value: Value<'_>, path: &str) -> Result<Vec<String>, Malformed> {
    if value.shape() != Shape::Array || !value.items().any(|item| item.is_object()) {
        return strings(value, path);
    }
    let id = |(index, item): (usize, Value<'_>)| {
        let text = if item.is_object() { item.get("id") } else { Some(item) };
        let id = text.and_then(|text| text.as_text()).and_then(Text::into_str).filter(|id| !id.is_empty());
        id.map(std::borrow::Cow::into_owned)
            .ok_or_else(|| Malformed::new(item_path(path, index), item.shape(), "a string, or an object with an id"))
    };
    value.items().enumerate().map(id).collect()
}

impl Rules for MessagingLimits {
    fn faults(&self) -> Vec<&Malformed> {
        [
            self.allowed_recipients.malformed(),
            self.blocked_recipients.malformed(),
            self.allowed_channels.malformed(),
            self.blocked_channels.malformed(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        report(to, "recipients", self.check_destinations(call));
        report(to, "secrets", check_secrets(call));
        report(to, "files", check_attached(call));
        report(to, "headers", check_headers(call));
    }
}

/// Names of arguments of which the texts may be files that are sent.
const ATTACHED: [&str; 16] = [
    "attachment",
    "attachments",
    "audio",
    "document",
    "documents",
    "file",
    "file_path",
    "file_paths",
    "files",
    "image",
    "image_path",
    "images",
    "media",
    "media_path",
    "path",
    "video",
];

/// Names of arguments that become headers of a mail.
const HEADERS: [&str; 6] = ["subject", "title", "from", "sender", "reply_to", "in_reply_to"];

/// Checks that what is sent with a message may be read.
fn check_attached(call: &RuleCall<'_>) -> Result<(), Denial> {
    let mut open: Vec<Value<'_>> = call.arguments.named(&ATTACHED).into_iter().map(|(_, value)| value).collect();
    while let Some(value) = open.pop() {
        open.extend(value.items());
        let Some(text) = value.as_text().and_then(Text::into_str) else { continue };
        let text = text.trim();
        let path = text.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://")).and_then(|_| text.get(7..)).unwrap_or(text);
        if !path.contains("://") && !path.contains(char::is_whitespace) && path.contains(['/', '.']) {
            call.files.check_path(path, false, false)?;
        }
    }
    Ok(())
}

/// Refuses a line break in what becomes a header: behind it mailers read another one.
fn check_headers(call: &RuleCall<'_>) -> Result<(), Denial> {
    let has_break = |(at, value): (usize, Value<'_>)| {
        let text = value.as_text().and_then(Text::into_str)?;
        text.trim_end().contains(['\n', '\r', '\0']).then(|| HEADERS.get(at).copied().unwrap_or_default())
    };
    match call.arguments.named(&HEADERS).into_iter().find_map(has_break) {
        Some(name) => {
            let message = format!("Argument '{name}' has a line break, behind which mailers read another header; write one line");
            Err(Denial::new("oap.invalid_tool_arguments", message))
        }
        None => Ok(()),
    }
}

impl MessagingLimits {
    fn check_destinations(&self, call: &RuleCall<'_>) -> Result<(), Denial> {
        let sorted = call.sorted()?;
        let [recipients, channels] = [ArgumentRole::Recipient, ArgumentRole::Channel].map(|role| sorted.of(role).collect::<Vec<_>>());
        let (recipient_list, channel_list) = (&self.allowed_recipients, self.channel_list());
        let is_limited = |field: &Field<NameSet>| !matches!(field, Field::Absent);
        let limited = [recipient_list, channel_list, &self.blocked_recipients, &self.blocked_channels].into_iter().any(is_limited);
        if recipients.is_empty() && channels.is_empty() && limited {
            return Err(Denial::new("oap.missing_required_context", "Message context must include recipient or channel"));
        }
        let not_allowed = |what| Err(Denial::new(DENIED, what));
        let unknown: Vec<_> = sorted.unknown.iter().filter(|_| limited).flat_map(|text| destinations(text)).collect();
        // Mailers differ in which of two `@` ends the name, so that a list for one domain would let the other one through; and what has a comma is
        // several names, of which a pattern would see the first.
        let is_open = |text: &str| {
            text.chars().filter(|char| matches!(char, '@' | '\u{ff20}' | '\u{fe6b}')).nth(1).is_some()
                || text.contains([',', ';', '|'])
                || text.contains(char::is_control)
                || text.split_whitespace().skip(1).any(|word| word.starts_with(['+', '#', '@']))
        };
        if limited && recipients.iter().chain(&channels).any(|name| is_open(name)) {
            return not_allowed("Recipient holds more than one @, or several names");
        }
        for name in unknown {
            let is_listed = |field: &Field<NameSet>| matches!(field, Field::Valid(list) if list.contains(name));
            let blocked = [&self.blocked_recipients, &self.blocked_channels];
            let is_blocked = blocked.iter().any(|field| matches!(field, Field::Valid(list) if has_spelled(list, name)));
            if !(is_listed(recipient_list) || is_listed(channel_list)) || is_blocked {
                return not_allowed("An argument of an unknown name may be a recipient or a channel that is not in allowed list");
            }
        }
        for name in &recipients {
            check_limit(recipient_list, |list| if list.contains(name) { Ok(()) } else { not_allowed("Recipient is not in allowed list") })?;
        }
        for name in &channels {
            check_limit(channel_list, |list| if list.contains(name) { Ok(()) } else { not_allowed("Channel is not in allowed list") })?;
        }
        for name in recipients.iter().chain(&channels) {
            for list in [&self.blocked_recipients, &self.blocked_channels] {
                check_limit(list, |list| if has_spelled(list, name) { not_allowed("Recipient or channel is blocked") } else { Ok(()) })?;
            }
        }
        Ok(())
    }

    fn channel_list(&self) -> &Field<NameSet> {
        if matches!(self.allowed_channels, Field::Absent) { &self.allowed_recipients } else { &self.allowed_channels }
    }
}

/// Returns whether a list that holds plain spellings has a name in any spelling.
fn has_spelled(list: &NameSet, name: &str) -> bool {
    list.contains(name) || list.contains(&plain(name))
}

/// Returns what an entry such as `@example.org` means: every address of that domain.
fn domain(entry: &str) -> String {
    let is_domain = entry.starts_with('@') && entry.contains('.') && !entry.contains('*');
    if is_domain { format!("*{}", folded(entry)) } else { entry.to_owned() }
}

/// Returns the one spelling of a recipient or channel that mailers, telephones and chats know under several: without case, look-alikes, the name
/// that stands before an address in `<>`, a scheme, the sign of a channel, and what groups the digits of a number.
fn plain(name: &str) -> String {
    let lower = folded(name);
    let name = lower.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(lower.as_str(), |(inner, _)| inner).trim();
    let scheme = ["mailto:", "tel:", "sms:", "whatsapp:", "sip:", "xmpp:"].iter().find_map(|scheme| name.strip_prefix(scheme));
    let name =
        scheme.map_or(name, |rest| rest.split('?').next().unwrap_or_default()).trim_start_matches(['#', '@']).trim_end_matches('.').trim();
    let is_number = name.bytes().filter(u8::is_ascii_digit).count() >= 5 && name.bytes().all(|byte| b"0123456789+-. ()/".contains(&byte));
    if !is_number {
        return name.to_owned();
    }
    let digits: String = name.chars().filter(|char| char.is_ascii_digit() || *char == '+').collect();
    digits.strip_prefix("00").map_or(digits.clone(), |rest| format!("+{rest}"))
}

/// Returns those to send to whom a text under a name that no table has may name: the text itself, or addresses in it.
fn destinations(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace().map(|word| word.trim_matches(|char: char| !char.is_alphanumeric()));
    let addresses = words.filter(|word| text.trim().contains(char::is_whitespace) && word.contains('@'));
    std::iter::once(text.trim()).filter(|text| is_destination(text)).chain(addresses)
}

/// Returns whether a text under a name that no table has looks like somebody to send to: an address, a handle, a channel, a number of a phone or
/// chat, or the id of one (`C024BE91L`).
fn is_destination(text: &str) -> bool {
    let text = text.trim();
    let digits = text.trim_start_matches(['+', '-']);
    let is_number = digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let is_id = (8..=12).contains(&text.len()) && text.bytes().all(is_upper) && text.bytes().any(|byte| byte.is_ascii_digit());
    !text.contains(char::is_whitespace) && (text.contains('@') || text.starts_with('#') || is_number || is_id)
}
