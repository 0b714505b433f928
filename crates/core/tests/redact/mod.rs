//! Redaction: verdicts stay the same, equal things stay equal and different ones different, and nothing of the contents is left.

mod contents;
mod leaks;
mod verdicts;
