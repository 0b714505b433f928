//! Captured traffic: records in files, and deciding on them in this process, without Kafka.
//!
//! ```text
//! file ─▶ input ─▶ lines ─▶ formats ─▶ record ─▶ decider ─▶ verdict
//! ```
//!
//! `eval`, `diff`, `test` and `replay` read records here, so that a file means the same to all of them.

pub mod compare;
mod contents;
mod decider;
mod envelope;
pub mod evaluate;
mod formats;
mod input;
mod lines;
mod local_abuse;
pub mod loops;
mod order;
mod own_file;
mod parallel_reader;
mod partitions;
mod pieces;
pub mod replay;
mod uncounted;
mod writer;

pub use contents::{Contents, LastLine, contents};
pub use decider::{AskServers, Decider, conclude, unreadable_header};
pub use envelope::write_envelope;
pub use formats::{Captured, Format, LineFault, Reader, unreadable_from_here};
pub use input::{Input, open};
pub use lines::{Line, read_line};
pub use local_abuse::{Follower, LocalAbuse};
pub use order::Order;
pub use own_file::create_file;
pub(crate) use parallel_reader::visitors_max;
pub use parallel_reader::{ParallelReader, ReadFile, Visitor};
pub use partitions::Partitions;
pub use uncounted::Uncounted;
pub use writer::CaptureWriter;
