//! The abuse stage: it counts signals by subject over the whole fleet, raises alerts, and suspends for a while whom a rule catches.
//!
//! It is a pure fold of one partition of the signals topic. It reads no clock: time comes from the signals.
//!
//! ```text
//! signals ─▶ known already? late? ─▶ rules: does it match? ─▶ window ─▶ firing ─▶ ladder ─▶ alert, control
//! clocks  ─▶ partition's time ─▶ what is over, what is due
//! ```

mod alerts;
mod counters;
mod outcome;
mod program;
mod rules;
mod stage;
mod state;
mod subjects;
mod time_units;
mod view;
mod warm_up;
mod window;

pub use outcome::{Action, AlertRecord, ControlRecord, Firing, FoldCounts, Folded, RuleCounts, Status};
pub use rules::{
    AbuseRules, AbuseSettings, Baseline, Correlation, Detection, Exception, FieldTest, GroupBy, Ladder, Level, Mode, Operator, PACK, Pack,
    RULES_MAX, Ratio, Rule, Step, add_abuse_rules, fields_of,
};
pub use stage::Abuse;
pub use state::AbuseState;
pub use state::entry::Entry;
pub use view::{CounterView, SubjectView};
pub use warm_up::WarmUp;
