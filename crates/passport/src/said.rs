//! Addresses without a scheme in texts of which no tool is known to make anything: what the name of an argument says of them.

use tollgate_json::{DEPTH_MAX, Parser, Shape, Text, Value};

use super::argument_names::{ArgumentNames, fold, is_host, is_place};
use super::argument_role::ArgumentRole;
use super::destination::host_address;

/// What a name says of the addresses that stand under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// It is the name of a host.
    Host,
    /// It is the name of a path or a URL.
    Place,
    /// It is in no table.
    Unknown,
}

impl Said {
    /// Returns what a folded name says.
    pub(super) fn under(name: Option<&str>) -> Self {
        match name {
            Some(name) if is_host(name) => Self::Host,
            Some(name) if is_place(name) => Self::Place,
            _ => Self::Unknown,
        }
    }

    /// Returns the addresses that a value holds. Under the name of a host an address may have any of its forms, such as `127.1`, `::1` and
    /// `2130706433`. Several may stand in one text: `a:1,b:2`, `host=a port=1`.
    pub(super) fn addresses(self, value: Value<'_>) -> Vec<String> {
        let text = match value.shape() {
            Shape::Number if self == Self::Host => Some(String::from_utf8_lossy(value.source())),
            _ => value.as_text().and_then(Text::into_str),
        };
        let text = text.unwrap_or_default();
        text.split([',', ';']).flat_map(hosts).take(HOSTS_MAX).filter_map(|host| self.address(host)).collect()
    }

    fn address(self, text: &str) -> Option<String> {
        match self {
            Self::Host => address(text).or_else(|| host_address(text)),
            Self::Place => address(text),
            // A number is an id rather.
            Self::Unknown => address(text).filter(|_| text == "localhost" || !text.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        }
    }
}

/// The most hosts that are looked for in one text.
const HOSTS_MAX: usize = 64;

/// Returns the words of a text that may be hosts: the text itself if it has no blanks, else the values of what is called a host in it.
fn hosts(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim();
    let is_one = !text.contains(char::is_whitespace);
    let values =
        text.split_whitespace().filter_map(|word| word.split_once('=')).filter(|(name, _)| fold(name).is_some_and(|name| is_host(&name)));
    is_one.then_some(text).into_iter().chain(values.map(|(_, value)| value))
}

/// Returns whether edits that are written out in a text, or in a list of texts, may name files of their own. A text that is no JSON cannot be told.
pub(super) fn names_places(value: Value<'_>, names: &ArgumentNames<'_>) -> bool {
    if value.shape() == Shape::Array {
        return value.items().any(|item| item.shape() == Shape::String && names_places(item, names));
    }
    let Some(text) = value.as_text().and_then(Text::into_str) else { return false };
    let mut parser = Parser::new();
    let Ok(root) = parser.parse(text.as_bytes(), DEPTH_MAX) else { return !text.trim().is_empty() };
    let is_place = |key: &str| {
        let role = fold(key).and_then(|name| names.role(&name)).map(|(role, _)| role);
        role == Some(ArgumentRole::Path) || role.is_none() && (key == "name" || key.contains(['/', '\\', '.']))
    };
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        open.extend(value.items());
        for (key, value) in value.members() {
            if key.as_text().and_then(Text::into_str).is_none_or(|key| is_place(&key)) {
                return true;
            }
            open.push(value);
        }
    }
    false
}

/// Returns the address that a route is, if it begins with the address of a host or the usual name of a private one.
pub(super) fn address(route: &str) -> Option<String> {
    let rest = route.trim().trim_start_matches('/');
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let name = if host.starts_with('[') { host.as_str() } else { host.split(':').next().unwrap_or_default() };
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit() || b"x.".contains(&byte)) && name.contains('.');
    let is_local = name == "localhost" || [".localhost", ".internal", ".local"].iter().any(|end| name.ends_with(end));
    let is_address = is_number && name.split('.').count() == 4 || name.starts_with('[') || is_one_number(route.trim(), name);
    (is_address || is_local).then(|| format!("http://{rest}"))
}

/// Returns whether the host of a route is an address as one number, such as 2130706433. Behind a slash it is an id or a time, and a shorter
/// number is a year.
fn is_one_number(route: &str, name: &str) -> bool {
    let digits = name.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let is_number = digits.is_some() || name.bytes().all(|byte| byte.is_ascii_digit());
    is_number && name.len() >= 8 && (!route.starts_with('/') || route.starts_with("//"))
}
