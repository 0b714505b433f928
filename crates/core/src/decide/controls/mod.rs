//! Controls: what operators and the abuse stage have switched for the whole fleet. A control is in force for every partition at once.
//!
//! Records of the compacted topic `agent.controls` set passports by agent, and suspend or exempt subjects. All partition processors of a
//! process read one shared table. A record that cannot be read suspends its subject, or denies every call of its agent.
//!
//! ```text
//! record ─▶ decode (key and value agree) ─▶ table ◀─ suspension(event), passport(agent) ─ partition processors
//!                   └─▶ rejection: code, field, shape, fix; the strictest control of the key in its place
//! ```

mod by_partition;
mod change;
mod decode;
mod fields;
mod in_force;
mod keyed;
mod line;
mod recent;
mod record;
mod rejection;
mod schema;
mod subject;
mod switches;
mod table;
mod uncommitted;

pub use change::{Change, Effect};
pub use decode::{CONTROL_BYTES_MAX, decode};
pub use in_force::in_force;
pub use record::{
    AGENT_ID_BYTES_MAX, AbuseSuspension, AgentPassport, Control, ControlId, HISTORY, HoldsUntil, REASON_BYTES_MAX, RULE_BYTES_MAX,
    SubjectState,
};
pub use rejection::{ControlRejection, ControlRejectionCode};
pub use schema::schema;
pub use subject::{Subject, SubjectHasher};
pub use table::Controls;
