//! Deciding on the records of a file: verdicts in the order of the file, or one digest over all verdicts, made on all cores.

mod cut_turns;
mod digest;
mod evaluation;
mod folding;
mod sinks;

use crate::LineFault;

pub use cut_turns::CutTurns;
pub use digest::{Digested, digest};
pub use evaluation::{Counting, Evaluated, Evaluation};
pub use folding::fold;
pub use sinks::Sinks;

/// Takes the fault of a line, with the line's number, as soon as the line was read.
pub type Report<'r> = &'r mut dyn FnMut(u64, &LineFault) -> anyhow::Result<()>;
