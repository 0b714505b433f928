//! Verdicts as they come: reading the decisions topic from a place on, and lines for people.

mod line;
mod reader;

pub(super) use line::Line;
pub(super) use reader::{Start, Verdict, VerdictReader};
