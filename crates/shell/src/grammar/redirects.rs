//! Redirections.

use super::cursor::{Document, Parser};
use super::tree::{Access, Redirect};
use super::words::ends_word;
use super::{Construct, Refusal};

impl Parser<'_> {
    /// Returns whether a redirection begins here, at the beginning of a word.
    pub(super) fn is_redirect(&self) -> bool {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let is_process = digits == 0 && self.rest().starts_with("<(");
        matches!(self.peek_at(digits), Some(b'<' | b'>')) && !is_process
    }

    /// Reads a redirection.
    pub(super) fn redirect(&mut self) -> Result<Redirect, Refusal> {
        if !self.before().is_none_or(|before| b" \t\n;&|".contains(&before)) {
            return Err(self.refuse(Construct::Redirection));
        }
        let rest = self.rest();
        let is = |operator: &str| rest.starts_with(operator);
        if ["<(", ">("].iter().any(|operator| is(operator)) {
            return Err(self.refuse(Construct::Process));
        }
        if is("<<") {
            return self.here_document();
        }
        if let Some(joined) = ["2>&1", "1>&2", ">&2", ">&1"].into_iter().find(|joined| is(joined)) {
            self.at += joined.len();
            return if ends_word(self.peek()) { Ok(Redirect::Joined) } else { Err(self.refuse(Construct::Redirection)) };
        }
        let (operator, access) = match rest.as_bytes() {
            [b'<', ..] => ("<", Access::Read),
            [b'1' | b'2', b'>', b'>', ..] => ("2>>", Access::Write),
            [b'1' | b'2', b'>', ..] => ("2>", Access::Write),
            [b'>', b'>', ..] => (">>", Access::Write),
            [b'>', ..] => (">", Access::Write),
            _ => return Err(self.refuse(Construct::Redirection)),
        };
        self.at += operator.len();
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        // To zsh `<1-5>` is a glob and `>!` an operator, and `>&word` is read in several ways.
        let begins = self.peek().is_some_and(|byte| byte.is_ascii_alphabetic() || b"_./~'\"$".contains(&byte));
        if !begins {
            let is_process = operator == "<" && self.rest().starts_with("<(");
            return Err(self.refuse(if is_process { Construct::ProcessInput } else { Construct::Redirection }));
        }
        let target = self.word()?;
        Ok(Redirect::File { access, target })
    }

    /// Reads `<<'EOF'` or `<<EOF`. Its body follows behind the end of this line.
    fn here_document(&mut self) -> Result<Redirect, Refusal> {
        let at = self.at;
        if self.rest().starts_with("<<<") || self.rest().starts_with("<<-") {
            let is_string = self.rest().starts_with("<<<");
            return Err(self.refuse(if is_string { Construct::HereString } else { Construct::Redirection }));
        }
        self.at += 2;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let quoted = matches!(self.peek(), Some(b'\'' | b'"'));
        let delimiter = if quoted || !self.takes_bare { self.delimiter()? } else { self.bare_delimiter()? };
        self.documents.push(Document { delimiter, quoted, at });
        self.document_count += 1;
        Ok(Redirect::Document((self.document_count - 1).to_string()))
    }
}
