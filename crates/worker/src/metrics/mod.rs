//! The metrics: one list of them, and the handles that the worker counts with.
//!
//! | module | what |
//! |---|---|
//! | `list` | every metric: field, name, labels, help, and when to raise an alert |
//! | `define` | the macros that turn the list into fields, registration and a catalogue |
//! | `series` | the series of one partition or member, which are removed with their last holder |
//! | `stages` | the metrics of further stages of the process, under a label of their own |
//! | `bounded` | labels that others choose, bounded in number |
//! | `values` | the values that each label may have |
//! | `process` | what is said of the process itself |
//! | `document` | the documentation page |

mod bounded;
mod define;
mod document;
mod list;
mod process;
mod series;
mod stages;
mod values;

pub use bounded::BoundedLabel;
pub(crate) use bounded::TOOLS_MAX;
pub use define::{Kind, MetricsError, Spec};
pub use document::page;
pub use list::{CATALOG, MemberMetrics, Metrics, PartitionMetrics};
pub use process::{PROCESS, VERSION};
pub use series::{Labelled, Series};
pub use stages::{ABUSE, STAGED};
pub use values::{Values, values};
