//! Addresses in texts of which no tool is known to make anything: what the name of an argument says of them.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use tollgate_json::{Shape, Text, Value};

use super::address::{is_local_name, leads_near, read_v4};
use super::argument_names::{ArgumentNames, fold, is_host, is_place};
use super::destination::{Host, host_address};
use super::look_alike::folded;

/// What a name says of the addresses and paths that stand under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// It is the name of a host.
    Host,
    /// It is the name of a file or a folder.
    File,
    /// It is the name of what may be a path or a URL.
    Place,
    /// It is the name of a URL.
    Url,
    /// It is the name of an id, which may begin with a slash.
    Id,
    /// It is the name of a version or of a range of addresses, which look like the address of a host.
    Number,
    /// It is the name of what is said to a server, of which several words are a text.
    Prose,
    /// It is the name of a query or of a program.
    Program,
    /// It is in no table.
    Unknown,
}

/// TABLE: names of hosts beside those of tools for the web, without case and punctuation.
const HOSTS: &str = "addr addrs addresses bootstrapserver bootstrapservers broker brokers datasource domain domains hostaddr hosts ipaddr \
     ipaddrs ipaddresses ips nameserver nameservers networkaddress servers upstream upstreams";

/// TABLE: last words of names of hosts.
const LAST_OF_HOST: &str = "broker host hostname ip server";

/// TABLE: ends of names of files and folders, without case and punctuation, the sign of several, and `name` behind them.
const END_OF_FILE: &str = "attachment dir directory directorie file folder path";

/// TABLE: last words of names of URLs.
const LAST_OF_URL: &str = "href link proxy uri url webhook";

/// TABLE: last words of names of what may be a path or a URL.
const LAST_OF_PLACE: &str = "destination dest dst from source src to";

/// TABLE: last words of names of what is said, in the singular or the plural.
const LAST_OF_PROSE: &str = "answer body caption comment content description detail explanation feedback instruction markdown message note \
     observation prompt query queries question reason remark reply summary text";

/// TABLE: parts of names that speak of a place or of what runs, so that the last word does not say all.
const NO_PROSE: [&str; 12] = ["cmd", "code", "command", "directory", "file", "folder", "host", "link", "path", "script", "shell", "url"];

/// TABLE: schemes that some readers take without slashes behind them.
const BARE_SCHEMES: [&str; 12] = ["dns", "ftp", "grpc", "ldap", "np", "redis", "ssh", "ssl", "tcp", "tls", "udp", "ws"];

/// Characters between the hosts of a list, and around them.
const BETWEEN: &str = ",;|'\"`()<>{}";

impl NameKind {
    /// Returns what a name says.
    pub(super) fn under(key: &str) -> Self {
        let Some(name) = fold(key) else { return Self::Unknown };
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let is_of_file = has(&["path", "file", "dir", "folder"]);
        let last = last_word(key).to_ascii_lowercase();
        let is_last = |words: &str| is_word_of(words, &last);
        let stem = name.trim_end_matches('s');
        let stem = stem.strip_suffix("name").unwrap_or(stem);
        let ends = |words: &str| words.split_ascii_whitespace().any(|word| stem.ends_with(word));
        match () {
            () if is_host_name(&name) || is_last(LAST_OF_HOST) => Self::Host,
            () if is_place(&name) && is_of_file || ends(END_OF_FILE) && !ends("profile xpath jsonpath") => Self::File,
            () if is_place(&name) && has(&["url", "uri", "href"]) || has(&["website", "webpage", "homepage"]) || is_last(LAST_OF_URL) => {
                Self::Url
            }
            () if is_place(&name) || is_last(LAST_OF_PLACE) => Self::Place,
            () if is_id(key) && !is_of_file => Self::Id,
            () if has(&["version", "cidr", "subnet", "netmask"]) => Self::Number,
            () => Self::Unknown,
        }
    }

    /// Returns what a name says of an argument of a tool. What is said to a tool of an MCP server is a text.
    pub(super) fn of(key: &str, names: &ArgumentNames<'_>) -> Self {
        let is_prose = || {
            let name = fold(key).unwrap_or_default();
            is_word_of(LAST_OF_PROSE, &last_word(key).to_ascii_lowercase()) && !NO_PROSE.iter().any(|part| name.contains(part))
        };
        match Self::under(key) {
            Self::Unknown if names.is_of_server() && is_prose() => Self::Prose,
            kind => kind,
        }
    }

