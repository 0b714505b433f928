//! Words: bare characters, escapes, quotes, globs, tildes and the few expansions that are in the grammar.

use super::cursor::Parser;
use super::tree::{Piece, Trim, Word};
use super::{Construct, Refusal};

/// Returns whether a character stands for itself outside quotes, wherever it stands in a word.
fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./,:@%+]".contains(&byte)
}

/// Returns whether a word ends in front of this character.
pub(super) fn ends_word(byte: Option<u8>) -> bool {
    byte.is_none_or(|byte| b" \t\n;&|)".contains(&byte))
}

/// Returns the braces of a revision that a text begins with, as in `@{u}` and `HEAD@{1}`: without a comma and dots they are text to every shell.
fn revision(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('{')?.split('}').next()?;
    let is_plain = !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    text.get(..inner.len() + 2).filter(|text| is_plain && text.ends_with('}'))
}

/// Reads what stands behind a name up to the brace: what is taken away from the value, and how many bytes say so.
fn trim(text: &str) -> Option<(Trim, usize)> {
    let (operator, _) = text.split_once('}')?;
    let is_plain = |end: &str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let trim = match (operator, operator.strip_prefix('%')) {
        ("", _) => Trim::Nothing,
        ("##*/", _) => Trim::Folders,
        (_, Some(end)) if is_plain(end) => Trim::End(end.to_owned()),
        _ => return None,
    };
    Some((trim, operator.len()))
}

/// Returns what sums and products of whole numbers amount to. Shells differ in what a number with a zero in front is, and in numbers beyond 31
/// bits; one below zero would be an option.
#[must_use]
pub fn sum(text: &str) -> Option<u32> {
    let number = |text: &str| {
        let text = text.trim_matches(' ');
        let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        is_decimal.then(|| text.parse().ok()).flatten()
    };
    let product = |text: &str| text.split('*').map(number).try_fold(1_i32, |product, factor: Option<i32>| product.checked_mul(factor?));
    let difference = |text: &str| {
        let mut terms = text.split('-').map(product);
        let first = terms.next()??;
        terms.try_fold(first, |rest, term| rest.checked_sub(term?))
    };
    let total = text.split('+').map(difference).try_fold(0_i32, |total, part| total.checked_add(part?))?;
    u32::try_from(total).ok()
}

impl Word {
    /// Appends quoted text.
    pub(super) fn push_quoted(&mut self, text: &str) {
        self.quotes_glob |= text.contains(['*', '?', '[', ']', '\\']);
        self.push(text);
    }

    /// Appends text to the last piece, if that is text.
    pub(super) fn push(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }
}

