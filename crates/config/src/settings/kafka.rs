//! The `kafka` section: brokers, group, topics and any librdkafka property.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::properties::{Properties, Renewed, SUFFIX};
use super::redact::is_secret;
use super::{brokers, urls};
pub use crate::topics::TopicSettings;
use crate::topics::{Topic, TopicSpec};
use tollgate_core::settings::{Entry, REDACTED, Section, Spelling, shape};

/// Properties that correctness depends on. Tollgate sets them itself.
#[rustfmt::skip]
const OURS: [&str; 14] = [
    "bootstrap.servers", "metadata.broker.list", "group.id", "group.instance.id", "enable.auto.commit", "enable.auto.offset.store",
    "enable.idempotence", "acks", "request.required.acks", "max.in.flight", "max.in.flight.requests.per.connection", "partitioner",
    "transactional.id", "isolation.level",
];

/// Brokers, group and topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KafkaSettings {
    /// Bootstrap addresses, separated by commas.
    pub brokers: String,
    /// The consumer group.
    pub group_id: String,
    /// The topics.
    pub topics: TopicSettings,
    /// The topics on which an event may ask for its verdict: names, or prefixes that end in `*`.
    pub reply_topics: Vec<String>,
    /// Properties for librdkafka, which override ours. Those whose values stand in files have what was there at the start.
    pub properties: Properties,
    /// The files that hold the values of properties, by property.
    #[serde(skip)]
    pub property_files: BTreeMap<String, String>,
    #[serde(skip)]
    pub(super) renewed: Renewed,
}

impl KafkaSettings {
    /// Returns the owner of the state in the state topic: the group, with its events topic.
    #[must_use]
    pub fn state_owner(&self) -> String {
        format!("{}/{}", self.group_id, self.topics.events)
    }

    /// Returns the bootstrap addresses for people to read: without user info, which librdkafka has no use for.
    #[must_use]
    pub fn shown_brokers(&self) -> String {
        urls::redacted_addresses(&self.brokers)
    }

    /// Returns the reply topics that are named. A prefix such as `team-a.*` names none.
    pub fn named_reply_topics(&self) -> impl Iterator<Item = Topic<'_>> {
        let names = self.reply_topics.iter().filter(|topic| !topic.ends_with('*'));
        names.map(|name| Topic { spec: TopicSpec::REPLIES, name })
    }

    /// Returns every topic that is named: those of the table, then reply topics. The topic of `tollgate serve` may be a reply topic of others
    /// too, and is then one of those.
    pub fn each_topic(&self) -> impl Iterator<Item = Topic<'_>> {
        let is_listed =
            |topic: &Topic<'_>| topic.name == self.topics.replies && self.reply_topics.iter().any(|listed| listed == topic.name);
        self.topics.each().filter(move |topic| !is_listed(topic)).chain(self.named_reply_topics())
    }

    /// Returns whether an event may ask for its verdict on this topic.
    #[must_use]
    pub fn allows_reply_to(&self, topic: &str) -> bool {
        // A prefix may match our own topics, and a verdict on the events topic would be read as an event.
        let is_ours = self.topics.each().any(|our| our.name == topic);
        topic == self.topics.replies
            || !is_ours
                && self.reply_topics.iter().any(|allowed| match allowed.strip_suffix('*') {
                    Some(prefix) => topic.starts_with(prefix),
                    None => topic == allowed,
                })
    }

    /// Returns whether a property holds a secret, whose value must not be shown.
    #[must_use]
    pub fn is_secret(property: &str) -> bool {
        is_secret(property)
    }

    /// Returns the protocol that clients speak with the brokers, as the properties have it.
    #[must_use]
    pub fn protocol(&self) -> &str {
        protocol(&self.properties)
    }

    /// Sets the addresses of the brokers, as `--brokers` does.
    ///
    /// # Errors
    /// Returns a sentence for people if one of them is no address.
    pub fn set_brokers(&mut self, addresses: &str) -> Result<(), String> {
        brokers::check(addresses, self.protocol()).map_err(|(found, fix)| format!("--brokers: found {found}; {fix}"))?;
        addresses.clone_into(&mut self.brokers);
        Ok(())
    }

    /// Sets a property from `key=value`, as `-X` does, or the file of its value from `key_file=path`, which is not read yet.
    ///
    /// # Errors
    /// Returns a sentence for people if it is not `key=value`, or if Tollgate sets the property itself.
    pub fn set_property(&mut self, assignment: &str) -> Result<(), String> {
        let (key, value) = assignment.split_once('=').ok_or("-X wants key=value, such as -X security.protocol=ssl")?;
        if key.is_empty() {
            return Err("-X wants key=value, such as -X security.protocol=ssl; the key is missing".to_owned());
        }
        let file_of = key.strip_suffix(SUFFIX);
        if OURS.contains(&file_of.unwrap_or(key)) {
            return Err(format!("-X {key}: Tollgate sets this property itself; use the kafka section of the configuration"));
        }
        if let Some(property) = file_of {
            self.properties.remove(property);
            self.property_files.insert(property.to_owned(), value.to_owned());
        } else {
            self.property_files.remove(key);
            self.properties.insert(key.to_owned(), value.to_owned());
        }
        Ok(())
    }
}

