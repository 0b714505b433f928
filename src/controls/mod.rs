//! Controls: what operators have switched for the whole fleet, in force for every partition at once.
//!
//! Records of the compacted topic `agent.controls` set passports by agent and suspend subjects. Every lane of a process reads one shared
//! table; a record that cannot be read changes nothing in it.
//!
//! ```text
//! record ─▶ decode (key and value agree) ─▶ table ◀─ suspension(event), passport(agent) ─ lanes
//!                   └─▶ rejection: code, field, shape, fix
//! ```

mod line;
mod recent;
mod record;
mod rejection;
mod subject;
mod table;

pub use record::{AGENT_ID_BYTES_MAX, CONTROL_BYTES_MAX, Control, ControlId, REASON_BYTES_MAX, SuspendedUntil, decode};
pub use rejection::{ControlRejection, ControlRejectionCode};
pub use subject::{Subject, SubjectHasher, SubjectKind, parse_hash};
pub use table::{Change, Controls, Effect};

/// A subject's suspension, as a verdict tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// What is suspended.
    pub kind: SubjectKind,
    /// Why, in the operator's words.
    pub reason: Option<String>,
}

impl Suspension {
    /// The sentence of the verdict.
    #[must_use]
    pub fn message(&self) -> String {
        let kind = self.kind.as_str();
        match &self.reason {
            Some(reason) => format!("The {kind} is suspended: {reason}"),
            None => format!("The {kind} is suspended."),
        }
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.reason.as_ref().map_or(0, String::len)
    }
}
