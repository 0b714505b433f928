//! Keys of sections that name a server to ask over HTTP.

use std::collections::BTreeMap;

use super::{REDACTED, Secret, Section, Spelling, shape};

/// Returns whether a text is an absolute http or https URL without credentials.
#[must_use]
pub fn is_plain_url(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    !authority.is_empty() && !authority.contains('@') && !url.contains(char::is_whitespace)
}

/// Reads the mapping `headers` of a section: secrets by the names of headers.
#[must_use]
pub fn read_headers(section: &Section<'_>) -> BTreeMap<String, Secret> {
    let mut headers = BTreeMap::new();
    for entry in section.entries("headers", Spelling::Dashes) {
        match entry.found.as_str() {
            Some(REDACTED) => entry.fault("a secret that was redacted", "write the header's value"),
            Some(text) => _ = headers.insert(entry.key, Secret(text.to_owned())),
            None => entry.fault(shape(entry.found.value), "write a string"),
        }
    }
    headers
}

/// Reads the mapping `header_files` of a section: files by the names of headers.
#[must_use]
pub fn read_header_files(section: &Section<'_>) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in section.entries("header_files", Spelling::Dashes) {
        match entry.found.as_str() {
            Some(file) => _ = files.insert(entry.key, file.to_owned()),
            None => entry.fault(shape(entry.found.value), "write the name of a file that holds the header's value"),
        }
    }
    files
}
