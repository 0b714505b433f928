//! What commands do on the topics of a cluster, with Kafka: the program adds arguments, and prints the results.
//!
//! | module | what it does |
//! |---|---|
//! | `connection` | the options that lead to a configuration and its brokers |
//! | `topics`, `topic_records` | which topics there are; reads a topic, or a part of it |
//! | `sender`, `publish` | the producer of all commands; publishes some records and waits for their acknowledgements |
//! | `verdicts`, `by_time` | verdicts as they come; the records of a topic between two times |
//! | [`capture`] | a topic as a file, or as the lines of a file |
//! | [`rekey`] | threads to the partitions of their new hash |
//! | [`why`] | why a verdict is what it is |
//! | [`replay`] | recorded traffic to a topic again |
//! | `people` | sentences for people on stderr, with [`units`] |
//!
//! Results are returned as data. What goes on meanwhile is said on stderr.

#![allow(missing_debug_implementations, reason = "clients of Kafka have nothing to show")]
#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic if nobody reads")]

#[macro_use]
mod people;
mod by_time;
pub mod capture;
mod connection;
mod publish;
pub mod rekey;
pub mod replay;
mod sender;
mod topic_records;
mod topics;
pub mod units;
mod verdicts;
pub mod why;

use std::time::Duration;

pub use by_time::TimeRange;
pub use connection::{Connection, UsageError};
pub use people::note;
pub use publish::{Outgoing, publish, publish_all};
pub(crate) use sender::REPORT_TIMEOUT;
pub use sender::{Outcome, Place, Sender, Sending, Tagged};
pub use topic_records::{Span, Step, TopicRecords, consumer};
pub use topics::{Topic, Topics, reach};
pub use verdicts::{Start, Verdict, VerdictReader};

/// How long the brokers may take to answer a command.
pub const BROKERS_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns a runtime for HTTP, signals and the administration of topics, with a thread of its own.
///
/// # Errors
/// The system gives no thread.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}
