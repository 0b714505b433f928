//! Rules: what is counted, by whom, and what follows. They are validated when they are read; the fold trusts them.

mod detection;
mod rule;

pub use detection::{Detection, FieldTest, Operator};
pub use rule::{AbuseRules, Baseline, Correlation, Exception, GroupBy, Ladder, Level, Mode, Ratio, Rule, Step};
