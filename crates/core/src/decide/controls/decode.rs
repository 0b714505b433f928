//! Decoding control records: a record gives a control, or a rejection that says what to mend. Decoding is strict: what a value says of
//! itself must agree with its key.

use std::sync::Arc;

use super::fields::Fields;
use super::record::{Control, ControlId};
use super::rejection::{ControlRejection, ControlRejectionCode as Code};
use tollgate_json::{Parser, SyntaxErrorKind, Value};

/// The largest value, in bytes.
pub const CONTROL_BYTES_MAX: usize = 1 << 20;
/// How many containers may be open at once.
const DEPTH_MAX: usize = 64;
const OBJECT_FIX: &str = "write one JSON object, or null to remove the control";

/// Decodes a control record from its key and value. A null value removes the control.
///
/// # Errors
/// [`ControlRejection`] for the first rule that the record breaks. What then counts in its place says [`in_force`](super::in_force()).
pub fn decode(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Control, ControlRejection> {
    let id = ControlId::read(key)?;
    let mut parser = Parser::new();
    let fields =
        value.filter(|_| !matches!(id, ControlId::Note(_))).map(|text| read_value(text, &mut parser).and_then(Fields::of)).transpose()?;
    if let Some(fields) = &fields {
        fields.check_type(&id)?;
    }
    Ok(match id {
        ControlId::Passport(agent_id) => {
            let passport = fields.map(|fields| fields.passport(&agent_id).map(Arc::new)).transpose()?;
            Control::Passport(agent_id, passport.map(Ok))
        }
        ControlId::Subject(kind, hash) => {
            let state = fields.map(|fields| fields.subject(kind, &hash)).transpose()?;
            Control::Subject(kind, hash, state)
        }
        ControlId::Abuse(kind, hash) => {
            let suspended = fields.map(|fields| fields.abuse(kind, &hash)).transpose()?;
            Control::Abuse(kind, hash, suspended.map(Ok))
        }
        ControlId::Note(_) => Control::Note,
    })
}

/// Reads JSON text into one object.
pub(super) fn read_value<'d>(text: &'d [u8], parser: &'d mut Parser) -> Result<Value<'d>, ControlRejection> {
    let rejection = |code, found| ControlRejection::new(code, "value", found, OBJECT_FIX);
    if text.is_empty() {
        return Err(rejection(Code::ValueEmpty, "0 bytes".to_owned()));
    }
    if text.len() > CONTROL_BYTES_MAX {
        return Err(ControlRejection::new(Code::ValueTooLarge, "value", format!("{} bytes", text.len()), "write at most 1 MiB"));
    }
    if let Err(error) = std::str::from_utf8(text) {
        let found = format!("{} bytes, not UTF-8 from byte {} on", text.len(), error.valid_up_to());
        return Err(rejection(Code::ValueNotUtf8, found));
    }
    let root = parser.parse(text, DEPTH_MAX).map_err(|error| {
        let code = if error.kind == SyntaxErrorKind::TooDeep { Code::ValueTooDeep } else { Code::ValueNotJson };
        rejection(code, format!("{} bytes, {error}", text.len()))
    })?;
    if !root.is_object() {
        return Err(rejection(Code::ValueNotAnObject, root.shape().to_string()));
    }
    Ok(root)
}
