//! The records that tests write and read.

use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};

/// A record to produce.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// The key, if there is one.
    pub key: Option<Vec<u8>>,
    /// The value; `None` makes a tombstone.
    pub value: Option<Vec<u8>>,
    /// Names and values, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// The partition; `None` takes the one that the key hashes to.
    pub partition: Option<i32>,
    /// Milliseconds since 1970; `None` takes the present.
    pub timestamp: Option<i64>,
}

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The partition it stands on.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: Option<i64>,
    /// The key, if there is one.
    pub key: Option<Vec<u8>>,
    /// The value; `None` of a tombstone.
    pub value: Option<Vec<u8>>,
    /// Names and values, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// The place of a record in a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition.
    pub partition: i32,
    /// The offset there.
    pub offset: i64,
}

impl Outgoing {
    /// Returns a record with a key and a value, to go where the key hashes to.
    pub fn new(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self { key: Some(key.into()), value: Some(value.into()), ..Self::default() }
    }

    /// Returns it with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), Some(value.into())));
        self
    }

    /// Returns it for this partition, wherever its key hashes to.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }
}

impl From<&BorrowedMessage<'_>> for Record {
    fn from(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
        Self {
            partition: message.partition(),
            offset: message.offset(),
            timestamp: message.timestamp().to_millis(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers: headers.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect(),
        }
    }
}
