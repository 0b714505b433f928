//! URLs for people to read, without what may be a secret in them: user info, query and fragment. Hosts of URLs that are this machine.

use std::borrow::Cow;
use std::net::IpAddr;

use serde_json::Value;

use tollgate_core::settings::REDACTED;

/// Returns a value whose texts show no user info, query or fragment of a URL.
pub(super) fn redacted_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redacted(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(redacted_value).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, redacted_value(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Returns a text without the user info, query and fragment of the URLs in it. Where parsers differ on what is which, more is left out.
fn redacted(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return text.into();
    }
    text.split_inclusive(char::is_whitespace).map(redacted_word).collect::<String>().into()
}

fn redacted_word(word: &str) -> String {
    let (word, space) = word.split_at(word.trim_end().len());
    if !word.contains("://") {
        return [word, space].concat();
    }
    // A list of addresses has commas. So may a query have, of which nothing is shown.
    let query = word.find(['?', '#']);
    let (plain, query) = query.map_or((word, ""), |at| word.split_at(at));
    let hidden = query.chars().next().map_or_else(String::new, |mark| format!("{mark}{REDACTED}"));
    [redacted_addresses(plain), hidden, space.to_owned()].concat()
}

/// Returns addresses, separated by commas, without the user info before each. They may have schemes or not.
pub(super) fn redacted_addresses(addresses: &str) -> String {
    let address = |address: &str| {
        let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
        let mark = if scheme.is_empty() { "" } else { "://" };
        match rest.rsplit_once('@') {
            None => address.to_owned(),
            Some((_, host)) => format!("{scheme}{mark}{REDACTED}@{host}"),
        }
    };
    addresses.split(',').map(address).collect::<Vec<_>>().join(",")
}

/// Returns whether the host of a URL is this machine, where nobody can listen on the way: `localhost`, or an address of loopback.
#[must_use]
pub fn is_this_machine(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_may_be_a_secret_in_a_url_is_not_shown() {
        for (text, expected) in [
            ("https://policy.example:8443/v1/decide", "https://policy.example:8443/v1/decide"),
            ("https://p/v1?token=s3cret&x=1", "https://p/v1?[redacted]"),
            ("https://p/v1#s3cret", "https://p/v1#[redacted]"),
            ("https://p?a=1,s3cret", "https://p?[redacted]"),
            ("https://user:s3cret@p/v1", "https://[redacted]@p/v1"),
            ("https://s3cret@p", "https://[redacted]@p"),
            ("https://user:s3/cret@p/v1?s3cret#s3cret", "https://[redacted]@p/v1?[redacted]"),
            ("https://user:s3cret@x@p/v1", "https://[redacted]@p/v1"),
            ("SASL_SSL://u:s3cret@a:1,SASL_SSL://u:s3cret@b:2", "SASL_SSL://[redacted]@a:1,SASL_SSL://[redacted]@b:2"),
            ("one http://a/?s3cret\ntwo http://u:s3cret@b/", "one http://a/?[redacted]\ntwo http://[redacted]@b/"),
            ("**/secret?/*.pem", "**/secret?/*.pem"),
            ("a@b.example", "a@b.example"),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
        let value = json!({"providers": [{"url": "http://p/?s3cret"}], "timeout_ms": 5});
        assert_eq!(redacted_value(value), json!({"providers": [{"url": "http://p/?[redacted]"}], "timeout_ms": 5}));
    }

    #[test]
    fn only_names_and_addresses_of_loopback_are_this_machine() {
        for here in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "127.8.9.1"] {
            assert!(is_this_machine(here), "{here}");
        }
        for elsewhere in ["gate.example", "127.0.0.1.example", "10.0.0.1", "localhost.example", "[fe80::1]", "[127.0.0.1", ""] {
            assert!(!is_this_machine(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn addresses_without_a_scheme_may_have_user_info_too() {
        for (brokers, expected) in
            [("kafka-1:9092,kafka-2:9092", "kafka-1:9092,kafka-2:9092"), ("u:s3cret@a:1, b:2,s3cret@c", "[redacted]@a:1, b:2,[redacted]@c")]
        {
            assert_eq!(redacted_addresses(brokers), expected);
        }
    }
}
