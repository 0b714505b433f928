//! The abuse stage: it counts signals by subject over the whole fleet, raises alerts, and suspends for a while whom a rule catches.
//!
//! It is a pure fold of one partition of the signals topic. It reads no clock: time comes from the signals.
//!
//! ```text
//! signals ─▶ known already? late? ─▶ rules: does it match? ─▶ window ─▶ firing ─▶ ladder ─▶ alert, control
//! clocks  ─▶ partition's time ─▶ what is over, what is due
//! ```

mod outcome;
mod rules;
mod stage;
mod state;

pub use outcome::{AlertRecord, ControlRecord, FoldCounts, Folded, RuleCounts};
pub use rules::{
    AbuseRules, AbuseSettings, Baseline, Correlation, Detection, Exception, FieldTest, GroupBy, Ladder, Level, Mode, Operator, PACK, Pack,
    RULE_ID_BYTES_MAX, RULES_MAX, Ratio, Rule, Step, THRESHOLD_MAX, TIMESPAN_MS_MAX, add_abuse_rules,
};
pub use stage::{Abuse, Warming};
pub use state::AbuseState;
