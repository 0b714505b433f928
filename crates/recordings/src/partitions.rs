//! The partitions that a stream of records names.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tollgate_core::event::record::Record;

/// How many partitions a stream of records may name. Each has a state of its own.
const PARTITIONS_MAX: usize = 10_000;

/// Something for every partition that a stream of records has named so far.
#[derive(Debug)]
pub struct Partitions<T> {
    /// By topic and number.
    topics: FxHashMap<Box<str>, BTreeMap<i32, T>>,
    count: usize,
}

impl<T> Default for Partitions<T> {
    fn default() -> Self {
        Self { topics: FxHashMap::default(), count: 0 }
    }
}

impl<T> Partitions<T> {
    /// Returns what belongs to a record's partition. The first record of a partition gets what `new` returns.
    ///
    /// # Errors
    /// There are too many partitions.
    pub fn of(&mut self, record: &Record<'_>, new: impl FnOnce() -> T) -> anyhow::Result<&mut T> {
        // A lookup with a copy of the name would allocate for every record.
        if !self.topics.contains_key(record.topic) {
            self.topics.insert(record.topic.into(), BTreeMap::new());
        }
        let Some(partitions) = self.topics.get_mut(record.topic) else { anyhow::bail!("a topic that was just added is not there") };
        if !partitions.contains_key(&record.partition.0) {
            anyhow::ensure!(self.count < PARTITIONS_MAX, "the input names more than {PARTITIONS_MAX} partitions");
            self.count += 1;
        }
        Ok(partitions.entry(record.partition.0).or_insert_with(new))
    }

    /// Returns what belongs to each partition.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.topics.values().flat_map(BTreeMap::values)
    }
}
