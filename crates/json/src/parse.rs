//! Parsing: an iterative parser for Python's JSON dialect, from text to a table of nodes.

use super::error::{SyntaxError, SyntaxErrorKind};
use super::find::next_stop;
use super::value::{Kind, Node, Value};
use super::{INTEGER_DIGITS_MAX, VALUES_MAX};

/// A reusable parser. It keeps its node table between calls, so that a worker allocates only for its largest event.
#[derive(Debug, Default)]
pub struct Parser {
    nodes: Vec<Node>,
    open: Vec<u32>,
    /// A text that was made for the parser alone.
    text: Vec<u8>,
}

/// About how many bytes of text there are for each value, in events and arguments.
const BYTES_PER_NODE: usize = 24;

/// How many nodes a table keeps room for, whatever it has read: 1 MiB. Every partition has a table, and one event must not swell it for
/// good.
const NODES_KEPT: usize = 65_536;

impl Parser {
    /// Returns a parser with an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one JSON value that spans the whole of `text`, except for white space around it. At most `depth_max` containers may be open at
    /// once. `text` should be UTF-8: bytes from 0x80 up are accepted as they are inside strings and refused elsewhere.
    ///
    /// # Errors
    /// [`SyntaxError`] names the first byte that is not JSON as Python's `json.loads` reads it.
    pub fn parse<'d>(&'d mut self, text: &'d [u8], depth_max: usize) -> Result<Value<'d>, SyntaxError> {
        read(&mut self.nodes, &mut self.open, text, depth_max)?;
        Ok(Value::new(text, &self.nodes, 0))
    }

    /// Reads a text as [`Parser::parse`] does, and keeps it as long as its values are in use.
    pub fn parse_owned(&mut self, text: Vec<u8>, depth_max: usize) -> Result<Value<'_>, SyntaxError> {
        self.text = text;
        read(&mut self.nodes, &mut self.open, &self.text, depth_max)?;
        Ok(Value::new(&self.text, &self.nodes, 0))
    }
}

/// Reads a text into the table.
fn read(nodes: &mut Vec<Node>, open: &mut Vec<u32>, text: &[u8], depth_max: usize) -> Result<(), SyntaxError> {
    nodes.clear();
    open.clear();
    if u32::try_from(text.len()).is_err() {
        return Err(SyntaxError { at: 0, kind: SyntaxErrorKind::TooLong });
    }
    let expected = text.len() / BYTES_PER_NODE;
    if nodes.capacity() > NODES_KEPT && expected < NODES_KEPT {
        nodes.shrink_to(NODES_KEPT);
    }
    // Growing the table step by step would copy it each time.
    nodes.reserve(expected);
    // Most texts contain no control characters, because their line breaks are escapes, and one pass without branches settles it for all
    // strings.
    let has_controls = text.iter().fold(false, |found, byte| found | (*byte < 0x20));
    Scan { text, at: 0, nodes, open, depth_max, has_controls }.document()
}

struct Scan<'p, 'd> {
    text: &'d [u8],
    at: usize,
    nodes: &'p mut Vec<Node>,
    open: &'p mut Vec<u32>,
    depth_max: usize,
    /// Whether the text contains control characters anywhere, be it between its values.
    has_controls: bool,
}

type Scanned<T> = Result<T, SyntaxError>;

/// The container that a value begins, if it is none that has ended already.
#[derive(Clone, Copy)]
enum Begun {
    Nothing,
    Array,
    Object,
}

