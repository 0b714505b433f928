//! Reading a control record from a line of JSON, `{"key": "…", "value": {…} | null}`, for `tollgate eval --controls`.

use super::record::read_value;
use super::rejection::{ControlRejection, ControlRejectionCode as Code};
use super::{Change, Controls};
use tollgate_json::{Parser, Text, Value};

const KEY_FIX: &str = "write the record's key as a string";
const VALUE_FIX: &str = "write the record's value as an object, or null to remove the control";

impl Controls {
    /// Applies a control record that is written as a line of JSON. The value may also be a string that holds the record's text, as captures
    /// of topics have it. Other fields are ignored.
    ///
    /// # Errors
    /// [`ControlRejection`] for a line of another form, and for a record that [`Controls::apply`] refuses.
    pub fn apply_line(&self, line: &[u8]) -> Result<Change, ControlRejection> {
        let mut parser = Parser::new();
        let root = read_value(line, &mut parser)?;
        let key = text(field(root, "key")?, Code::KeyMissing, "key", KEY_FIX)?;
        let missing = || ControlRejection::new(Code::ValueEmpty, "value", "nothing", VALUE_FIX);
        let value = field(root, "value")?.ok_or_else(missing)?;
        if value.is_null() {
            return self.apply(Some(key.as_bytes()), None);
        }
        if value.is_object() {
            return self.apply(Some(key.as_bytes()), Some(value.source()));
        }
        let value = text(Some(value), Code::ValueNotAnObject, "value", VALUE_FIX)?;
        self.apply(Some(key.as_bytes()), Some(value.as_bytes()))
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

fn text<'d>(value: Option<Value<'d>>, code: Code, field: &'static str, fix: &'static str) -> Result<Text<'d>, ControlRejection> {
    let found = || value.map_or_else(|| "nothing".to_owned(), |value| value.shape().to_string());
    value.and_then(|value| value.as_text()).ok_or_else(|| ControlRejection::new(code, field, found(), fix))
}
