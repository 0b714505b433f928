//! Parses simple commands and redirections.

use std::cell::OnceCell;
use std::rc::Rc;

use super::cursor::Pending;
use super::words::Place;
use super::{Argument, Command, Fault, Kind, Parser, Part, Redirect, RedirectKind, Simple, Word};

impl Parser<'_> {
    /// Parses assignments, words and redirections in any order, or a function's definition.
    pub(super) fn simple(&mut self) -> Result<Command, Fault> {
        let (mut simple, mut redirects) = (Simple::default(), Vec::new());
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            let word = self.word(Place::Command)?;
            if word.parts.is_empty() {
                break;
            }
            // `{NAME}>file` assigns a descriptor to the variable, which is not looked into.
            let is_name = |text: &str| text.starts_with('{') && text.ends_with('}') && text.len() > 2 && !text.contains(',');
            if word.bare().is_some_and(is_name) && matches!(self.peek(), Some(b'<' | b'>')) {
                return Err(Fault::Syntax);
            }
            if let Some(assignment) = self.assignment(&word)? {
                if simple.words.is_empty() {
                    simple.assignments.push(assignment);
                } else {
                    simple.words.push(Argument::Assignment(assignment));
                }
                continue;
            }
            let is_first = simple.words.is_empty() && simple.assignments.is_empty() && redirects.is_empty();
            self.skip_blanks();
            if is_first && self.eat(b'(') {
                return match self.closes() {
                    true => Ok(Command { kind: self.function()?, redirects }),
                    false => Err(Fault::Syntax),
                };
            }
            simple.words.push(Argument::Word(word));
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && redirects.is_empty() {
            return Err(Fault::Syntax);
        }
        Ok(Command { kind: Kind::Simple(simple), redirects })
    }

    /// Parses a redirection, if one comes next.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, Fault> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let is_process = matches!(self.peek(), Some(b'<' | b'>')) && self.peek_second() == Some(b'(');
        // Longer operators stand before their beginnings.
        let operators: [(&[u8], RedirectKind); 11] = [
            (b"&>>", RedirectKind::Write),
            (b"&>", RedirectKind::Write),
            (b"<<<", RedirectKind::String),
            (b"<<", RedirectKind::Document),
            (b"<>", RedirectKind::Write),
            (b"<&", RedirectKind::DuplicateInput),
            (b">&", RedirectKind::Duplicate),
            (b">>", RedirectKind::Write),
            (b">|", RedirectKind::Write),
            (b">", RedirectKind::Write),
            (b"<", RedirectKind::Read),
        ];
        let found = operators.into_iter().find(|(operator, _)| !is_process && self.eat_all(operator));
        let Some((_, kind)) = found else {
            self.at = start;
            return Ok(None);
        };
        let strip_tabs = kind == RedirectKind::Document && self.eat(b'-');
        self.skip_blanks();
        let target_start = self.at;
        let target = self.word(Place::Command)?;
        if target.parts.is_empty() {
            return Err(Fault::Syntax);
        }
        let kind = match (kind, target.bare()) {
            (RedirectKind::Duplicate | RedirectKind::DuplicateInput, Some(to))
                if to.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') =>
            {
                kind
            }
            // `>& file` writes both outputs to the file; what `$x` stands for is not known.
            (RedirectKind::Duplicate | RedirectKind::DuplicateInput, _) => RedirectKind::Write,
            _ => kind,
        };
        if kind == RedirectKind::Document {
            return self.document_redirect(&target, target_start, strip_tabs).map(Some);
        }
        Ok(Some(Redirect { kind, target, document: Rc::default() }))
    }

    /// Notes a here-document; its body takes the place of the delimiter when it has been read.
    fn document_redirect(&mut self, target: &Word, start: usize, strip_tabs: bool) -> Result<Redirect, Fault> {
        let mut delimiter = String::new();
        let mut quoted = self.slice(start, self.at)?.contains(['\'', '"', '\\']);
        for part in &target.parts {
            match part {
                Part::Bare(text) => delimiter.push_str(text),
                Part::Quoted(text) => {
                    quoted = true;
                    delimiter.push_str(text);
                }
                _ => return Err(Fault::Syntax),
            }
        }
        let document = Rc::new(OnceCell::new());
        self.pending.push(Pending { body: Rc::clone(&document), delimiter, quoted, strip_tabs });
        Ok(Redirect { kind: RedirectKind::Document, target: target.clone(), document })
    }
}
