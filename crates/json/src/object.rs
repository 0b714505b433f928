//! Writing a JSON object member by member.

use super::text::write_text;

/// A JSON object that is being appended to a buffer, with its members in the order of the calls.
#[derive(Debug)]
pub struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> ObjectWriter<'o> {
    /// Writes the beginning of an object.
    pub fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// Writes a member's name, which must need no escapes, and returns the buffer for its value.
    pub fn member(&mut self, name: &'static str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if std::mem::replace(&mut self.is_empty, false) { b"\"" } else { b",\"" });
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Writes a member that is a string.
    pub fn text(&mut self, name: &'static str, text: &str) {
        write_text(text.as_bytes(), self.member(name));
    }

    /// Writes a member that is a string which needs no escapes, given in parts.
    pub fn plain(&mut self, name: &'static str, parts: &[&[u8]]) {
        let out = self.member(name);
        out.push(b'"');
        parts.iter().for_each(|part| out.extend_from_slice(part));
        out.push(b'"');
    }

    /// Writes a member that is a boolean.
    pub fn flag(&mut self, name: &'static str, flag: bool) {
        self.member(name).extend_from_slice(if flag { b"true" } else { b"false" });
    }

    /// Writes a member that is a number.
    pub fn number(&mut self, name: &'static str, number: u32) {
        self.member(name).extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Writes the end of the object.
    pub fn end(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_written_as_serde_json_writes_them() {
        let text: String = ('\0'..'\u{80}').chain("é😀\u{2028}".chars()).collect();
        let mut out = Vec::new();
        let mut object = ObjectWriter::begin(&mut out);
        object.text("text", &text);
        object.plain("plain", &[b"sha256:", b"00"]);
        object.flag("flag", true);
        object.number("number", u32::MAX);
        ObjectWriter::begin(object.member("object")).end();
        object.end();
        let expected = format!(
            "{{\"text\":{},\"plain\":\"sha256:00\",\"flag\":true,\"number\":4294967295,\"object\":{{}}}}",
            serde_json::Value::from(text)
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