    /// Returns whether an address may stand under the name: the name is in a table, and is of no id and no version.
    pub(super) fn may_be_address(self) -> bool {
        !matches!(self, Self::Unknown | Self::Id | Self::Number)
    }

    /// Returns whether what stands under the name is a path or a URL.
    pub(super) fn is_place(self) -> bool {
        matches!(self, Self::File | Self::Place | Self::Url)
    }

    /// Returns whether what stands under the name is a text or a program, and no place itself.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Prose | Self::Program)
    }

    /// Returns whether what stands under the name may be a URL.
    pub(super) fn may_be_url(self) -> bool {
        matches!(self, Self::Place | Self::Url)
    }

    /// Returns the addresses of the web that a text under the name of a URL holds without their scheme: public names, and other names with a dot
    /// that have something behind them.
    pub(super) fn web_addresses(self, text: &str) -> impl Iterator<Item = String> {
        let words = text.split(|char: char| char.is_whitespace() || ",;|".contains(char)).filter(move |_| self == Self::Url);
        words.filter(|word| begins_with_host(&plain(word))).map(|word| format!("http://{word}"))
    }

    /// Returns the addresses that a value holds.
    pub(super) fn addresses(self, value: Value<'_>) -> Vec<String> {
        let text = match value.shape() {
            Shape::Number if self == Self::Host => Some(String::from_utf8_lossy(value.source())),
            _ => value.as_text().and_then(Text::into_str),
        };
        self.addresses_in(&text.unwrap_or_default())
    }

    /// Returns the addresses that a text holds. Under the name of a host an address may have any of its forms, such as `127.1`, `::1` and
    /// `2130706433`. Several may stand in one text: `a:1,b:2`, `host=a port=1`.
    pub(super) fn addresses_in(self, text: &str) -> Vec<String> {
        spellings(text.trim()).flat_map(|text| self.addresses_of(&text)).collect()
    }

    fn addresses_of(self, text: &str) -> Vec<String> {
        let has_blank = text.contains(char::is_whitespace);
        if text.contains("://") && !has_blank {
            return std::iter::once(text).chain(text.split([',', ';', '|']).skip(1)).flat_map(|piece| self.of_piece(piece)).collect();
        }
        if !has_blank {
            return self.of_words(text);
        }
        // A place of several words is a text rather than a list, unless one of them can be nothing else than an address.
        let listed = match self {
            Self::Host => Self::Unknown.of_words(text),
            // A word of a command line may be the address of a page or of a port.
            Self::Unknown => {
                let is_led = |word: &&str| word.split_once(['/', ':']).is_some_and(|(host, _)| is_quad(host) || leads_near(host));
                text.split_whitespace().filter(is_led).flat_map(|word| self.of_words(word)).collect()
            }
            Self::Place | Self::Url | Self::File if !text.contains('\n') => Self::Id.of_words(text),
            _ => Vec::new(),
        };
        let parts = text.split([';', '|', '\n']).chain(text.split_whitespace());
        let values =
            parts.filter_map(|part| part.split_once(['=', ':'])).filter(|(name, _)| fold(name).is_some_and(|name| is_host_name(&name)));
        listed.into_iter().chain(values.flat_map(|(_, value)| Self::Host.of_words(first_word(value)))).collect()
    }

    /// Returns the addresses among the words of a list.
    fn of_words(self, text: &str) -> Vec<String> {
        let words = text.split(|char: char| char.is_whitespace() || BETWEEN.contains(char)).filter(|word| !word.is_empty());
        words.flat_map(|word| self.of_piece(word)).collect()
    }

    /// Returns the address that a word is, or holds behind a name and a sign of equality.
    fn of_piece(self, word: &str) -> Option<String> {
        if word.contains("://") {
            return Some(word.to_owned());
        }
        match word.rsplit_once('=') {
            Some((name, value)) if fold(name).is_some_and(|name| is_host_name(&name)) => Self::Host.address(value),
            Some((_, value)) => Self::Unknown.address(value),
            None => self.address(word),
        }
    }

    /// Returns the address of the host with which a text begins, whatever follows it: readers differ in what they take for its end.
    fn address(self, text: &str) -> Option<String> {
        let rest = text.trim_start_matches(['/', '\\']);
        if is_mailbox(rest) {
            return None;
        }
        let rest = match rest.split_once(':') {
            // Readers of the web take any number of slashes.
            Some((scheme, behind)) if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") => {
                return Some(format!("http://{}", behind.trim_start_matches(['/', '\\'])));
            }
            Some((scheme, behind)) if BARE_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) => {
                behind.trim_start_matches(['/', '\\'])
            }
            _ => rest,
        };
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let has_path = authority.len() < rest.len();
        // A list may have lost one of its brackets.
        let named = authority.rsplit('@').next().unwrap_or_default();
        let named = if named.ends_with(']') && named.contains("]:") || !named.starts_with('[') || is_bracketed(named) {
            named
        } else {
            named.trim_matches(['[', ']'])
        };
        let (host, behind) = cut(named);
        if let Some(address) = ipv6(host) {
            let is_sure =
                named.starts_with('[') || self == Self::Host || host.contains("::") && host.contains(|char: char| char.is_ascii_digit());
            return is_sure.then(|| format!("http://[{address}]"));
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let has_port = behind.starts_with(':');
        let is_numbered = behind.strip_prefix(':').is_some_and(|port| port.starts_with(|char: char| char.is_ascii_digit()));
        let is_local =
            host == "localhost" || leads_near(&host) || [".localhost", ".internal", ".local"].iter().any(|end| host.ends_with(end));
        let is_address = match self {
            _ if is_local && is_numbered => true,
            // It is rather the address of a mailbox.
            Self::Place if is_local && named.len() < authority.len() && !has_path && behind.is_empty() => false,
            Self::Host | Self::Place | Self::Url if is_local => true,
            Self::Unknown | Self::Prose | Self::Program if is_local => host == "localhost" || has_path,
            Self::File if is_local => host == "localhost",
            Self::Host if host_address(&host).is_some() => true,
            Self::Number => is_quad(&host) && has_port,
            // Behind a slash it is an id or a time.
            Self::Host => host == "0" || is_one_number(&host) || is_quad(&host),
            Self::Place | Self::Url if has_port || has_path => {
                is_quad(&host) || is_one_number(&host) && (!text.starts_with('/') || text.starts_with("//"))
            }
            _ => is_quad(&host),
        };
        is_address.then(|| format!("http://{host}"))
    }
}

