//! What loop controllers make of recorded runs: which threads they warn, refuse and halt, and what that would have cut off.
//!
//! A recorded run goes on whatever a controller says, so its results show what a refused call would have brought.

mod conversation;
#[cfg(test)]
mod corpus_tests;
mod report;
mod side;

pub use conversation::{Conversation, Verdict, conversation};
pub use report::{LoopReport, Row, ThreadRow, read_labels};
pub use side::{Explained, Explainer, Outcome};
