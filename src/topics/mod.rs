//! The topics of Tollgate: one table, and what follows from it.
//!
//! | module | what |
//! |---|---|
//! | `spec` | what can be said of a topic |
//! | `table` | the table: every topic by its role |
//! | `create` | what to create, and how |
//! | `judge` | what has to be true of the topics before a worker joins |
//! | `document` | the table for people |
//!
//! Pure: whoever asks the brokers brings what it found. A topic is added by one entry of the table.

mod create;
mod document;
mod judge;
mod spec;
mod table;

pub use create::{NewTopic, to_create};
pub use document::{defaults, page};
pub use judge::{Limits, TopicFault, judge_partitions, judge_settings};
pub use spec::{Carries, Cleanup, PartitionRule, Party, Topic, TopicSpec};
pub use table::{TOPICS, TopicRole, TopicSettings};
