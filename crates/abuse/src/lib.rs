//! The abuse stage: it counts signals by subject over the whole fleet, raises alerts, and suspends for a while whom a rule catches.
//!
//! It is a pure fold of one partition of the signals topic. It reads no clock: time comes from the signals.
//!
//! ```text
//! signals ─▶ known already? late? ─▶ rules: does it match? ─▶ window ─▶ firing ─▶ ladder ─▶ alert, control
//! clocks  ─▶ partition's time ─▶ what is over, what is due
//! ```

mod alert;
mod blast_radius;
mod clock;
mod control;
mod entry;
mod firing;
mod fold;
mod grouping;
mod ladder;
mod merge;
mod outcome;
mod program;
mod requests;
mod rule_changes;
mod rules;
mod sources;
mod stage;
mod state;
mod subjects;
mod time_units;
mod view;
mod warm_up;
mod window;

pub use alert::{Action, Status};
pub use entry::Entry;
pub use outcome::{AlertRecord, ControlRecord, Firing, FoldCounts, Folded, RuleCounts};
pub use rules::{
    AbuseRules, AbuseSettings, Baseline, Correlation, Detection, Exception, FieldTest, GroupBy, Ladder, Level, Mode, Operator, PACK, Pack,
    RULE_ID_BYTES_MAX, RULES_MAX, Ratio, Rule, Step, THRESHOLD_MAX, TIMESPAN_MS_MAX, add_abuse_rules, fields_of,
};
pub use stage::Abuse;
pub use state::AbuseState;
pub use view::{CounterView, SubjectView};
pub use warm_up::WarmUp;
