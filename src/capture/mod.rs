//! Captured traffic: records in files, and deciding on them in this process, without Kafka.
//!
//! ```text
//! file ─▶ input ─▶ lines ─▶ formats ─▶ record ─▶ decider ─▶ verdict
//! ```
//!
//! `eval`, `diff`, `test` and `replay` read records here, so that a file means the same to all of them.

mod contents;
mod decider;
mod envelope;
mod fleet;
mod formats;
mod input;
mod lines;
mod order;
mod partitions;
mod sweep;
mod uncounted;
mod writer;

pub(crate) use contents::{Contents, LastLine, contents};
pub(crate) use decider::{Decider, conclude, unreadable_header};
pub(crate) use envelope::write_envelope;
pub(crate) use fleet::{Fleet, Follower};
pub(crate) use formats::{Captured, Column, Format, LineFault, Reader, unreadable_from_here};
pub(crate) use input::{Input, open};
pub(crate) use lines::{Line, read_line};
pub(crate) use order::Order;
pub(crate) use partitions::Partitions;
pub(crate) use sweep::{Sweep, Swept, Visitor, visitors_max};
pub(crate) use uncounted::Uncounted;
pub(crate) use writer::CaptureWriter;
