//! A topic as the source of a replay: its records up to where it ends now.

use std::collections::BTreeMap;

use tollgate_config::settings::KafkaSettings;
use tollgate_recordings::LineFault;
use tollgate_recordings::replay::{Item, Place, Source, unreadable_header};

use crate::{Span, Step, TopicRecords, Topics};

/// A topic as it stood when it was opened.
pub struct TopicSource(TopicRecords);

impl TopicSource {
    /// Opens a topic behind these offsets, by partition.
    ///
    /// # Errors
    /// The topic is not there, or the brokers do not answer.
    pub fn open(kafka: &KafkaSettings, name: &str, behind: &BTreeMap<i32, i64>) -> anyhow::Result<Self> {
        let topics = Topics::new(kafka)?;
        let topic = topics.named(name, "SOURCE")?;
        let span = |partition| {
            let (begin, end) = topics.ends(topic, partition)?;
            let next = behind.get(&partition.0).map_or(begin.0, |last| last + 1);
            anyhow::Ok(Span { partition: partition.0, next, end: Some(end.0) })
        };
        let spans: Vec<_> = topic.all()?.into_iter().map(span).collect::<anyhow::Result<_>>()?;
        Ok(Self(TopicRecords::open(kafka, "tollgate-replay", name, &spans)?))
    }
}

impl Source for TopicSource {
    fn next(&mut self) -> anyhow::Result<Item> {
        Ok(match self.0.step()? {
            Step::Record(record) => {
                Item::Record(record.with_borrowed(|record| Place { partition: record.partition.0, at: record.offset.0 }), record)
            }
            Step::Unreadable(partition, at) => Item::Fault(Place { partition, at }, unreadable_header()),
            Step::Deleted { partition, from: at, count } => Item::Fault(Place { partition, at }, deleted(count)),
            Step::Nothing => Item::Nothing,
            Step::End => Item::End,
        })
    }

    fn fault(&self, Place { partition, at }: Place, LineFault { code, field, found, fix }: &LineFault) -> serde_json::Value {
        serde_json::json!({"partition": partition, "offset": at, "code": code, "field": field, "found": found, "fix": fix})
    }
}

/// Returns the fault of records that went while the topic was read, or since a replay was interrupted.
fn deleted(count: u64) -> LineFault {
    LineFault::new("deleted_by_retention", "offset", format!("{count} records that are gone"), "replay within the topic's retention")
}
