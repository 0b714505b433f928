//! The table of topics for people: a page of documentation, and the default names for the configuration file.

use super::{Carries, Cleanup, Needed, PartitionRule, Party, TopicSpec};

const HEAD: &str = "\
# Topics

Written from the table in `crates/config/src/topics/table.rs`; `TOLLGATE_UPDATE_FIXTURES=1 cargo test --test integration -- tidy` writes it anew.

`tollgate topics apply` compares the topics with this table, and `tollgate topics apply --execute` creates and changes what differs:
[topic setup](topic-setup.md) says how. `tollgate run` ends if a topic that it needs is missing or does not fit, and names that
command. `tollgate dev` makes all of them. Every producer has to use the murmur2 partitioner, so that a thread stays on one partition. Every
group and events topic needs a state topic of its own; controls may be shared. No two roles may have the same topic, and no reply topic may
be one of these. Reply topics that `kafka.reply_topics` names are checked and created with them; whoever reads a topic that a prefix such as
`team-a.*` covers creates it.

| key | default name | records | keyed by | needed |
|---|---|---|---|---|
";

const SHAPE_HEAD: &str = "
| topic | old records | partitions | `max.message.bytes` | written by | read by |
|---|---|---|---|---|---|
";

/// Returns the page about the topics, in Markdown.
#[must_use]
pub fn page(specs: &[&TopicSpec]) -> String {
    let mut page = HEAD.to_owned();
    for spec in specs {
        let needed = match spec.needed {
            Needed::Always => "yes",
            Needed::ForAbuse => "unless `abuse` is off",
            Needed::OnRequest => "no",
        };
        let TopicSpec { default_name, what, record_key, .. } = spec;
        page += &format!("| `{}` | `{default_name}` | {what} | {record_key} | {needed} |\n", spec.path());
    }
    page += SHAPE_HEAD;
    for spec in specs {
        let (old, partitions, size) = (cleanup(spec.cleanup), partitions(spec.partitions), size(spec.carries));
        page += &format!("| {} | {old} | {partitions} | {size} | {} | {} |\n", spec.key, parties(spec.written_by), parties(spec.read_by));
    }
    page
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
