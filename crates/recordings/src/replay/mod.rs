//! What a replay sends of the records of a source, and when.
//!
//! ```text
//! source ─▶ rewrite (copies, times) ─▶ schedule ─▶ the caller sends
//!                                                  │             │
//!                                    progress ◀────┘             └──▶ awaited verdicts
//! ```

mod awaiting;
mod overview;
mod pace;
mod progress;
mod rewrite;
mod source;

pub use awaiting::{Awaiting, Percentiles, Times};
pub use overview::Overview;
pub use pace::{Pace, Schedule, read_rate, read_speed};
pub use progress::{Place, Progress, ProgressFile, Tracker};
pub use rewrite::{Ready, Rewriter};
pub use source::{FaultReport, FileOptions, FileSource, Item, Source, check_file, unreadable_header};