pub(super) fn read(section: &Section<'_>) -> KafkaSettings {
    let topics = TopicSettings::read(&section.section("topics"));
    let reply_topics = section.strings("reply_topics").unwrap_or_default();
    // A prefix that covers one of them is no mistake: the topic that an event names is checked again.
    let others = topics.each().filter(|ours| ours.name != topics.replies);
    for ours in others.filter(|ours| reply_topics.iter().any(|reply| reply == ours.name)) {
        let found = format!("the name of {} among them", ours.spec.path());
        section.fault("reply_topics", found, "remove it: replies need topics of their own");
    }
    let (properties, property_files) = read_properties(section);
    let brokers = section.string("brokers");
    // An empty string, and one that was redacted, is a fault already.
    if !brokers.is_empty()
        && !brokers.contains(REDACTED)
        && let Err((found, fix)) = brokers::check(&brokers, protocol(&properties))
    {
        section.fault("brokers", found, fix);
    }
    let (group_id, renewed) = (section.string("group_id"), Renewed::default());
    KafkaSettings { brokers, group_id, topics, reply_topics, properties, property_files, renewed }
}

/// Returns the properties, and the files of those whose values stand in files.
fn read_properties(section: &Section<'_>) -> (Properties, BTreeMap<String, String>) {
    let (mut properties, mut files) = (Properties::new(), BTreeMap::new());
    let entries = section.entries("properties", Spelling::Dots);
    let has_value = |property: &str| entries.iter().any(|entry| entry.key == property && !entry.found.is_nothing());
    let both: Vec<_> = entries.iter().filter(|entry| entry.key.strip_suffix(SUFFIX).is_some_and(has_value)).collect();
    both.iter().for_each(|entry| entry.fault("a file beside the value itself", "write one of the two"));
    for entry in entries {
        let file_of = entry.key.strip_suffix(SUFFIX).map(str::to_owned);
        match (read_property(entry), file_of) {
            (Some((_, file)), Some(property)) => _ = files.insert(property, file),
            (Some((property, value)), None) => _ = properties.insert(property, value),
            (None, _) => {}
        }
    }
    (properties, files)
}

fn protocol(properties: &Properties) -> &str {
    properties.get("security.protocol").map_or("plaintext", String::as_str)
}

fn read_property(entry: Entry<'_>) -> Option<(String, String)> {
    if OURS.contains(&entry.key.strip_suffix(SUFFIX).unwrap_or(&entry.key)) {
        entry.fault("a property that Tollgate sets itself", "remove it");
    }
    if let Some(text) = entry.found.as_str() {
        if text.contains(REDACTED) && text != REDACTED {
            entry.fault("a value of which something was redacted", "write the whole value");
            return None;
        }
        return Some((entry.key, text.to_owned()));
    }
    match entry.found.value {
        // YAML would change a number: 0123 would become 123, and nobody would see why the password is wrong.
        value @ Value::Number(_) if is_secret(&entry.key) => entry.fault(shape(value), "write it in quotes"),
        value @ (Value::Bool(_) | Value::Number(_)) => return Some((entry.key, value.to_string())),
        other => entry.fault(shape(other), "write a string, a number or a boolean"),
    }
    None
}
