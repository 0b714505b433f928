//! The table of topics for people: the tables of a page of documentation, and the default names for the configuration file.

use super::{Carries, Cleanup, Needed, PartitionRule, Party, TopicSpec};

/// The line before the tables, in the page on topics.
pub const BEGIN: &str = "<!-- Written from crates/config/src/topics/table.rs: begin -->";
/// The line behind the tables.
pub const END: &str = "<!-- end -->";

const HEAD: &str = "\
| key | default name | records | keyed by | needed |
|---|---|---|---|---|
";

const SHAPE_HEAD: &str = "
| topic | old records | partitions | `max.message.bytes` | written by | read by |
|---|---|---|---|---|---|
";

/// Returns the tables of the page on topics, in Markdown.
#[must_use]
pub fn tables(specs: &[&TopicSpec]) -> String {
    let mut tables = HEAD.to_owned();
    for spec in specs {
        let needed = match spec.needed {
            Needed::Always => "yes",
            Needed::ForAbuse => "unless `abuse` is off",
            Needed::OnRequest => "no",
        };
        let TopicSpec { default_name, what, record_key, .. } = spec;
        tables += &format!("| `{}` | `{default_name}` | {what} | {record_key} | {needed} |\n", spec.path());
    }
    tables += SHAPE_HEAD;
    for spec in specs {
        let (old, partitions, size) = (cleanup(spec.cleanup), partitions(spec.partitions), size(spec.carries));
        tables += &format!("| {} | {old} | {partitions} | {size} | {} | {} |\n", spec.key, parties(spec.written_by), parties(spec.read_by));
    }
    tables
}

/// Returns the lines of `config/tollgate.yaml` below `topics:`.
#[must_use]
pub fn defaults(specs: &[&TopicSpec]) -> String {
    specs.iter().map(|spec| format!("    {}: {}\n", spec.key, spec.default_name)).collect()
}

fn cleanup(cleanup: Cleanup) -> String {
    match cleanup {
        Cleanup::Compact { segment_bytes: None, .. } => "`cleanup.policy=compact`".to_owned(),
        Cleanup::Compact { segment_bytes: Some(bytes), .. } => format!("`cleanup.policy=compact`, `segment.bytes` of at most {bytes}"),
        Cleanup::Delete { days: Some(days) } => format!("deleted after {days} days"),
        Cleanup::Delete { days: None } => "deleted by age, as you like".to_owned(),
    }
}

fn partitions(rule: PartitionRule) -> String {
    match rule {
        PartitionRule::Free => "as you like".to_owned(),
        PartitionRule::One => "one".to_owned(),
        PartitionRule::AtLeast { topic, why } => format!("at least as many as {topic}: {why}"),
        PartitionRule::SameAs { topic, why } => format!("as many as {topic}: {why}"),
    }
}

fn size(carries: Carries) -> String {
    match carries {
        Carries::Theirs => "as your records need".to_owned(),
        Carries::Ours => "batches keep to it".to_owned(),
        Carries::CopiesOf(topic) => format!("that of {topic}: a record that is larger is published without its value"),
        Carries::ThreadState => "`limits.thread_bytes_max` and 4 KiB".to_owned(),
    }
}

fn parties(parties: &[Party]) -> String {
    let words: Vec<_> = parties.iter().map(|party| party.as_str()).collect();
    if words.is_empty() { "nobody yet".to_owned() } else { words.join(", ") }
}
