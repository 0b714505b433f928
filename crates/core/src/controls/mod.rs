//! Controls: what operators have switched for the whole fleet. A control is in force for every partition at once.
//!
//! Records of the compacted topic `agent.controls` set passports by agent and suspend subjects. All partition processors of a process read
//! one shared table. A record that cannot be read changes nothing in it.
//!
//! ```text
//! record ─▶ decode (key and value agree) ─▶ table ◀─ suspension(event), passport(agent) ─ partition processors
//!                   └─▶ rejection: code, field, shape, fix
//! ```

mod line;
mod recent;
mod record;
mod rejection;
mod schema;
mod subject;
mod table;

pub use record::{AGENT_ID_BYTES_MAX, CONTROL_BYTES_MAX, Control, ControlId, REASON_BYTES_MAX, SuspendedUntil, decode};
pub use rejection::{ControlRejection, ControlRejectionCode};
pub use schema::schema;
pub use subject::{Subject, SubjectHasher, parse_hash};
pub use table::{Change, Controls, Effect};
