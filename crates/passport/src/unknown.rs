//! Members that the standard does not know. Whoever writes one may mean that it restricts, so it is passed over only where it is certain to
//! describe: by its name, or as a text or a number under a name that speaks of no restriction.

use tollgate_json::time::parse_timestamp;
use tollgate_json::{Shape, Text, Value};

use super::fields::{Malformed, member_path};

/// Names that describe, whatever they hold.
const DESCRIBES: [&str; 22] = [
    "$schema",
    "@context",
    "annotations",
    "category",
    "categories",
    "comment",
    "comments",
    "contact",
    "contacts",
    "description",
    "display_name",
    "issued_at",
    "issuer",
    "labels",
    "links",
    "name",
    "note",
    "notes",
    "proof",
    "signature",
    "tags",
    "title",
];

/// Words that speak of a restriction.
#[rustfmt::skip]
const WORDS: [&str; 17] = [
    "ban", "banned", "end", "ends", "env", "exp", "from", "max", "min", "mode", "nbf", "non", "not", "off", "only", "rate", "role",
];

/// Beginnings of words that speak of a restriction.
#[rustfmt::skip]
const STEMS: [&str; 47] = [
    "access", "activ", "after", "allow", "approv", "audience", "before", "begin", "block", "budget", "capab", "command", "condition",
    "constrain", "denie", "deny", "disab", "domain", "draft", "effective", "enab", "environment", "except", "exclu", "expir", "forbid",
    "freez", "frozen", "grant", "inactiv", "limit", "lock", "path", "permi", "polic", "privileg", "prohibit", "quota", "requir",
    "restrict", "revo", "scope", "start", "stat", "suspen", "until", "valid",
];

/// Returns what is wrong with a member that is not known: it may be meant to restrict.
fn check_member(parent: &str, name: &str, value: Value<'_>) -> Result<(), Malformed> {
    if value.is_null() || DESCRIBES.contains(&name) || !may_restrict(name, value) {
        return Ok(());
    }
    let expected = "no such member: write a restriction as a known limit, and what only describes below metadata";
    Err(Malformed::new(member_path(parent, name), "not known and may be meant to restrict", expected))
}

/// Returns what is wrong with the members of an object that are not known. `parent` is the path of the object.
pub(super) fn members<'m>(
    object: Value<'m>,
    parent: &'m str,
    is_known: impl Fn(&str) -> bool + 'm,
) -> impl Iterator<Item = Malformed> + 'm {
    let named = object.members().filter_map(|(name, value)| Some((name.as_text()?.into_str()?, value)));
    named.filter(move |(name, _)| !is_known(name)).filter_map(move |(name, value)| check_member(parent, &name, value).err())
}

fn may_restrict(name: &str, value: Value<'_>) -> bool {
    match value.shape() {
        Shape::Number => speaks_of_a_restriction(name),
        Shape::String => {
            let text = value.as_text().and_then(Text::into_str).unwrap_or_default();
            let is_word = !text.trim().contains(char::is_whitespace);
            let is_moment = parse_timestamp(&text).is_some();
            speaks_of_a_restriction(name) || is_moment || is_word && speaks_of_a_restriction(&text)
        }
        _ => true,
    }
}

/// Returns whether a name has a word that speaks of a restriction. A name with letters beyond ASCII may look like one.
fn speaks_of_a_restriction(name: &str) -> bool {
    let mut words = vec![String::new()];
    let mut is_lower = false;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() || is_lower && letter.is_ascii_uppercase() {
            words.push(String::new());
        }
        is_lower = letter.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    let restricts = |word: &String| WORDS.contains(&word.as_str()) || STEMS.iter().any(|stem| word.starts_with(stem));
    !name.is_ascii() || words.iter().any(restricts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_json::Parser;

    #[test]
    fn what_describes_is_passed_over_and_what_may_restrict_is_not() {
        let fails = |member: &str| {
            let (document, mut parser) = (format!("{{{member}}}"), Parser::new());
            let root = parser.parse(document.as_bytes(), 9).unwrap();
            root.members().any(|(name, value)| check_member("", &name.as_text().unwrap().into_str().unwrap(), value).is_err())
        };
        for describes in
            [r#""foo": 1"#, r#""foo": null"#, r#""revokedAt": null"#, r#""name": "blocked""#, r#""vendor": "acme""#, r#""generation": 7"#]
        {
            assert!(!fails(describes), "{describes}");
        }
        for restricts in [
            r#""foo": true"#,
            r#""active": false"#,
            r#""foo": ["ls"]"#,
            r#""foo": {}"#,
            r#""foo": "2027-01-01T00:00:00Z""#,
            r#""foo": "revoked""#,
            r#""validFrom": "x""#,
            r#""not-after": 1893456000"#,
            r#""NBF": 1"#,
            r#""Status": "on hold""#,
            r#""max_calls": 5"#,
            r#""ｒｅｖｏｋｅｄ": 1"#,
        ] {
            assert!(fails(restricts), "{restricts}");
        }
    }
}
