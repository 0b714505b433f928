//! Replacing parts of a JSON text at their places, while every other byte stays as it is.

use std::ops::Range;

/// Replacements of parts of one text. They may be given in any order.
#[derive(Debug)]
pub struct Splice<'d> {
    text: &'d [u8],
    edits: Vec<(Range<usize>, Vec<u8>)>,
}

/// Two replacements that overlap, or one that reaches beyond the text: what they would give is not defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the replacement at bytes {start} to {end} overlaps another one, or reaches beyond the text; replace each part once")]
pub struct SpliceError {
    /// The first byte of the part that was to be replaced.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
}

impl<'d> Splice<'d> {
    /// Returns a splice of `text` without replacements.
    #[must_use]
    pub fn of(text: &'d [u8]) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// Replaces the bytes at `place` ([`Value::place`](super::Value::place)) by `with`. An empty place inserts. What replaces the text of a
    /// string has to be escaped already, and brings no quotes.
    pub fn replace(&mut self, place: Range<usize>, with: impl Into<Vec<u8>>) {
        self.edits.push((place, with.into()));
    }

    /// Appends the text with its replacements to `out`.
    ///
    /// # Errors
    /// [`SpliceError`] names the first replacement that overlaps one before it or reaches beyond the text. Nothing is appended then.
    pub fn write(mut self, out: &mut Vec<u8>) -> Result<(), SpliceError> {
        // The sort is stable: insertions at one place stay in the order in which they were given, ahead of what replaces the bytes there.
        self.edits.sort_by_key(|(place, _)| (place.start, place.end));
        let length_before = out.len();
        let mut copied = 0;
        for (place, with) in &self.edits {
            let Some(before) = self.text.get(copied..place.start).filter(|_| (place.start..=self.text.len()).contains(&place.end)) else {
                out.truncate(length_before);
                return Err(SpliceError { start: place.start, end: place.end });
            };
            out.extend_from_slice(before);
            out.extend_from_slice(with);
            copied = place.end;
        }
        out.extend_from_slice(self.text.get(copied..).unwrap_or_default());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Parser;
    use super::*;

    fn spliced(text: &str, edits: &[(Range<usize>, &str)]) -> Result<String, SpliceError> {
        let mut splice = Splice::of(text.as_bytes());
        edits.iter().for_each(|(place, with)| splice.replace(place.clone(), *with));
        let mut out = b"> ".to_vec();
        let written = splice.write(&mut out);
        assert!(written.is_ok() || out == b"> ", "nothing is left of a splice that failed");
        written.map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn values_are_replaced_at_their_places_in_any_order() {
        let text = r#" {"a" : "x\n", "b":[1, {"c":null}],"a":"y"} "#;
        let mut parser = Parser::new();
        let root = parser.parse(text.as_bytes(), 8).unwrap();
        let place = |name: &str| root.get(name).unwrap().place();
        let (name, _) = root.members().next().unwrap();
        assert_eq!(text.get(place("b")).unwrap(), r#"[1, {"c":null}]"#);
        let edits = [(place("a"), "longer"), (place("b"), "0"), (name.place(), ""), (2..2, "\"new\":1,")];
        assert_eq!(spliced(text, &edits).unwrap(), r#">  {"new":1,"" : "x\n", "b":0,"a":"longer"} "#);
        assert_eq!(spliced(text, &[]).unwrap(), format!("> {text}"));
    }

    #[test]
    fn insertions_at_one_place_keep_their_order_and_come_before_what_replaces_it() {
        assert_eq!(spliced("ab", &[(1..2, "X"), (1..1, "1"), (1..1, "2"), (2..2, "3")]).unwrap(), "> a12X3");
    }

    #[test]
    fn what_overlaps_or_reaches_beyond_the_text_is_refused() {
        assert_eq!(spliced("abcd", &[(2..4, "x"), (1..3, "y")]), Err(SpliceError { start: 2, end: 4 }));
        assert_eq!(spliced("abcd", &[(3..5, "x")]), Err(SpliceError { start: 3, end: 5 }));
        assert_eq!(spliced("abcd", &[(5..5, "x")]), Err(SpliceError { start: 5, end: 5 }));
        assert_eq!(spliced("abcd", &[(Range { start: 2, end: 1 }, "x")]), Err(SpliceError { start: 2, end: 1 }));
    }
}