impl<'d> Scan<'_, 'd> {
    /// Reads values until the outermost one has ended. The program's own branches hold where in the grammar it is.
    fn document(mut self) -> Scanned<()> {
        loop {
            self.skip_space();
            match self.value()? {
                Begun::Array if self.is_next(b']') => self.close(),
                Begun::Array => continue,
                Begun::Object if self.is_next(b'}') => self.close(),
                Begun::Object => {
                    self.key()?;
                    continue;
                }
                Begun::Nothing => {}
            }
            if self.is_over()? {
                return Ok(());
            }
        }
    }

    /// Reads what stands behind a value: the ends of containers, and a comma with the key behind it. Returns whether the text has ended.
    fn is_over(&mut self) -> Scanned<bool> {
        loop {
            self.skip_space();
            let Some(container) = self.innermost() else {
                return if self.at == self.text.len() { Ok(true) } else { Err(self.error(SyntaxErrorKind::TrailingText)) };
            };
            match (self.peek(), container) {
                // Between two commas there are few values: one at each depth, and its key.
                (Some(b','), _) if self.nodes.len() >= VALUES_MAX => return Err(self.error(SyntaxErrorKind::TooManyValues)),
                (Some(b','), Kind::Object) => {
                    self.at += 1;
                    self.skip_space();
                    return self.key().map(|()| false);
                }
                (Some(b','), _) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(b'}'), Kind::Object) | (Some(b']'), Kind::Array) => self.close(),
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn value(&mut self) -> Scanned<Begun> {
        let leaf = match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => return self.open(Kind::Object).map(|()| Begun::Object),
            Some(b'[') => return self.open(Kind::Array).map(|()| Begun::Array),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.literal(b"null", Kind::Null),
            Some(b't') => self.literal(b"true", Kind::True),
            Some(b'f') => self.literal(b"false", Kind::False),
            Some(b'N') => self.literal(b"NaN", Kind::Float),
            Some(b'I') => self.literal(b"Infinity", Kind::Float),
            _ => Err(self.unexpected()),
        };
        leaf.map(|()| Begun::Nothing)
    }

    /// Reads a key and the colon behind it.
    fn key(&mut self) -> Scanned<()> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn open(&mut self, kind: Kind) -> Scanned<()> {
        if self.open.len() >= self.depth_max {
            return Err(self.error(SyntaxErrorKind::TooDeep));
        }
        let index = self.next_index();
        self.open.push(index);
        // `end` and `next` are filled in when the container closes.
        self.nodes.push(Node { kind, start: offset(self.at), end: 0, next: 0 });
        self.at += 1;
        Ok(())
    }

    /// Closes the innermost container, at whose end the cursor is.
    fn close(&mut self) {
        self.at += 1;
        let next = self.next_index();
        if let Some(node) = self.open.pop().and_then(|index| self.nodes.get_mut(index as usize)) {
            node.end = offset(self.at);
            node.next = next;
        }
    }

    fn innermost(&self) -> Option<Kind> {
        self.open.last().and_then(|index| self.nodes.get(*index as usize)).map(|node| node.kind)
    }

    fn literal(&mut self, word: &[u8], kind: Kind) -> Scanned<()> {
        if !self.rest().starts_with(word) {
            return Err(self.unexpected());
        }
        let start = self.at;
        self.at += word.len();
        self.leaf(kind, start, self.at);
        Ok(())
    }

    fn string(&mut self) -> Scanned<()> {
        self.at += 1;
        let start = self.at;
        let mut kind = Kind::Text;
        loop {
            let Some((run, is_quote)) = next_stop(self.rest()) else {
                self.at = self.text.len();
                return Err(self.error(SyntaxErrorKind::UnexpectedEnd));
            };
            if self.has_controls {
                self.check_controls(run)?;
            }
            self.at += run;
            if is_quote {
                self.leaf(kind, start, self.at);
                self.at += 1;
                return Ok(());
            }
            kind = Kind::EscapedText;
            self.escape()?;
        }
    }

    /// Checks that no control character is among so many bytes of a string. It is kept out of the way of most texts.
    #[inline(never)]
    fn check_controls(&mut self, run: usize) -> Scanned<()> {
        let Some(control) = self.rest().iter().take(run).position(|byte| *byte < 0x20) else { return Ok(()) };
        self.at += control;
        Err(self.error(SyntaxErrorKind::ControlCharacter))
    }

    /// Checks the escape at the cursor, which is on the backslash, and moves behind it.
    fn escape(&mut self) -> Scanned<()> {
        let rest = self.rest();
        let length = match rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => match rest.get(2..6) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => 6,
                Some(_) => return Err(self.error(SyntaxErrorKind::UnknownEscape)),
                None => return Err(self.error(SyntaxErrorKind::UnexpectedEnd)),
            },
            Some(_) => return Err(self.error(SyntaxErrorKind::UnknownEscape)),
            None => return Err(self.error(SyntaxErrorKind::UnexpectedEnd)),
        };
        self.at += length;
        Ok(())
    }

    fn number(&mut self) -> Scanned<()> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.rest().starts_with(b"Infinity") {
                self.at += b"Infinity".len();
                self.leaf(Kind::Float, start, self.at);
                return Ok(());
            }
        }
        let digits = match self.peek() {
            Some(b'0') => {
                self.at += 1;
                1
            }
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.unexpected()),
        };
        let mut kind = Kind::Integer;
        if self.peek() == Some(b'.') && self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
            self.digits();
            kind = Kind::Float;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.text.get(self.at + 1), Some(b'+' | b'-')));
            if self.text.get(self.at + 1 + sign).is_some_and(u8::is_ascii_digit) {
                self.at += 1 + sign;
                self.digits();
                kind = Kind::Float;
            }
        }
        if kind == Kind::Integer && digits > INTEGER_DIGITS_MAX {
            self.at = start;
            return Err(self.error(SyntaxErrorKind::IntegerTooLong));
        }
        self.leaf(kind, start, self.at);
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn leaf(&mut self, kind: Kind, start: usize, end: usize) {
        let next = self.next_index() + 1;
        self.nodes.push(Node { kind, start: offset(start), end: offset(end), next });
    }

    fn next_index(&self) -> u32 {
        offset(self.nodes.len())
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Returns whether this byte comes next, behind white space.
    fn is_next(&mut self, byte: u8) -> bool {
        self.skip_space();
        self.peek() == Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &'d [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn unexpected(&self) -> SyntaxError {
        self.error(if self.at < self.text.len() { SyntaxErrorKind::UnexpectedCharacter } else { SyntaxErrorKind::UnexpectedEnd })
    }

    fn error(&self, kind: SyntaxErrorKind) -> SyntaxError {
        SyntaxError { at: self.at, kind }
    }
}