/// Returns whether a text leads to a host outside of the public network: as an address of the web, or by any other scheme. What cannot be read
/// leads to the host that it begins with.
pub(super) fn leads_to_private(text: &str) -> bool {
    spellings(text.trim()).any(|text| is_private_address(&text))
}

fn is_private_address(text: &str) -> bool {
    let is_private = |url: &str| Host::of_url(url).is_ok_and(|host| host.is_private());
    if is_private(text) {
        return true;
    }
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_web = ["http", "https", "ws", "wss"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let parts = authority.split([',', '(', ')']).map(|part| part.rsplit('@').next().unwrap_or_default());
    // A name that nobody near by has to answer is one only to what fetches from the web.
    let names_private = |part: &str| is_web && is_private(&format!("http://{}", cut(part).0.trim_end_matches('.')));
    parts.into_iter().any(|part| names_private(part) || NameKind::Host.address(part).is_some_and(|url| is_private(&url)))
}

/// Returns whether a word begins with the name of a host, and not as `git@HOST:PATH` or an address of a mailbox does.
fn begins_with_host(word: &str) -> bool {
    let authority = word.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, behind) = cut(authority.rsplit('@').next().unwrap_or_default());
    let is_port = |port: &str| port.starts_with(|char: char| char.is_ascii_digit());
    let is_remote = authority.contains('@') && behind.strip_prefix(':').is_some_and(|path| !is_port(path));
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is_host = !is_local_name(&host) || host.contains('.') && !host.starts_with('.') && host.len() < word.len();
    is_host && !is_remote && !is_mailbox(word)
}

/// Returns whether a text leads to a mailbox, which somebody else opens.
fn is_mailbox(text: &str) -> bool {
    text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("mailto:"))
}

/// Returns a text as readers of hosts take it: as it stands, and without percent signs in front of two digits.
fn spellings(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let decoded = text.contains('%').then(|| bash_commands::decoded(text)).filter(|decoded| decoded != text);
    std::iter::once(plain(text)).chain(decoded.map(|decoded| Cow::Owned(plain(&decoded).into_owned())))
}

/// Returns a text in ASCII, as far as what stands for it is the same to readers of hosts.
fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { text.into() } else { folded(text).replace(['\u{3002}', '\u{ff0e}', '\u{ff61}'], ".").into() }
}

