//! What commands say of recordings.

use std::collections::BTreeSet;
use std::io::{self, Write};

use tollgate_recordings::LineFault;

use super::shown;

/// Says what verdicts on redacted records are not.
pub(crate) fn redacted(records: u64) -> String {
    format!(
        "{records} records are redacted: their arguments are stand-ins, so that verdicts of passports and policy servers are not those of the live gate"
    )
}

/// Says so if records are of several topics: a worker reads one of them.
pub(crate) fn tell_topics(topics: &BTreeSet<String>) {
    let mut names = topics.iter().map(|name| shown(name));
    if let (Some(first), Some(second)) = (names.next(), names.next()) {
        let count = topics.len();
        say!(
            "tollgate: the records are of {count} topics, {first} and {second} among them; each topic is decided by itself, and a worker \
             reads one: take a capture of one topic"
        );
    }
}

/// Reports the fault of a line on stderr, as JSON.
pub(crate) fn report(number: u64, fault: &LineFault) -> anyhow::Result<()> {
    let LineFault { code, field, found, fix } = fault;
    let report = serde_json::json!({"line": number, "code": code, "field": field, "found": found, "fix": fix});
    Ok(writeln!(io::stderr(), "{report}")?)
}
