//! The metrics: one list of them, and the handles that the worker counts with.
//!
//! | module | what |
//! |---|---|
//! | `list` | every metric: field, name, labels, help, and when to raise an alert |
//! | `define` | the macros that turn the list into fields, registration and a catalogue |
//! | `series` | the series of one partition or member, which are removed with their last holder |
//! | `process` | what is said of the process itself |
//! | `document` | the documentation page |

mod define;
mod document;
mod list;
mod process;
mod series;

pub use define::{Kind, MetricsError, Spec};
pub use document::page;
pub use list::{CATALOG, MemberMetrics, Metrics, PartitionMetrics};
pub use process::{PROCESS, REVISION, VERSION};
pub use series::{Labelled, Series};
