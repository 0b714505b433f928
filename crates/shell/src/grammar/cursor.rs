//! Where the parser stands in the text: blanks, line ends, comments, and the here-documents that begin at the next line.

use super::tree::{List, Redirect};
use super::{Construct, Refusal};

/// A parser of one text.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) depth: usize,
    /// Whether the delimiter of a here-document may stand without quotes.
    pub(super) takes_bare: bool,
    /// Whether this is inside `"$(…)"`.
    pub(super) in_substitution: bool,
    /// The here-documents whose bodies begin at the next line.
    pub(super) documents: Vec<Document<'t>>,
    /// The bodies that have been read, in the order of their operators.
    pub(super) bodies: Vec<&'t str>,
    /// How many operators for here-documents there have been.
    pub(super) document_count: usize,
}

/// A here-document that has been announced.
pub(super) struct Document<'t> {
    pub(super) delimiter: &'t str,
    /// Whether the delimiter is quoted, so that nothing in the body is expanded.
    pub(super) quoted: bool,
    pub(super) at: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, depth: usize, takes_bare: bool) -> Self {
        let (documents, bodies) = (Vec::new(), Vec::new());
        Self { text, at: 0, depth, takes_bare, in_substitution: false, documents, bodies, document_count: 0 }
    }

    /// Reads the whole text.
    pub(super) fn line(mut self) -> Result<List, Refusal> {
        if let Some(at) = self.text.find('\0') {
            return Err(Refusal { construct: Construct::Control, at });
        }
        let mut list = self.list(&[])?;
        if self.peek().is_some() {
            return Err(self.refuse(Construct::Unexpected));
        }
        if let Some(document) = self.documents.first() {
            return Err(Refusal { construct: Construct::Incomplete, at: document.at });
        }
        super::commands::each_redirect(&mut list, &mut |redirect| {
            if let Redirect::Document(text) = redirect {
                let body = text.parse().ok().and_then(|number: usize| self.bodies.get(number));
                *text = body.copied().unwrap_or_default().to_owned();
            }
        });
        Ok(list)
    }

    pub(super) fn refuse(&self, construct: Construct) -> Refusal {
        Refusal { construct, at: self.at }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    pub(super) fn before(&self) -> Option<u8> {
        self.at.checked_sub(1).and_then(|at| self.text.as_bytes().get(at)).copied()
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Goes one construct deeper.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Refusal>) -> Result<T, Refusal> {
        if self.depth >= super::DEPTH_MAX {
            return Err(self.refuse(Construct::TooDeep));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks, joined lines, and a comment up to the end of its line.
    pub(super) fn blanks(&mut self) -> Result<(), Refusal> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.join_lines()?,
                Some(b'#') if self.in_substitution => return Err(self.refuse(Construct::Comment)),
                Some(b'#') => {
                    let comment = self.rest().split('\n').next().unwrap_or_default();
                    if let Some(control) = comment.find(|char: char| char.is_control() && char != '\t') {
                        self.at += control;
                        return Err(self.refuse(Construct::Control));
                    }
                    self.at += comment.len();
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips a backslash at the end of a line. It stands between words only, so that it never joins two into one.
    fn join_lines(&mut self) -> Result<(), Refusal> {
        let is_between = self.before().is_none_or(|before| matches!(before, b' ' | b'\t' | b'\n'));
        if !is_between || !self.documents.is_empty() || self.peek_at(2) == Some(b'#') {
            return Err(self.refuse(Construct::Continuation));
        }
        self.at += 2;
        Ok(())
    }

    /// Skips blanks, comments and line ends, and reads the here-documents that begin behind a line end.
    pub(super) fn lines(&mut self) -> Result<(), Refusal> {
        loop {
            self.blanks()?;
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            for document in std::mem::take(&mut self.documents) {
                self.document(&document)?;
            }
        }
    }

    /// Skips the body of a here-document, with its delimiter.
    fn document(&mut self, document: &Document<'t>) -> Result<(), Refusal> {
        let start = self.at;
        for line in self.rest().split_inclusive('\n') {
            if line.strip_suffix('\n').unwrap_or(line) == document.delimiter {
                // Without these characters a body is the same whether its delimiter is quoted or not.
                let body = self.text.get(start..self.at).unwrap_or_default();
                if !document.quoted && body.contains(['$', '`', '\\']) {
                    return Err(Refusal { construct: Construct::Document, at: document.at });
                }
                self.bodies.push(body);
                self.at += document.delimiter.len();
                if self.peek() == Some(b'\n') {
                    self.at += 1;
                }
                return Ok(());
            }
            // Inside `$(…)` some versions of bash end it at a line that only begins so.
            if self.in_substitution && line.starts_with(document.delimiter) {
                return Err(self.refuse(Construct::DocumentPlace));
            }
            self.at += line.len();
        }
        Err(Refusal { construct: Construct::Incomplete, at: document.at })
    }
}
