//! Reading a control record from a line of JSON, `{"key": "…", "value": {…} | null}`, for `tollgate eval --controls`.

use super::decode::read_value;
use super::record::{Control, ControlId};
use super::rejection::{ControlRejection, ControlRejectionCode as Code};
use super::{Change, Controls};
use crate::event::record::Partition;
use tollgate_json::{Parser, Value};

const KEY_FIX: &str = "write the record's key as a string";
const VALUE_FIX: &str = "write the record's value as an object, or null to remove the control";

impl Controls {
    /// Applies a control record that is written as a line of JSON. The value may also be a string that holds the record's text, as captures
    /// of topics have it. Other fields are ignored.
    ///
    /// # Errors
    /// [`ControlRejection`] for a line of another form, and for a record that [`Controls::apply`] refuses. If the key can be read, the strictest
    /// control of it is then in force.
    pub fn apply_line(&self, line: &[u8]) -> Result<Change, ControlRejection> {
        let mut parser = Parser::new();
        let root = read_value(line, &mut parser)?;
        let key = field(root, "key")?;
        let found = || key.map_or_else(|| "nothing".to_owned(), |key| key.shape().to_string());
        let missing = || ControlRejection::new(Code::KeyMissing, "key", found(), KEY_FIX);
        let key = key.and_then(|key| key.as_text()).ok_or_else(missing)?;
        let nothing = || ControlRejection::new(Code::ValueEmpty, "value", "nothing", VALUE_FIX);
        match field(root, "value").and_then(|value| value.ok_or_else(nothing)) {
            Ok(value) if value.is_null() => self.apply(Some(key.as_bytes()), None),
            Ok(value) => match value.as_text() {
                Some(text) => self.apply(Some(key.as_bytes()), Some(text.as_bytes())),
                None => self.apply(Some(key.as_bytes()), Some(value.source())),
            },
            Err(rejection) => {
                self.set(Partition(0), Control::strictest(ControlId::read(Some(key.as_bytes()))?, &rejection));
                Err(rejection)
            }
        }
    }
}

fn field<'d>(root: Value<'d>, name: &'static str) -> Result<Option<Value<'d>>, ControlRejection> {
    let mut found = root.members().filter(|(key, _)| key.is_text(name)).map(|(_, value)| value);
    let first = found.next();
    if found.next().is_some() {
        return Err(ControlRejection::new(Code::FieldRepeated, name, "the field more than once", "write each field once"));
    }
    Ok(first)
}
