//! The cursor over the text: characters, blanks, comments, line continuations, and here-documents that are still to be read.

use std::cell::OnceCell;
use std::rc::Rc;

use super::{DEPTH_MAX, Fault, Word};

/// A here-document whose body follows the current line.
#[derive(Debug)]
pub(super) struct Pending {
    /// Where its body belongs.
    pub body: Rc<OnceCell<Word>>,
    /// The line that ends it.
    pub delimiter: String,
    /// Whether a part of the delimiter was quoted, so that nothing in the body is expanded.
    pub quoted: bool,
    /// Whether leading tabs are removed: `<<-`.
    pub strip_tabs: bool,
}

/// The parser: its position in the text, and what is still to be read. The other files of this folder add what it parses.
#[derive(Debug)]
pub struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) pending: Vec<Pending>,
}

/// Returns whether the byte ends a word.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}

/// Returns whether the byte can stand in a variable's name.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'a> Parser<'a> {
    /// Returns a parser of a text that stands at this depth already.
    #[must_use]
    pub fn new(text: &'a str, depth: usize) -> Self {
        Self { text, at: 0, depth, pending: Vec::new() }
    }

    /// Enters a construct; every success is paired with [`Self::leave`].
    pub(super) fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(Fault::Depth) } else { Ok(()) }
    }

    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Returns the byte at an offset, without regard to line continuations.
    pub(super) fn raw(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    /// Returns the next byte. A backslash before a newline is removed wherever it is not in single quotes, in the middle of a word too.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while self.raw(0) == Some(b'\\') && self.raw(1) == Some(b'\n') {
            self.at += 2;
        }
        self.raw(0)
    }

    /// Returns the byte behind the next one.
    pub(super) fn peek_second(&mut self) -> Option<u8> {
        self.peek()?;
        let mut offset = 1;
        while self.raw(offset) == Some(b'\\') && self.raw(offset + 1) == Some(b'\n') {
            offset += 2;
        }
        self.raw(offset)
    }

    /// Takes the next byte, which the caller has seen.
    pub(super) fn bump(&mut self) {
        let _ = self.peek();
        self.at += 1;
    }

    /// Takes the byte if it is the next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.at += 1;
        }
        is_next
    }

    /// Takes the bytes if they are the next.
    pub(super) fn eat_all(&mut self, bytes: &[u8]) -> bool {
        let start = self.at;
        let all = bytes.iter().all(|byte| self.eat(*byte));
        if !all {
            self.at = start;
        }
        all
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.eat(byte) { Ok(()) } else { Err(Fault::Syntax) }
    }

    /// Returns the text between two positions, both of which lie beside an ASCII byte.
    pub(super) fn slice(&self, start: usize, end: usize) -> Result<&'a str, Fault> {
        self.text.get(start..end).ok_or(Fault::Syntax)
    }

    /// Skips blanks and a comment.
    pub(super) fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.at += 1;
        }
        if self.raw(0) == Some(b'#') {
            while self.raw(0).is_some_and(|byte| byte != b'\n') {
                self.at += 1;
            }
        }
    }

    /// Skips blanks, comments and newlines.
    pub(super) fn skip_lines(&mut self) -> Result<(), Fault> {
        loop {
            self.skip_blanks();
            if self.raw(0) != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    /// Takes a newline and the here-documents that it was waiting for.
    pub(super) fn newline(&mut self) -> Result<(), Fault> {
        self.expect(b'\n')?;
        for pending in std::mem::take(&mut self.pending) {
            let body = self.document_text(&pending)?;
            let word = if pending.quoted {
                Word { parts: vec![super::Part::Quoted(body)] }
            } else {
                Parser::new(&body, self.depth + 1).document()?
            };
            let _ = pending.body.set(word);
        }
        Ok(())
    }

    /// Returns the lines up to the delimiter or the end of the text.
    fn document_text(&mut self, pending: &Pending) -> Result<String, Fault> {
        let mut body = String::new();
        // Where the line that is read starts in the body: continued lines are joined before they are compared.
        let mut start = 0;
        loop {
            let rest = self.slice(self.at, self.text.len())?;
            if rest.is_empty() {
                let last = body.get(start..).unwrap_or_default();
                if last == pending.delimiter {
                    body.truncate(start);
                }
                return Ok(body);
            }
            let (line, taken) = rest.split_once('\n').map_or((rest, rest.len()), |(line, _)| (line, line.len() + 1));
            self.at += taken;
            let line = if pending.strip_tabs && start == body.len() { line.trim_start_matches('\t') } else { line };
            body.push_str(line);
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            if !pending.quoted && backslashes % 2 == 1 && taken > line.len() {
                body.pop();
                continue;
            }
            if body.get(start..) == Some(pending.delimiter.as_str()) {
                body.truncate(start);
                return Ok(body);
            }
            body.push('\n');
            start = body.len();
        }
    }
}
