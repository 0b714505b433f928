//! Parses what follows a dollar sign: parameters, substitutions, arithmetic.

use super::cursor::is_name;
use super::{Fault, List, Parser, Part, Word};

impl Parser<'_> {
    /// Parses the part behind a dollar sign; `quoted` if it stands in double quotes.
    pub(super) fn dollar(&mut self, quoted: bool, word: &mut Word) -> Result<(), Fault> {
        match self.peek() {
            Some(b'(') => {
                if self.peek_second() == Some(b'(') && self.is_arithmetic() {
                    self.eat_all(b"((");
                    let inner = self.arithmetic(b')')?;
                    self.expect(b')')?;
                    word.parts.push(Part::Arithmetic(inner));
                } else {
                    self.bump();
                    let list = self.substituted()?;
                    word.parts.push(Part::Substitution { list, quoted });
                }
            }
            Some(b'[') => {
                self.bump();
                let inner = self.arithmetic(b']')?;
                word.parts.push(Part::Arithmetic(inner));
            }
            Some(b'{') => {
                self.bump();
                self.braced(quoted, word)?;
            }
            Some(b'\'') if !quoted => {
                self.bump();
                self.ansi_quoted(word)?;
            }
            // `$"…"` is a string in the user's language: the dollar sign changes nothing here.
            Some(b'"') if !quoted => {
                self.bump();
                self.double_quoted(word)?;
            }
            Some(byte) if is_name(byte) && !byte.is_ascii_digit() => {
                let name = self.name();
                word.parts.push(plain(name, quoted));
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.bump();
                word.parts.push(plain(char::from(byte).to_string(), quoted));
            }
            _ => word.parts.push(Part::Quoted("$".to_owned())),
        }
        Ok(())
    }

    /// Takes a variable's name, which may be empty.
    pub(super) fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(byte) = self.peek().filter(|byte| is_name(*byte)) {
            name.push(char::from(byte));
            self.at += 1;
        }
        name
    }

    /// Parses the commands up to a closing parenthesis, and the parenthesis.
    pub(super) fn substituted(&mut self) -> Result<List, Fault> {
        self.enter()?;
        // A here-document that waits outside would otherwise take its body at a newline in here.
        let outer = std::mem::take(&mut self.pending);
        let start = self.at;
        let list = self.list(&[])?;
        self.expect(b')')?;
        let has_newline = self.text.as_bytes().get(start..self.at).is_some_and(|bytes| bytes.contains(&b'\n'));
        if !self.pending.is_empty() || (has_newline && !outer.is_empty()) {
            return Err(Fault::Syntax);
        }
        self.pending = outer;
        self.leave();
        Ok(list)
    }

    /// Returns whether `((`, which comes next, is closed by `))`: then it is arithmetic, and else a subshell in a substitution or group.
    pub(super) fn is_arithmetic(&self) -> bool {
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        let mut at = self.at;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 1,
                b'\'' | b'"' | b'`' => match closing_quote(bytes, at) {
                    Some(end) => at = end,
                    None => return false,
                },
                b'(' => depth += 1,
                b')' => {
                    depth = depth.saturating_sub(1);
                    if depth == 1 {
                        return bytes.get(at + 1) == Some(&b')');
                    }
                }
                _ => {}
            }
            at += 1;
        }
        false
    }

    /// Parses the expansions of an arithmetic expression up to the byte that closes it, and the byte.
    pub(super) fn arithmetic(&mut self, close: u8) -> Result<Word, Fault> {
        self.enter()?;
        let open = if close == b')' { b'(' } else { b'[' };
        let mut word = Word::default();
        let mut depth = 0_usize;
        let start = self.at;
        loop {
            let byte = self.peek().ok_or(Fault::Syntax)?;
            let end = self.at;
            self.bump();
            match byte {
                b'$' => self.dollar(true, &mut word)?,
                b'`' => self.backtick(true, &mut word)?,
                b'"' => self.double_quoted(&mut word)?,
                b'\\' => self.at += 1,
                b'\n' if !self.pending.is_empty() => return Err(Fault::Syntax),
                _ if byte == open => depth += 1,
                _ if byte == close && depth == 0 => {
                    self.leave();
                    word.parts.push(Part::Evaluated(self.slice(start, end)?.to_owned()));
                    return Ok(word);
                }
                _ if byte == close => depth -= 1,
                _ => {}
            }
        }
    }

    /// Parses the rest of `${…}`.
    fn braced(&mut self, quoted: bool, word: &mut Word) -> Result<(), Fault> {
        self.enter()?;
        // `${ command; }` and `${| command; }` of bash 5.3 are not looked into.
        if matches!(self.peek(), None | Some(b' ' | b'\t' | b'\n' | b'|' | b'(')) {
            return Err(Fault::Syntax);
        }
        let (mut modified, mut indirect) = (false, false);
        let starts_name = |byte: Option<u8>| byte.is_some_and(|byte| is_name(byte) || b"@*?-$!#".contains(&byte));
        if matches!(self.peek(), Some(b'!' | b'#')) && starts_name(self.peek_second()) {
            modified = true;
            indirect = self.peek() == Some(b'!');
            self.bump();
        }
        let mut name = self.name();
        if name.is_empty() {
            let special = self.peek().filter(|byte| b"@*#?-$!".contains(byte)).ok_or(Fault::Syntax)?;
            name.push(char::from(special));
            self.bump();
        }
        let mut inner = Word::default();
        let _ = self.peek();
        let start = self.at;
        if self.peek() != Some(b'}') {
            modified = true;
            self.brace_body(quoted, &mut inner)?;
        }
        let body = self.slice(start, self.at)?.replace("\\\n", "");
        self.expect(b'}')?;
        self.leave();
        if indirect && !matches!(body.as_str(), "@" | "*" | "[@]" | "[*]") {
            inner.parts.push(Part::Evaluated(name.clone()));
        }
        inner.parts.extend(evaluated(&body).map(|text| Part::Evaluated(text.to_owned())));
        let unsubscripted = body.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(body.as_str(), |(_, rest)| rest);
        let assigns = unsubscripted.strip_prefix(":=").or_else(|| unsubscripted.strip_prefix('=')).map(str::to_owned);
        word.parts.push(Part::Parameter { name, modified, assigns, prompt: body.ends_with("@P"), inner, quoted });
        Ok(())
    }

    /// Parses the inside of `${…}` up to the brace that closes it.
    ///
    /// In double quotes single quotes still pair, so that no brace between them closes anything. In a default they are text, and what
    /// stands between them is expanded; in a pattern it is not. Here it is taken as expanded in both.
    fn brace_body(&mut self, quoted: bool, inner: &mut Word) -> Result<(), Fault> {
        loop {
            let byte = self.peek().ok_or(Fault::Syntax)?;
            if byte == b'}' {
                return Ok(());
            }
            self.bump();
            match byte {
                b'\'' => {
                    let rest = self.slice(self.at, self.text.len())?;
                    let (text, _) = rest.split_once('\'').ok_or(Fault::Syntax)?;
                    self.at += text.len() + 1;
                    if quoted {
                        inner.parts.extend(super::parse_document(text, self.depth + 1)?.parts);
                    }
                }
                b'"' => self.double_quoted(inner)?,
                b'$' => self.dollar(quoted, inner)?,
                b'`' => self.backtick(quoted, inner)?,
                b'\\' => self.at += 1,
                b'<' | b'>' if !quoted && self.eat(b'(') => {
                    let list = self.substituted()?;
                    inner.parts.push(Part::Process(list));
                }
                b'\n' if !self.pending.is_empty() => return Err(Fault::Syntax),
                _ => {}
            }
        }
    }
}

/// Returns what is evaluated as arithmetic behind a parameter's name: a subscript, an offset.
fn evaluated(body: &str) -> Option<&str> {
    let is_all = body.starts_with("[@]") || body.starts_with("[*]");
    if body.starts_with('[') && !is_all {
        return Some(body);
    }
    let rest = if is_all { body.get(3..)? } else { body };
    rest.strip_prefix(':').filter(|rest| !rest.starts_with(['-', '=', '?', '+']))
}

/// Returns a parameter that nothing modifies.
fn plain(name: String, quoted: bool) -> Part {
    Part::Parameter { name, modified: false, assigns: None, prompt: false, inner: Word::default(), quoted }
}

/// Returns the position of the quote that closes the one at this position.
fn closing_quote(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = *bytes.get(start)?;
    let mut at = start + 1;
    loop {
        let byte = *bytes.get(at)?;
        if byte == quote {
            return Some(at);
        }
        at += if byte == b'\\' && quote != b'\'' { 2 } else { 1 };
    }
}