/// Returns an offset as a `u32`. The text is shorter than 4 GiB (checked on entry) and a node covers at least one byte of it, so this never
/// saturates.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(text: &str) -> Option<SyntaxErrorKind> {
        Parser::new().parse(text.as_bytes(), 1_024).err().map(|error| error.kind)
    }

    #[test]
    fn accepts_what_python_accepts() {
        for text in ["NaN", "-Infinity", "Infinity", " [1 , 2]\n", "\"\\ud800\"", "{\"a\":1,\"a\":2}", "1e400", "-0", "{}", "[]"] {
            assert_eq!(kind_of(text), None, "{text}");
        }
    }

    #[test]
    fn refuses_what_python_refuses() {
        let bad =
            ["", "01", "1.", ".5", "+1", "-", "[1,]", "{\"a\":1,}", "nul", "{1:2}", "\u{feff}{}", "[1 2]", "1e", "\"\\x\"", "\"\\u12g4\""];
        for text in bad {
            assert!(kind_of(text).is_some(), "{text}");
        }
        assert_eq!(kind_of("\"a\tb\""), Some(SyntaxErrorKind::ControlCharacter));
        assert_eq!(kind_of("{} x"), Some(SyntaxErrorKind::TrailingText));
        assert_eq!(kind_of("[\"a"), Some(SyntaxErrorKind::UnexpectedEnd));
    }

    #[test]
    fn integers_end_at_4300_digits_but_floats_do_not() {
        assert_eq!(kind_of(&"9".repeat(4_300)), None);
        assert_eq!(kind_of(&"9".repeat(4_301)), Some(SyntaxErrorKind::IntegerTooLong));
        assert_eq!(kind_of(&format!("{}.0", "9".repeat(4_301))), None);
    }

    #[test]
    fn a_text_holds_half_a_million_values_and_no_more() {
        let list = |items: usize| format!("[{}0]", "0,".repeat(items - 1));
        assert_eq!(kind_of(&list(VALUES_MAX - 1)), None);
        assert_eq!(kind_of(&list(VALUES_MAX)), Some(SyntaxErrorKind::TooManyValues));
        let object = |members: usize| format!("{{{}\"\":0}}", "\"\":0,".repeat(members - 1));
        assert_eq!((kind_of(&object(249_999)), kind_of(&object(250_001))), (None, Some(SyntaxErrorKind::TooManyValues)));
    }

    #[test]
    fn a_table_that_was_swollen_once_shrinks_again() {
        let mut parser = Parser::new();
        parser.parse(format!("[{}0]", "0,".repeat(400_000)).as_bytes(), 8).unwrap();
        assert!(parser.nodes.capacity() > 400_000);
        parser.parse(b"[0]", 8).unwrap();
        assert!(parser.nodes.capacity() <= 2 * NODES_KEPT, "{}", parser.nodes.capacity());
    }

    #[test]
    fn nesting_is_bounded_and_never_overflows() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(kind_of(&nested(991)), None);
        assert_eq!(kind_of(&nested(1_024)), None);
        assert_eq!(kind_of(&nested(1_025)), Some(SyntaxErrorKind::TooDeep));
        assert_eq!(kind_of(&"[".repeat(1_000_000)), Some(SyntaxErrorKind::TooDeep));
    }
}
