//! Splits inputs of several parts: lines `name: value`, an empty line, and then the rest, so that a corpus can be written by hand.

/// The lines of an input and the rest behind them.
pub(crate) struct Head<'i> {
    /// Names and values of the lines, in order; a line without a colon has no value.
    pub(crate) lines: Vec<(&'i [u8], Option<&'i [u8]>)>,
    /// The text behind the empty line; the whole input where there is none.
    pub(crate) rest: &'i [u8],
}

impl<'i> Head<'i> {
    pub(crate) fn read(input: &'i [u8]) -> Self {
        let Some(end) = input.windows(2).position(|pair| pair == b"\n\n") else { return Self { lines: Vec::new(), rest: input } };
        let (head, rest) = input.split_at(end);
        Self { lines: head.split(|byte| *byte == b'\n').map(line).collect(), rest: rest.get(2..).unwrap_or_default() }
    }

    /// Returns the values of all lines of this name.
    pub(crate) fn values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'i [u8]> + 's {
        self.lines.iter().filter(move |(found, _)| *found == name.as_bytes()).filter_map(|(_, value)| *value)
    }
}

fn line(line: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return (line, None) };
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default();
    (name, Some(value.strip_prefix(b" ").unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_the_rest_are_told_apart() {
        let head = Head::read(b"key: t\nempty:\nnone\nkey:u: v\n\nthe rest\n\nand more");
        let expected: [(&[u8], Option<&[u8]>); 4] = [(b"key", Some(b"t")), (b"empty", Some(b"")), (b"none", None), (b"key", Some(b"u: v"))];
        assert_eq!(head.lines, expected);
        assert_eq!(head.rest, b"the rest\n\nand more");
        assert_eq!(head.values("key").collect::<Vec<_>>(), [b"t".as_slice(), b"u: v"]);
        let whole = Head::read(b"key: t\nthe rest");
        assert!(whole.lines.is_empty());
        assert_eq!(whole.rest, b"key: t\nthe rest");
    }
}
