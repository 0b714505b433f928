//! The rules of `messaging.send`: messages by their recipients.
//!
//! A missing list does not restrict, an empty one allows nothing. A channel is looked up among the channels, or among the recipients if no
//! channels are listed.

use std::collections::HashMap;

use tollgate_json::{Shape, Text, Value};

use super::super::argument_names::are_alike;
use super::super::argument_role::ArgumentRole;
use super::super::fields::{is_expression, item_path, strings, without};
use super::super::look_alike::folded;
use super::super::names::NameSet;
use super::mcp::check_secrets;
use super::{Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_limit, report};

#[path = "attached.rs"]
mod attached;
#[path = "sent.rs"]
mod sent;

const DENIED: &str = "oap.recipient_not_allowed";

/// How many words with a colon are looked at in front of a recipient. Behind each the whole rest is compared.
const PREFIXES_MAX: usize = 16;

/// Signs by which a name goes on in another part, such as the domain of an address: to mailers, to chats, or to either. A `*` stands for none.
const SIGNS: [char; 8] = ['@', '%', '!', ':', '/', '?', '&', '\\'];

/// Those who may get messages.
#[derive(Debug)]
struct Listed {
    is_everybody: bool,
    /// The entries by whether they are several words, and by the signs in them: a pattern such as `team-*` means one word without signs.
    names: HashMap<(bool, String), NameSet>,
}

impl Listed {
    fn new(entries: Vec<String>) -> Self {
        let is_everybody = entries.iter().any(|entry| entry.bytes().all(|byte| byte == b'*'));
        let mut names = HashMap::<_, Vec<String>>::new();
        entries.into_iter().for_each(|entry| names.entry((is_phrase(&entry), signs(&entry))).or_default().push(entry));
        Self { is_everybody, names: names.into_iter().map(|(form, entries)| (form, NameSet::new(entries))).collect() }
    }

    /// Returns whether a recipient is listed: itself, or by the address that stands in `<>` behind a name.
    fn contains(&self, name: &str) -> bool {
        let has = |name: &str, is_phrase| self.names.get(&(is_phrase, signs(name))).is_some_and(|names| names.contains(name));
        let address = address_of(name);
        self.is_everybody || has(name, is_phrase(name)) || (!is_phrase(address) || is_number(address)) && has(address, false)
    }
}

/// Returns the signs in a name, in their order. Those that look like them are the same.
fn signs(name: &str) -> String {
    folded(name).chars().filter(|char| SIGNS.contains(char)).collect()
}

/// Returns the address in `<>` that ends a text which begins with a name; the text itself if it is of another form. A name with an `@` may be an
/// address as well.
fn address_of(name: &str) -> &str {
    let inner = name.trim().strip_suffix('>').and_then(|rest| rest.split_once('<'));
    match inner {
        Some((before, inner)) if !before.contains('@') && !inner.contains(['<', '>']) => inner,
        _ => name,
    }
}

/// Returns whether a text is several words, or has what sets addresses and comments off from names.
fn is_phrase(text: &str) -> bool {
    text.trim().contains(|char: char| char.is_whitespace() || "<>()\"".contains(char))
}

#[derive(Debug)]
pub(super) struct MessagingLimits {
    allowed_recipients: Field<Listed>,
    blocked_recipients: Field<NameSet>,
    allowed_channels: Field<Listed>,
    blocked_channels: Field<NameSet>,
}

