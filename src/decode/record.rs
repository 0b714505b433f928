//! A Kafka record as the core sees it.

/// A partition's number. A type of its own, so that it is never taken for an [`Offset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub i32);

/// A record's position in its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

impl Offset {
    /// The position behind this one: what a consumer commits once this record is finished.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::fmt::Display for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A record header; its value may be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The header's name, case-sensitive as in Kafka.
    pub name: &'a str,
    /// Its bytes.
    pub value: Option<&'a [u8]>,
}

/// One consumed record, borrowed from whoever consumed it.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The topic it stands in.
    pub topic: &'a str,
    /// The partition it stands in.
    pub partition: Partition,
    /// Its offset there.
    pub offset: Offset,
    /// The record's own timestamp in milliseconds since the epoch.
    pub timestamp_ms: Option<i64>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is Kafka's null.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: &'a [Header<'a>],
}

impl<'a> Record<'a> {
    /// The value of the last header of that name, if it is not null.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().rev().find(|header| header.name == name).and_then(|header| header.value)
    }

    /// Where it stands, as `<topic>/<partition>/<offset>`: the id of an event that brings none.
    #[must_use]
    pub fn coordinates(&self) -> String {
        format!("{}/{}/{}", self.topic, self.partition, self.offset)
    }
}
