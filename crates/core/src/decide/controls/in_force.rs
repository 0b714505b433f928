//! What counts of a control record, readable or not.
//!
//! A record permits only what it is proven to permit. One whose key names a control and whose value cannot be read is in force as the
//! strictest control of its key. So what holds for a key depends on its last record alone, and a worker that reads a compacted topic decides as
//! one that has read every record.

use super::decode::decode;
use super::record::{AbuseSuspension, Control, ControlId, HoldsUntil, SubjectState};
use super::rejection::{ControlRejection, ControlRejectionCode as Code};
use tollgate_passport::PassportFault;

/// Returns the control that is in force by a record, with the rejection of a record that cannot be read. Its subject is then suspended without
/// end, or every call of its agent denied, until a record that can be read, or null, follows under the same key.
///
/// # Errors
/// [`ControlRejection`] for a key that names no control. Such a record changes nothing.
pub fn in_force(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<(Control, Option<ControlRejection>), ControlRejection> {
    match decode(key, value) {
        Ok(control) => Ok((control, None)),
        Err(rejection) => Ok((Control::strictest(ControlId::read(key)?, &rejection), Some(rejection))),
    }
}

impl HoldsUntil {
    /// Returns until when a suspension by the abuse stage holds, or by a record that cannot be read, and the reason that the agent is told.
    pub(super) fn of_stage(said: Result<AbuseSuspension, Code>) -> Self {
        let (reason, until_ms) = match said {
            Ok(suspended) => (format!("abuse rule {}", suspended.rule), Some(suspended.until_ms)),
            Err(code) => (format!("its control record cannot be read ({})", code.as_str()), None),
        };
        Self { reason: Some(reason), until_ms }
    }
}

impl Control {
    /// Returns the strictest control of a key, which stands in place of a record that was refused.
    pub(super) fn strictest(id: ControlId, rejection: &ControlRejection) -> Self {
        let code = rejection.code;
        match id {
            ControlId::Passport(agent_id) => Self::Passport(agent_id, Some(Err(PassportFault::Record { code: code.as_str() }))),
            ControlId::Subject(kind, hash) => {
                let suspended = SubjectState::Suspended(HoldsUntil::of_stage(Err(code)));
                Self::Subject(kind, hash, Some(suspended))
            }
            ControlId::Abuse(kind, hash) => Self::Abuse(kind, hash, Some(Err(code))),
            ControlId::Note(_) => Self::Note,
        }
    }
}
