//! Rules: what is counted, by whom, and what follows. They are validated when they are read; the fold trusts them.
//!
//! ```text
//! section `abuse` ─▶ settings ─▶ pack ─┐
//!                        └─▶ each rule ─┴─▶ detection, correlation, ladder, exceptions ─▶ rules in force, each with its version
//! ```

mod digest;
mod fields;
mod pack;
mod read_correlation;
mod read_detection;
mod read_rule;
mod read_values;
mod refused;
mod rule;
mod schema;
mod settings;

pub use fields::fields_of;
pub use pack::{PACK, Pack};
pub use rule::{
    AbuseRules, Baseline, Correlation, Detection, Exception, FieldTest, GroupBy, Ladder, Level, Mode, Operator, Ratio, Rule, Step,
};
pub use schema::add_abuse_rules;
pub use settings::{AbuseSettings, RULES_MAX};
