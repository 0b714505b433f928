//! Metrics: one list of them, and the handles that the worker counts with.
//!
//! | module | what |
//! |---|---|
//! | `list` | every metric: field, name, labels, help, and what to alert on |
//! | `define` | what makes fields, registration and catalogue of the list |
//! | `series` | the series of one partition or member, which go with their last holder |
//! | `document` | the list for people |

mod define;
mod document;
mod list;
mod series;

pub use define::{Kind, MetricsError, Spec};
pub use document::page;
pub use list::{CATALOG, MemberMetrics, Metrics, PartitionMetrics};
pub use series::{Labelled, Series};