/// Returns the first word of a value, which may be quoted.
fn first_word(value: &str) -> &str {
    value.trim_start().split(char::is_whitespace).next().unwrap_or_default()
}

/// Returns whether a folded name is that of a host.
fn is_host_name(name: &str) -> bool {
    is_host(name) || HOSTS.split_ascii_whitespace().any(|host| host == name)
}

/// Returns whether a name is that of an id: its last word says so.
fn is_id(key: &str) -> bool {
    let rest = ["ID", "Id", "id", "IDs", "Ids", "ids"].iter().find_map(|end| key.strip_suffix(end).map(|rest| (rest, *end)));
    rest.is_some_and(|(rest, end)| rest.is_empty() || rest.ends_with(['_', '-', '.']) || end.starts_with('I'))
}

/// Returns whether a word stands in a table, in the singular or the plural.
fn is_word_of(table: &str, word: &str) -> bool {
    table.split_ascii_whitespace().any(|known| word.strip_prefix(known).is_some_and(|rest| matches!(rest, "" | "s")))
}

/// Returns the last word of a name, as it is spelled: behind `_`, `-` and other punctuation, or from a capital on.
pub(super) fn last_word(name: &str) -> &str {
    let name = name.trim_end_matches(|char: char| !char.is_ascii_alphabetic());
    let begins = |left: &u8, right: &u8| !left.is_ascii_alphabetic() || left.is_ascii_lowercase() && right.is_ascii_uppercase();
    let begins = |pair: &[u8]| matches!(pair, [left, right] if begins(left, right));
    let start = name.as_bytes().windows(2).rposition(begins).map_or(0, |at| at + 1);
    name.get(start..).unwrap_or_default()
}

/// Returns the words of a name in lower case, in their order, each as [`last_word`] finds it.
pub(super) fn words_of(name: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), name);
    while let Some(word) = Some(last_word(rest)).filter(|word| !word.is_empty()) {
        words.push(word.to_ascii_lowercase());
        rest = rest.rsplit_once(word).map_or("", |(front, _)| front);
    }
    words.reverse();
    words
}

/// Splits an authority behind its host.
fn cut(authority: &str) -> (&str, &str) {
    if let Some((host, behind)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, behind);
    }
    if ipv6(authority).is_some() {
        return (authority, "");
    }
    authority.split_at(authority.find([',', ':', ';', '%', ')', ']']).unwrap_or(authority.len()))
}

/// Returns whether an authority begins with an IPv6 address in brackets.
fn is_bracketed(authority: &str) -> bool {
    authority.starts_with('[') && ipv6(cut(authority).0).is_some()
}

/// Returns the IPv6 address that a host is, without its zone.
fn ipv6(host: &str) -> Option<Ipv6Addr> {
    host.split('%').next().filter(|host| host.contains(':'))?.parse().ok()
}

/// Returns whether a host is an address of four parts.
fn is_quad(host: &str) -> bool {
    host.split('.').count() == 4 && matches!(read_v4(host), Ok(Some(_)))
}

/// Returns whether a host is an address as one number, such as 2130706433. A shorter number is a port or a year.
fn is_one_number(host: &str) -> bool {
    let digits = host.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (digits.is_some() || host.bytes().all(|byte| byte.is_ascii_digit())) && host.len() >= 8 && matches!(read_v4(host), Ok(Some(_)))
}

/// Returns whether a text is a list or an object that is written out, of which some tools read what stands in it.
pub(super) fn is_written_out(text: &str) -> bool {
    let text = text.trim_matches(|char: char| char.is_whitespace() || char == '\u{feff}');
    text.starts_with(['[', '{']) && (text.ends_with([']', '}']) || text.contains(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::{last_word, words_of};

    #[test]
    fn last_words_stand_behind_punctuation_or_begin_with_a_capital() {
        for (name, word) in
            [("html_body", "body"), ("htmlBody", "Body"), ("a-b.text2", "text"), ("HTML", "HTML"), ("\u{e9}x", "x"), ("_", "")]
        {
            assert_eq!(last_word(name), word, "{name}");
        }
    }
    #[test]
    fn names_are_split_into_words() {
        for (name, expected) in [
            ("readFile", "read file"),
            ("find-replace", "find replace"),
            ("get_or_createFile2", "get or create file"),
            ("s3cp", "s cp"),
            ("_", ""),
        ] {
            assert_eq!(words_of(name).join(" "), expected, "{name}");
        }
    }
}
