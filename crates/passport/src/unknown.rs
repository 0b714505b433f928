//! Members that the standard does not know. Whoever writes one may mean that it restricts, so it is passed over only where it is certain to
//! describe: by its name, or as a text or a number under a name that speaks of no restriction.

use std::borrow::Cow;

use tollgate_json::time::parse_timestamp;
use tollgate_json::{Shape, Text, Value};

use super::fields::{Malformed, member_path};

/// Names that describe, whatever they hold.
#[rustfmt::skip]
const DESCRIBES: [&str; 22] = [
    "$schema", "@context", "annotations", "category", "categories", "comment", "comments", "contact", "contacts", "description",
    "display_name", "issued_at", "issuer", "labels", "links", "name", "note", "notes", "proof", "signature", "tags", "title",
];

/// Words that speak of a restriction.
#[rustfmt::skip]
const WORDS: [&str; 26] = [
    "aud", "ban", "banned", "cap", "caps", "end", "ends", "env", "exp", "from", "hold", "hours", "kill", "killed", "lost", "max", "min",
    "mode", "nbf", "non", "not", "off", "per", "rate", "role", "ttl",
];

/// Pieces of words that speak of a restriction, wherever in a name they stand: `ratelimit`, `notbefore`, `isrevoked`. In a text they begin a
/// word.
#[rustfmt::skip]
const STEMS: [&str; 74] = [
    "access", "activ", "after", "allow", "approv", "archiv", "audience", "authoriz", "before", "begin", "block", "budget", "cancel", "capab",
    "closed", "command", "compromis", "condition", "constrain", "dead", "delet", "denie", "deny", "disab", "domain", "draft", "duration",
    "effective", "emergency", "enab", "environment", "except", "exclu", "expir", "forbid", "freez", "frozen", "grant", "halt", "invalid",
    "lifetime", "limit", "lock", "maxi", "network", "only", "path", "pause", "pending", "permi", "polic", "privileg", "prohibit",
    "quarantin", "quota", "requir", "restrict", "retire", "revo", "sandbox", "scope", "start", "stat", "stolen", "stop", "sunset",
    "superse", "suspen", "terminat", "timeout", "trust", "until", "valid", "withdr",
];

/// Returns what is wrong with the members of a passport that are not known.
pub(super) fn members<'m>(passport: Value<'m>, is_known: impl Fn(&str) -> bool + 'm) -> impl Iterator<Item = Malformed> + 'm {
    others(passport, is_known).filter(|(name, value)| may_restrict(name, *value)).map(|(name, _)| malformed("", &name))
}

/// Returns what is wrong with a member of a capability's entry, at `parent`, that is not known: whatever does not describe says something of
/// what the capability allows.
pub(super) fn member_of_entry(entry: Value<'_>, parent: &str, is_known: impl Fn(&str) -> bool) -> Option<Malformed> {
    others(entry, is_known).next().map(|(name, _)| malformed(parent, &name))
}

/// Returns the members of an object that are not known, nor describe by their name.
fn others<'m>(object: Value<'m>, is_known: impl Fn(&str) -> bool + 'm) -> impl Iterator<Item = (Cow<'m, str>, Value<'m>)> {
    let named = object.members().filter_map(|(name, value)| Some((name.as_text()?.into_str()?, value)));
    named.filter(move |(name, value)| !value.is_null() && !is_known(name) && !DESCRIBES.contains(&&**name))
}

fn malformed(parent: &str, name: &str) -> Malformed {
    let expected = "no such member: write a restriction as a known limit, and what only describes below metadata";
    Malformed::new(member_path(parent, name), "not known and may be meant to restrict", expected)
}

fn may_restrict(name: &str, value: Value<'_>) -> bool {
    match value.shape() {
        Shape::Number => names_a_restriction(name),
        Shape::String => {
            let text = value.as_text().and_then(Text::into_str).unwrap_or_default();
            let is_word = !text.trim().contains(char::is_whitespace);
            names_a_restriction(name) || is_moment(&text) || is_word && speaks_of_a_restriction(&text)
        }
        _ => true,
    }
}

/// Returns whether a text is a moment, or begins with a day, as one does that is written in another form.
fn is_moment(text: &str) -> bool {
    let day = text.trim().as_bytes().first_chunk::<10>();
    let is_day =
        |day: &[u8; 10]| day.iter().zip(b"0000-00-00").all(|(byte, form)| if *form == b'-' { byte == form } else { byte.is_ascii_digit() });
    parse_timestamp(text).is_some() || day.is_some_and(is_day)
}

/// Returns whether a name speaks of a restriction, also where its words are not set apart.
fn names_a_restriction(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    let is_glued = letters.starts_with("max") || STEMS.iter().any(|stem| letters.contains(stem));
    is_glued || speaks_of_a_restriction(name)
}

/// Returns whether a text has a word that speaks of a restriction. A text with letters beyond ASCII may look like one.
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
            members(root, |_| false).next().is_some()
        };
        for describes in [
            r#""foo": 1"#,
            r#""foo": null"#,
            r#""revokedAt": null"#,
            r#""name": "blocked""#,
            r#""vendor": "acme""#,
            r#""generation": 7"#,
            r#""skill": "python""#,
        ] {
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
            r#""ratelimit": 5"#,
            r#""maxcalls": 5"#,
            r#""notbefore": 1893456000"#,
            r#""isrevoked": 1"#,
            r#""paused": 1"#,
            r#""readonly": 1"#,
            r#""ttl": 60"#,
            r#""lifecycle": "retired""#,
            r#""term": "2026-01-01/2026-02-01""#,
        ] {
            assert!(fails(restricts), "{restricts}");
        }
    }
}