impl Parser<'_> {
    /// Reads a word. There is one: the caller has seen its first character.
    pub(super) fn word(&mut self) -> Result<Word, Refusal> {
        let mut word = Word { at: self.at, ..Word::default() };
        if let Some(whole) = self.whole_word() {
            self.at += whole.len();
            word.push(whole);
            return Ok(word);
        }
        while !ends_word(self.peek()) {
            self.piece(&mut word)?;
        }
        let refusal = |construct| Err(Refusal { construct, at: word.at });
        if matches!(word.pieces.first(), Some(Piece::Text(text)) if text.starts_with('~')) {
            // It is no home directory, and must not be taken for one.
            return refusal(Construct::Tilde);
        }
        if word.quotes_glob && word.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_))) {
            return refusal(Construct::QuotedGlob);
        }
        Ok(word)
    }

    /// Returns the word that stands here, if it is one of those whose characters mean something else inside a longer word.
    fn whole_word(&self) -> Option<&'static str> {
        ["{}", "[", "]", "[[", "]]", "!", "!=", "="].into_iter().find(|whole| {
            let end = self.text.as_bytes().get(self.at + whole.len()).copied();
            self.rest().starts_with(whole) && ends_word(end)
        })
    }

    fn piece(&mut self, word: &mut Word) -> Result<(), Refusal> {
        let is_first = self.at == word.at;
        let Some(byte) = self.peek() else { return Ok(()) };
        match byte {
            _ if is_bare(byte) => {
                let run = self.rest().bytes().take_while(|byte| is_bare(*byte)).count();
                word.push(self.rest().get(..run).unwrap_or_default());
                self.at += run;
            }
            b'\'' => self.single_quotes(word)?,
            b'"' => self.double_quotes(word)?,
            b'$' => self.dollar(word, false)?,
            b'\\' => self.escape(word)?,
            b'*' | b'?' | b'[' => {
                self.at += 1;
                word.pieces.push(Piece::Glob(char::from(byte)));
            }
            b'~' if is_first => {
                self.at += 1;
                if !(self.peek() == Some(b'/') || ends_word(self.peek())) {
                    return Err(self.refuse(Construct::Tilde));
                }
                word.pieces.push(Piece::Home);
            }
            // Bash takes `a=~/b` and `a:~/b` for paths, other shells do not.
            b'~' if !self.before().is_some_and(|before| before.is_ascii_alphanumeric() || b"._-/^".contains(&before)) => {
                return Err(self.refuse(Construct::Tilde));
            }
            b'=' if is_first => return Err(self.refuse(Construct::Equals)),
            b'^' | b'#' if is_first => return Err(self.refuse(Construct::Character)),
            b'~' | b'=' | b'^' | b'#' => {
                self.at += 1;
                word.push(char::from(byte).encode_utf8(&mut [0; 4]));
            }
            b'!' => return Err(self.refuse(Construct::History)),
            b'{' if self.peek_at(1) == Some(b'}') => {
                // With nothing in them they are text to every shell.
                self.at += 2;
                word.push("{}");
            }
            b'{' | b'}' => {
                let revision = revision(self.rest()).filter(|_| self.before() == Some(b'@')).ok_or(self.refuse(Construct::Brace))?;
                self.at += revision.len();
                word.push(revision);
            }
            b'(' if self.peek_at(1) == Some(b')') => return Err(self.refuse(Construct::Function)),
            b'(' => return Err(self.refuse(Construct::Parenthesis)),
            b'<' if is_first && self.peek_at(1) == Some(b'(') => return self.process(word),
            b'<' | b'>' if self.peek_at(1) == Some(b'(') => return Err(self.refuse(Construct::Process)),
            b'<' | b'>' => return Err(self.refuse(Construct::Redirection)),
            b'`' => return Err(self.refuse(Construct::Backtick)),
            _ if byte.is_ascii_control() => return Err(self.refuse(Construct::Control)),
            _ => return Err(self.refuse(Construct::Character)),
        }
        Ok(())
    }

    /// Reads `<(…)`, which is a whole word.
    fn process(&mut self, word: &mut Word) -> Result<(), Refusal> {
        let list = self.commands()?;
        word.pieces.push(Piece::Process(list));
        if ends_word(self.peek()) { Ok(()) } else { Err(self.refuse(Construct::Process)) }
    }

    /// Reads a backslash and the character that it quotes.
    fn escape(&mut self, word: &mut Word) -> Result<(), Refusal> {
        match self.peek_at(1) {
            Some(b'\n') => Err(self.refuse(Construct::Continuation)),
            Some(byte @ b' '..=b'~') => {
                self.at += 2;
                word.push_quoted(char::from(byte).encode_utf8(&mut [0; 4]));
                Ok(())
            }
            Some(_) => Err(self.refuse(Construct::Character)),
            None => Err(self.refuse(Construct::Incomplete)),
        }
    }

    /// Reads what stands behind a dollar sign.
    pub(super) fn dollar(&mut self, word: &mut Word, quoted: bool) -> Result<(), Refusal> {
        let rest = self.rest();
        let behind = rest.get(1..).unwrap_or_default();
        match behind.bytes().next() {
            Some(b'(') if behind.starts_with("((") => return self.arithmetic(word),
            Some(b'[') => return Err(self.refuse(Construct::Arithmetic)),
            Some(b'(') => return self.substitution(word, quoted),
            Some(b'\'' | b'"') if !quoted => return Err(self.refuse(Construct::DollarQuote)),
            Some(sign @ (b'?' | b'!')) => {
                self.at += 2;
                word.pieces.push(if sign == b'?' { Piece::Status } else { Piece::Background });
                return self.no_modifier();
            }
            // A dollar sign that stands for itself, as at the end of a regular expression.
            Some(b'"' | b' ' | b'|' | b')') if quoted => {
                self.at += 1;
                word.push("$");
                return Ok(());
            }
            _ => {}
        }
        let (start, braced) = if behind.starts_with('{') { (1, true) } else { (0, false) };
        let from = behind.get(start..).unwrap_or_default();
        let length = from.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let name = from.get(..length).unwrap_or_default();
        if name.is_empty() || name.starts_with(|char: char| char.is_ascii_digit()) {
            return Err(self.refuse(if braced && length == 0 { Construct::Parameter } else { Construct::Special }));
        }
        let behind = from.get(length..).unwrap_or_default();
        let (trim, trimmed) = match braced {
            true if name.eq_ignore_ascii_case("PIPESTATUS") => return Err(self.refuse(Construct::PipeStatus)),
            true => trim(behind).ok_or(self.refuse(Construct::Parameter))?,
            false => (Trim::Nothing, 0),
        };
        word.pieces.push(match name {
            "HOME" | "PWD" if trim != Trim::Nothing => return Err(self.refuse(Construct::Parameter)),
            "HOME" => Piece::Home,
            "PWD" if quoted => Piece::Directory,
            "PWD" => return Err(self.refuse(Construct::Unquoted)),
            _ => Piece::Variable { name: name.to_owned(), trim, quoted, at: self.at },
        });
        self.at += 1 + length + trimmed + if braced { 2 } else { 0 };
        self.no_modifier()
    }

    /// Reads `$((…))` of whole numbers and variables, which stands for the same number in every shell where the variables hold digits. Another
    /// value could be anything, and bash evaluates the subscripts in it.
    fn arithmetic(&mut self, word: &mut Word) -> Result<(), Refusal> {
        let inner = self.rest().strip_prefix("$((").and_then(|rest| rest.split_once("))")).map(|(inner, _)| inner);
        let inner = inner.ok_or(self.refuse(Construct::Arithmetic))?;
        let is_open = |byte: u8| byte.is_ascii_alphanumeric() || b"_ $+-*".contains(&byte);
        let is_named = |behind: &str| behind.starts_with(|first: char| first.is_ascii_alphabetic());
        match sum(inner) {
            Some(value) => word.push(&value.to_string()),
            None if inner.bytes().all(is_open) && inner.split('$').skip(1).all(is_named) => {
                word.pieces.push(Piece::Sum(inner.replace('$', "")));
            }
            None => return Err(self.refuse(Construct::Arithmetic)),
        }
        self.at += "$((".len() + inner.len() + "))".len();
        self.no_modifier()
    }

    /// Refuses what zsh takes for a subscript of the parameter in front of it (`$x[1]`), or for a modifier (`$x:h`).
    fn no_modifier(&self) -> Result<(), Refusal> {
        match (self.peek(), self.peek_at(1)) {
            // Letters beyond ASCII belong to the name for zsh.
            (Some(byte), _) if !byte.is_ascii() => Err(self.refuse(Construct::Parameter)),
            (Some(b'['), _) => Err(self.refuse(Construct::Parameter)),
            (Some(b':'), behind) if !behind.is_none_or(|byte| b" \t\n\"/".contains(&byte)) => Err(self.refuse(Construct::Parameter)),
            _ => Ok(()),
        }
    }
}