impl MessagingLimits {
    pub(super) fn new(section: &Section<'_>) -> Self {
        // What is blocked is so in other spellings too.
        let spelled = |entries: Vec<String>| {
            // A domain alone means everybody there.
            let of_domain = |entry: &str| (entry.contains('.') && !entry.contains(SIGNS)).then(|| format!("*@{entry}"));
            let all = |entry: String| [domain(&entry), plain(&entry)].into_iter().chain(of_domain(&entry)).chain([entry.clone()]).collect();
            NameSet::new(entries.into_iter().flat_map::<Vec<String>, _>(all).collect())
        };
        let blocked = |key| {
            let said = (
                "several names or a regular expression, which is no recipient",
                "one recipient or channel, in which * stands for anything",
            );
            let is_foreign =
                |entry: &str| entry.contains([',', ';', '\\']) || entry.contains(":#") || is_expression(entry) || entry.trim().is_empty();
            let entries = section.strings(key).and_then(|entries| without(entries, is_foreign, &section.path_of(key), said));
            entries.map(spelled)
        };
        let recipients = section.value("allowed_recipients");
        let allowed_recipients = match recipients.map(|value| read_recipients(value, &section.path_of("allowed_recipients"))) {
            None => Field::Absent,
            Some(Ok(names)) => Field::Valid(Listed::new(names)),
            Some(Err(malformed)) => Field::Malformed(malformed),
        };
        Self {
            allowed_recipients,
            blocked_recipients: blocked("blocked_recipients"),
            allowed_channels: section.strings("allowed_channels").map(Listed::new),
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
    fn faults(&self) -> Vec<Option<&Malformed>> {
        let allowed = [&self.allowed_recipients, &self.allowed_channels].map(Field::malformed);
        allowed.into_iter().chain([&self.blocked_recipients, &self.blocked_channels].map(Field::malformed)).collect()
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        report(to, "recipients", self.check_destinations(call));
        report(to, "secrets", check_secrets(call));
        attached::checks(call).into_iter().for_each(|(what, checked)| report(to, what, checked));
    }
}

impl MessagingLimits {
    fn check_destinations(&self, call: &RuleCall<'_>) -> Result<(), Denial> {
        let sorted = call.sorted()?;
        let [recipients, channels] = [ArgumentRole::Recipient, ArgumentRole::Channel].map(|role| sorted.of(role).collect::<Vec<_>>());
        let (recipient_list, channel_list) = (&self.allowed_recipients, self.channel_list());
        let limited = [recipient_list, channel_list].into_iter().any(|field| !matches!(field, Field::Absent))
            || [&self.blocked_recipients, &self.blocked_channels].into_iter().any(|field| !matches!(field, Field::Absent));
        if recipients.is_empty() && channels.is_empty() && limited {
            return Err(Denial::new("oap.missing_required_context", "Message context must include recipient or channel"));
        }
        let not_allowed = |what| Err(Denial::new(DENIED, what));
        // A host may send to an address instead.
        let called = call.arguments.members().filter(|(key, _)| are_alike(key, "url") || are_alike(key, "urls"));
        let called = called.flat_map(|(_, value)| std::iter::once(value).chain(value.items()));
        let called: Vec<_> = called.filter(|_| limited).filter_map(|value| value.as_text()?.into_str()).collect();
        let unknown = sorted.unknown.iter().filter(|_| limited).flat_map(|text| destinations(text)).chain(called.iter().map(|url| &**url));
        // Mailers differ in which of two `@` ends the name, so that a list for one domain would let the other one through; and what has a comma is
        // several names, of which a pattern would see the first.
        let is_open = |text: &str| {
            text.chars().filter(|char| matches!(char, '@' | '\u{ff20}' | '\u{fe6b}')).nth(1).is_some()
                || text.contains([',', ';', '|', '\u{feff}'])
                || text.contains("=?")
                || text.contains(char::is_control)
                || text.split_whitespace().skip(1).any(|word| word.starts_with(['+', '#', '@']))
        };
        if limited && recipients.iter().chain(&channels).any(|name| is_open(name)) {
            return not_allowed("Recipient holds more than one @, or several names");
        }
        // Slack shows a message under this name. Where it goes to is told by the channel.
        let shown = if channels.iter().any(|channel| is_slack(channel)) { call.arguments.text("username")? } else { None };
        let is_shown = |name: &str| shown.as_deref() == Some(name) && recipients.iter().filter(|other| **other == name).count() == 1;
        for name in unknown {
            let is_listed = |field: &Field<Listed>| field.valid().is_some_and(|list| list.contains(name));
            let blocked = [&self.blocked_recipients, &self.blocked_channels];
            let is_blocked = blocked.iter().filter_map(|field| field.valid()).any(|list| has_spelled(list, name));
            if !(is_listed(recipient_list) || is_listed(channel_list)) || is_blocked {
                return not_allowed("An argument of an unknown name may be a recipient or a channel that is not in allowed list");
            }
        }
        for name in recipients.iter().filter(|name| !is_shown(name)) {
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

    fn channel_list(&self) -> &Field<Listed> {
        if matches!(self.allowed_channels, Field::Absent) { &self.allowed_recipients } else { &self.allowed_channels }
    }
}

/// Returns whether a list that holds plain spellings has a name in any spelling, or a part of one that begins with what it is known to: a service,
/// or an address of the web (`slack:C024BE91L`, `https://t.me/name`).
fn has_spelled(list: &NameSet, name: &str) -> bool {
    let plain_name = plain(name);
    let has = |name: &str| list.contains(name) || number_spellings(name).iter().any(|name| list.contains(name));
    let part_of = |part: &str| !part.is_empty() && (has(&plain(part)) || list.contains(&part.replace(' ', "")));
    // Matrix writes the server behind a colon, and behind the id of a chat that of a topic may stand.
    let is_led = plain_name.contains(':') && !name.trim().starts_with(['@', '#', '!']);
    let suffixes = plain_name.match_indices(':').take(PREFIXES_MAX).filter_map(|(at, _)| plain_name.get(at + 1..));
    let prefixes = plain_name.match_indices(':').take(PREFIXES_MAX).filter_map(|(at, _)| plain_name.get(..at));
    // Around an address there may be a name or a comment.
    let lower = folded(name);
    let mut words = lower.split(|char: char| char.is_whitespace() || "()<>[]\"',;|".contains(char)).filter(|word| word.contains('@'));
    list.contains(name)
        || has(&plain_name)
        || is_led && (suffixes.into_iter().chain(prefixes).any(part_of) || plain_name.split([':', '/', '?', '=', '&']).skip(1).any(part_of))
        || words.any(part_of)
        || lower.split_once(" (").is_some_and(|(name, _)| !is_number(&lower) && part_of(name))
}

/// Returns a number with the sign of a country in front and without it, also that of an account of a messenger (`4915112345678@c.us`). There are
/// none of other names.
fn number_spellings(name: &str) -> Vec<String> {
    const ACCOUNTS: [&str; 3] = ["@c.us", "@s.whatsapp.net", "@g.us"];
    let name = ACCOUNTS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let digits = name.trim_start_matches('+');
    let is_digits = digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits { vec![digits.to_owned(), format!("+{digits}")] } else { Vec::new() }
}

/// Returns what an entry such as `@example.org` means: every address of that domain.
fn domain(entry: &str) -> String {
    let is_domain = entry.starts_with('@') && entry.contains('.') && !entry.contains('*');
    if is_domain { format!("*{}", folded(entry)) } else { entry.to_owned() }
}

/// Returns the one spelling of a recipient or channel that mailers, telephones and chats know under several: without case, look-alikes, the name
/// that stands before an address in `<>`, a scheme, the sign of a channel, and what groups the digits of a number.
fn plain(name: &str) -> String {
    let lower = folded(name).replace('\u{3002}', ".");
    let name = lower.rsplit_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or(lower.as_str(), |(inner, _)| inner).trim();
    let scheme = ["mailto:", "tel:", "sms:", "whatsapp:", "sip:", "xmpp:"].iter().find_map(|scheme| name.strip_prefix(scheme));
    // Behind an address there may be more headers.
    let is_address = scheme.is_some() || name.contains('@');
    let name = scheme.unwrap_or(name);
    let name = if is_address { name.split('?').next().unwrap_or_default() } else { name };
    let name = name.trim_matches(['"', '\'', ' ']).trim_start_matches(['#', '@']).trim_end_matches('.').trim();
    if !is_number(name) {
        return name.to_owned();
    }
    let digits: String = name.chars().filter(|char| char.is_ascii_digit() || *char == '+').collect();
    digits.strip_prefix("00").map_or(digits.clone(), |rest| format!("+{rest}"))
}

/// Returns whether a text is a number as people write those of telephones.
fn is_number(text: &str) -> bool {
    let text = text.trim();
    text.bytes().filter(u8::is_ascii_digit).count() >= 5 && text.bytes().all(|byte| b"0123456789+-. ()/".contains(&byte))
}

/// Returns whether a channel is one of Slack's by its form: `#general`, or an id such as `C024BE91L`.
fn is_slack(channel: &str) -> bool {
    channel.starts_with('#') || channel.starts_with(['C', 'G', 'D']) && is_id(channel)
}

/// Returns whether a text has the form of ids of chats.
fn is_id(text: &str) -> bool {
    let is_upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    (8..=12).contains(&text.len()) && text.bytes().all(is_upper) && text.bytes().any(|byte| byte.is_ascii_digit())
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
    !text.contains(char::is_whitespace) && (text.contains('@') || text.starts_with('#') || is_number || is_id(text))
}

#[cfg(test)]
mod tests {
    use tollgate_json::Text;

    use crate::{Call, Outcome, Passport, Report, Terms, ToolInput, examine};

    /// Holds the codes of what denies a call.
    #[derive(Default)]
    struct Codes(Vec<&'static str>);

    impl Report for Codes {
        fn outcome(&mut self, _check: &'static str, outcome: Outcome) {
            if let Outcome::Denied(denial) = outcome {
                self.0.push(denial.code);
            }
        }
    }

    fn codes(limits: &str, input: &str) -> Vec<&'static str> {
        let text = format!(
            r#"{{"spec_version": "oap/1.0", "status": "active", "capabilities": [{{"id": "messaging.send"}}], "limits": {{{limits}}}}}"#
        );
        let passport = Passport::read(text.as_bytes()).unwrap();
        let input = ToolInput::Encoded(Text::plain(input.as_bytes()));
        let call = Call { tool_name: "send_message", input: &input, time_ms: Some(1), earliest_ms: Some(1) };
        let mut found = Codes::default();
        examine(Some(Ok(&passport)), &Terms::default(), &call, &mut found);
        found.0
    }

    fn is_allowed(messaging: &str, input: &str) -> bool {
        codes(&format!(r#""messaging.send": {{{messaging}}}"#), input).is_empty()
    }

    #[test]
    fn secrets_are_not_sent_whatever_the_limits_are() {
        for attached in [
            r#""attachments": "[{\"path\":\"/root/.ssh/id_rsa\"}]""#,
            r#""file": "/root/%2essh/x""#,
            r#""file": "/root/.s*/id_rsa""#,
            r#""file": "a.txt;.env""#,
            r#""anything": "./.env""#,
            r#""message": "MEDIA:id_rsa""#,
            r#""blocks": [{"x": ["MEDIA:.env"]}]"#,
        ] {
            assert!(!is_allowed("", &format!(r#"{{"to": "a", {attached}}}"#)), "{attached}");
        }
        for attached in [
            r#""attachments": ["report.pdf", "/home/u/My Docs/a.md", "https://docs.rs/a"]"#,
            r#""attachments": [{"filename": "a.txt", "content": "aGVsbG8="}]"#,
            r#""topic": "credentials", "message": "id_rsa is the name of a key""#,
        ] {
            assert!(is_allowed("", &format!(r#"{{"to": "a", {attached}}}"#)), "{attached}");
        }
    }

    #[test]
    fn blocked_places_are_not_sent_by_globs() {
        let limits = r#""data.file.read": {"blocked_paths": ["/workspace/a/private"]}"#;
        assert_eq!(codes(limits, r#"{"to": "a", "file": "/workspace/a/priv*"}"#), ["oap.path_blocked"]);
        assert_eq!(codes(limits, r#"{"to": "a", "file": "/workspace/{a/private,b}/x"}"#), ["oap.path_blocked"]);
        assert!(codes(limits, r#"{"to": "a", "file": "/workspace/a/report [1].pdf"}"#).is_empty());
    }

    #[test]
    fn blocked_recipients_are_so_in_every_spelling() {
        let blocked = r#""blocked_recipients": ["x@evil.example", "C024BE91L", "ceo", "+4915112345678"]"#;
        for to in [
            "x@evil.example (Bob)",
            "(Bob) x@evil.example",
            "x@evil.example?cc=y",
            "Bob <x@evil.example>",
            "slack:C024BE91L",
            "slack:channel:c024be91l",
            "telegram:ceo",
            "telegram:@ceo:topic:1",
            "https://t.me/ceo",
            "4915112345678",
            "0049 151 12345678",
            "https://wa.me/4915112345678",
            "4915112345678@s.whatsapp.net",
        ] {
            assert!(!is_allowed(blocked, &format!(r#"{{"to": "{to}"}}"#)), "{to}");
        }
        for to in ["y@evil.example", "telegram:ceos", "C024BE91M", "+491511234567", "@ceo:matrix.org", "Ann (ceo's office)"] {
            assert!(is_allowed(blocked, &format!(r#"{{"to": "{to}"}}"#)), "{to}");
        }
    }

    #[test]
    fn patterns_stand_for_one_word_and_addresses_count_in_their_brackets() {
        let allowed = r#""allowed_recipients": ["team-*", "*@ok.example", "General chat", "+49*"]"#;
        for (to, expected) in [
            ("General chat", true),
            ("general chat", false),
            ("General chat ceo", false),
            ("Ann <ann@ok.example>", true),
            ("team-x <evil@evil.example>", false),
            ("team-x evil@evil.example", false),
            ("team-a ceo", false),
            ("team-a\u{2028}ceo", false),
            ("team-x(evil@evil.example)", false),
            ("+49 151 12345678", true),
        ] {
            assert_eq!(is_allowed(allowed, &format!(r#"{{"to": "{to}"}}"#)), expected, "{to}");
        }
        assert!(is_allowed(r#""allowed_recipients": ["*"]"#, r#"{"to": "General chat"}"#));
    }
}
