//! The topics of Tollgate: one table of them, and all that is derived from it.
//!
//! | module | what |
//! |---|---|
//! | `spec` | the properties of a topic |
//! | `table` | the table: every topic by its role |
//! | `create` | how a topic is created without further wishes |
//! | `plan` | what there is to create or to change, from what was found and what is asked for |
//! | `faults` | the rules of the table that a topic does not meet |
//! | `requirements` | what the topics must meet before a worker joins |
//! | `document` | the table for people |
//!
//! These modules are pure: the caller asks the brokers and passes what it found. A topic is added by one entry of the table.

mod create;
mod document;
mod faults;
mod plan;
mod requirements;
mod spec;
mod table;

pub use create::{NewTopic, to_create};
pub use document::{BEGIN, END, defaults, tables};
pub use plan::{Change, Refusal, Surroundings, TopicPlan, TopicWishes, plan};
pub use requirements::{Limits, PartitionCounts, TopicFault, check_partitions, check_settings};
pub use spec::{Carries, Cleanup, FoundTopic, Needed, PartitionRule, Party, Topic, TopicSpec};
pub use table::{TOPICS, TopicRole, TopicSettings};
