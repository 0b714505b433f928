//! Quotes: single ones, in which everything is literal, and double ones with the few expansions that are in the grammar.

use super::cursor::Parser;
use super::tree::{List, Piece, Word};
use super::words::ends_word;
use super::{Construct, Refusal};

impl<'t> Parser<'t> {
    /// Reads `'…'`.
    pub(super) fn single_quotes(&mut self, word: &mut Word) -> Result<(), Refusal> {
        let Some(text) = self.rest().get(1..).and_then(|rest| rest.split_once('\'')).map(|(text, _)| text) else {
            return Err(self.refuse(Construct::Incomplete));
        };
        self.literal(text)?;
        word.push_quoted(text);
        self.at += text.len() + 2;
        Ok(())
    }

    /// Checks text that stands for itself. It may not go over the end of a line behind which a here-document begins.
    fn literal(&self, text: &str) -> Result<(), Refusal> {
        if !self.documents.is_empty() && text.contains('\n') {
            return Err(self.refuse(Construct::DocumentPlace));
        }
        let is_strange = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
        if text.contains(is_strange) { Err(self.refuse(Construct::Control)) } else { Ok(()) }
    }

    /// Reads `"…"`.
    pub(super) fn double_quotes(&mut self, word: &mut Word) -> Result<(), Refusal> {
        let start = self.at;
        self.at += 1;
        // An empty pair of quotes is a word too.
        word.push("");
        loop {
            let rest = self.rest();
            let run = rest.bytes().position(|byte| b"\"$\\`!".contains(&byte));
            let Some(run) = run else { return Err(Refusal { construct: Construct::Incomplete, at: start }) };
            let text = rest.get(..run).unwrap_or_default();
            self.literal(text)?;
            if !text.is_empty() {
                word.push_quoted(text);
            }
            self.at += run;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'$') => self.dollar(word, true)?,
                Some(b'\\') => self.quoted_escape(word)?,
                // A shell that is used interactively reads `!x` as a command of its history.
                Some(b'!') if matches!(self.peek_at(1), Some(b' ' | b'\t' | b'\n' | b'=' | b'"')) => {
                    self.at += 1;
                    word.push("!");
                }
                // Of `!: ` it makes an error.
                Some(b'!') if self.rest().starts_with("!: ") => {
                    self.at += 1;
                    word.push("!");
                }
                Some(b'!') => return Err(self.refuse(Construct::History)),
                _ => return Err(self.refuse(Construct::Backtick)),
            }
        }
    }

    /// Reads a backslash inside double quotes, which quotes only what means something there.
    fn quoted_escape(&mut self, word: &mut Word) -> Result<(), Refusal> {
        match self.peek_at(1) {
            Some(byte @ (b'"' | b'\\' | b'$' | b'`')) => {
                self.at += 2;
                word.push_quoted(char::from(byte).encode_utf8(&mut [0; 4]));
            }
            Some(b'\n') => return Err(self.refuse(Construct::Continuation)),
            _ => {
                self.at += 1;
                word.push_quoted("\\");
            }
        }
        Ok(())
    }

    /// Reads `$(…)`.
    pub(super) fn substitution(&mut self, word: &mut Word, quoted: bool) -> Result<(), Refusal> {
        let list = self.commands()?;
        word.pieces.push(Piece::Output { list, quoted });
        Ok(())
    }

    /// Reads the commands of `$(…)` or `<(…)`.
    pub(super) fn commands(&mut self) -> Result<List, Refusal> {
        let start = self.at;
        if !self.documents.is_empty() {
            return Err(self.refuse(Construct::DocumentPlace));
        }
        let outer = std::mem::replace(&mut self.in_substitution, true);
        let list = self.deeper(|parser| {
            parser.at += 2;
            parser.list(&[])
        })?;
        self.in_substitution = outer;
        if !self.documents.is_empty() {
            return Err(self.refuse(Construct::DocumentPlace));
        }
        if self.peek() != Some(b')') {
            return Err(if self.peek().is_none() {
                Refusal { construct: Construct::Incomplete, at: start }
            } else {
                self.refuse(Construct::Unexpected)
            });
        }
        if list.is_empty() {
            return Err(Refusal { construct: Construct::Incomplete, at: start });
        }
        self.at += 1;
        Ok(list)
    }

    /// Reads the delimiter of a here-document that is not quoted.
    pub(super) fn bare_delimiter(&mut self) -> Result<&'t str, Refusal> {
        let length = self.rest().bytes().take_while(u8::is_ascii_alphanumeric).count();
        let name = self.rest().get(..length).unwrap_or_default();
        if name.is_empty() || !ends_word(self.peek_at(length)) {
            return Err(self.refuse(Construct::Document));
        }
        self.at += length;
        Ok(name)
    }

    /// Reads the quoted delimiter of a here-document.
    pub(super) fn delimiter(&mut self) -> Result<&'t str, Refusal> {
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"')).ok_or(self.refuse(Construct::Document))?;
        let rest = self.rest().get(1..).unwrap_or_default();
        let name = rest.split(|char: char| !char.is_ascii_alphanumeric() && char != '_').next().unwrap_or_default();
        self.at += 1 + name.len();
        if name.is_empty() || self.peek() != Some(quote) || !ends_word(self.peek_at(1)) {
            return Err(self.refuse(Construct::Document));
        }
        self.at += 1;
        Ok(name)
    }
}
