//! CloudEvents whose data is in `data_base64`, as Dapr and others wrap what they do not look into: the bytes are the event's JSON.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem::Finder;
use tollgate_json::{Parser, Splice};

use super::EVENT_DEPTH_MAX;

/// The member with the encoded data.
const MEMBER: &str = "data_base64";

/// Finds it. Every record is searched for it, and making a search ready costs more than the search.
static SEARCH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MEMBER));

/// Returns the text of a structured CloudEvent with its data decoded in place, under the name `data`; `None` for any other text, and for data
/// that is no JSON in base64, which is refused as it stands.
pub(crate) fn with_data(text: &[u8]) -> Option<Vec<u8>> {
    SEARCH.find(text)?;
    let mut parser = Parser::new();
    let root = parser.parse(text, EVENT_DEPTH_MAX).ok().filter(|root| root.get("specversion").is_some())?;
    let mut found = root.members().filter(|(key, _)| key.is_text(MEMBER) || key.is_text("data"));
    let (key, value) = found.next().filter(|(key, _)| key.is_text(MEMBER))?;
    // Two of them could be read in two ways.
    if found.next().is_some() {
        return None;
    }
    let data = STANDARD.decode(value.as_text()?.as_bytes()).ok()?;
    // What is no value of its own could bring members with it.
    Parser::new().parse(&data, EVENT_DEPTH_MAX).ok()?;
    let mut splice = Splice::of(text);
    splice.replace(key.place(), "data");
    // The quotes around the string go with it.
    let place = value.place();
    splice.replace(place.start.saturating_sub(1)..place.end + 1, data);
    let mut out = Vec::with_capacity(text.len());
    splice.write(&mut out).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_decoded_in_its_place() {
        let decoded = |text: &str| with_data(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
        let text = r#"{"specversion":"1.0","data_base64":"eyJhIjoxfQ==","id":"x"}"#;
        assert_eq!(decoded(text), Some(r#"{"specversion":"1.0","data":{"a":1},"id":"x"}"#.to_owned()));
        // A field of an event may be called so, and a text may hold the word.
        for text in [
            r#"{"data_base64":"eyJhIjoxfQ=="}"#,
            r#"{"specversion":"1.0","x":"data_base64"}"#,
            r#"{"specversion":"1.0","data_base64":null}"#,
            r#"{"specversion":"1.0","data":{},"data_base64":"eyJhIjoxfQ=="}"#,
            r#"{"specversion":"1.0","data_base64":"eyJhIjoxfQ==","data_base64":"eyJhIjoxfQ=="}"#,
        ] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }

    #[test]
    fn data_that_would_reach_beyond_its_place_is_left_to_be_refused() {
        for data in ["no base64", "eyJhIjoxfSwiaWQiOjI=", ""] {
            assert_eq!(with_data(format!(r#"{{"specversion":"1.0","data_base64":"{data}"}}"#).as_bytes()), None);
        }
    }
}
