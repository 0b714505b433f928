//! The order of captured records: on each partition, offsets go up. What a worker would skip is told.

use rustc_hash::FxHashMap;

use super::{Captured, LineFault};

/// The last offset of every partition that a stream of records has named so far.
#[derive(Debug, Default)]
pub struct Order {
    /// By topic and number.
    last: FxHashMap<Box<str>, FxHashMap<i32, i64>>,
}

impl Order {
    /// Returns the topics of the records that have an offset.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.last.keys().map(AsRef::as_ref)
    }

    /// Notes a record. `topic` stands for one that the record does not name.
    ///
    /// # Errors
    /// The record's offset does not come behind that of the partition's record before it. A worker skips such a record, since its state
    /// knows it already. A record without an offset always comes behind.
    pub fn note(&mut self, captured: &Captured<'_>, topic: &str) -> Result<(), LineFault> {
        let Some(offset) = captured.offset else { return Ok(()) };
        let topic = captured.topic.as_deref().unwrap_or(topic);
        let Some(partitions) = self.last.get_mut(topic) else {
            let first = FxHashMap::from_iter([(captured.partition.unwrap_or_default(), offset)]);
            self.last.insert(topic.into(), first);
            return Ok(());
        };
        match partitions.get(&captured.partition.unwrap_or_default()) {
            Some(last) if offset <= *last => Err(repeated(offset, *last)),
            _ => {
                partitions.insert(captured.partition.unwrap_or_default(), offset);
                Ok(())
            }
        }
    }
}

/// Returns the fault of a line whose offset does not follow that of the line before it.
fn repeated(offset: i64, last: i64) -> LineFault {
    let what = if offset == last { "the offset of the line before it" } else { "an offset before that of an earlier line" };
    LineFault {
        code: "offset_repeated",
        field: "offset",
        found: format!("{what} on the same partition"),
        fix: "sort the lines of each partition by offset, and leave copies out",
    }
}
