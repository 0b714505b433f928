//! Parses words: quotes, escapes, and the parts that are expanded.

use super::cursor::{is_meta, is_name};
use super::{Assignment, Fault, Parser, Part, Word, ansi};

/// Where a word stands, which decides what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a command: metacharacters end it.
    Command,
    /// In `[[ ]]`: parentheses and bars belong to patterns.
    Test,
    /// In the parentheses of an array.
    Array,
}

impl Parser<'_> {
    /// Parses the next word, which is empty if a metacharacter or the end is next.
    pub(super) fn word(&mut self, place: Place) -> Result<Word, Fault> {
        let mut word = Word::default();
        let mut bare = String::new();
        let mut subscript = 0_usize;
        while let Some(byte) = self.peek() {
            let is_process = matches!(byte, b'<' | b'>') && place != Place::Test && self.peek_second() == Some(b'(');
            if is_process {
                flush(&mut bare, &mut word);
                self.at += 1;
                self.expect(b'(')?;
                let list = self.substituted()?;
                word.parts.push(Part::Process(list));
                continue;
            }
            match byte {
                _ if place != Place::Test && is_meta(byte) => break,
                b' ' | b'\t' | b'\n' => break,
                b'\'' | b'"' | b'\\' | b'$' | b'`' => {
                    flush(&mut bare, &mut word);
                    self.quoted_part(byte, &mut word)?;
                }
                b'[' if subscript > 0 || (word.parts.is_empty() && begins_subscript(&bare, place)) => {
                    subscript += 1;
                    self.bare_run(&mut bare)?;
                }
                _ => {
                    subscript -= usize::from(byte == b']' && subscript > 0);
                    self.bare_run(&mut bare)?;
                }
            }
        }
        // Where an assignment may stand bash reads a subscript with blanks, operators and number signs to its end, and elsewhere not.
        if subscript > 0 {
            return Err(Fault::Syntax);
        }
        flush(&mut bare, &mut word);
        Ok(word)
    }

    /// Takes one character as bare text.
    fn bare_run(&mut self, bare: &mut String) -> Result<(), Fault> {
        let char = self.slice(self.at, self.text.len())?.chars().next().ok_or(Fault::Syntax)?;
        bare.push(char);
        self.at += char.len_utf8();
        Ok(())
    }

    /// Parses a part that begins with a quote, a backslash, a dollar sign or a backtick.
    fn quoted_part(&mut self, byte: u8, word: &mut Word) -> Result<(), Fault> {
        self.bump();
        match byte {
            b'\'' => {
                let text = self.until_quote()?;
                word.parts.push(Part::Quoted(text.to_owned()));
            }
            b'"' => self.double_quoted(word)?,
            b'\\' => {
                let mut text = String::new();
                // A backslash at the very end stands for itself.
                match self.raw(0) {
                    None => text.push('\\'),
                    Some(_) => self.bare_run(&mut text)?,
                }
                word.parts.push(Part::Quoted(text));
            }
            b'$' => self.dollar(false, word)?,
            _ => self.backtick(false, word)?,
        }
        Ok(())
    }

    /// Takes the text up to a single quote, and the quote.
    fn until_quote(&mut self) -> Result<&str, Fault> {
        let rest = self.slice(self.at, self.text.len())?;
        let (text, _) = rest.split_once('\'').ok_or(Fault::Syntax)?;
        self.at += text.len() + 1;
        Ok(text)
    }

    /// Parses the rest of `$'…'`.
    pub(super) fn ansi_quoted(&mut self, word: &mut Word) -> Result<(), Fault> {
        let start = self.at;
        // A shell without this form of quotes takes the first quote for the end.
        let mut is_ambiguous = false;
        loop {
            match self.raw(0).ok_or(Fault::Syntax)? {
                b'\\' => {
                    is_ambiguous |= self.raw(1) == Some(b'\'');
                    self.at += 2;
                }
                b'\'' => break,
                _ => self.at += 1,
            }
        }
        if is_ambiguous {
            word.parts.push(Part::Ambiguous);
        }
        let text = ansi::decode(self.slice(start, self.at)?);
        self.at += 1;
        word.parts.push(Part::Quoted(text));
        Ok(())
    }

    /// Parses the rest of `"…"`.
    pub(super) fn double_quoted(&mut self, word: &mut Word) -> Result<(), Fault> {
        self.enter()?;
        let before = word.parts.len();
        self.expanded_text(word, b"$`\"\\", |byte| byte == b'"')?;
        self.expect(b'"')?;
        self.leave();
        if word.parts.len() == before {
            word.parts.push(Part::Quoted(String::new()));
        }
        Ok(())
    }

    /// Parses the whole text as a here-document's body.
    pub(super) fn document(&mut self) -> Result<Word, Fault> {
        self.enter()?;
        let mut word = Word::default();
        self.expanded_text(&mut word, b"$`\\", |_| false)?;
        self.leave();
        if self.at == self.text.len() { Ok(word) } else { Err(Fault::Syntax) }
    }

    /// Parses text in which only `$`, backticks and escapes of these bytes have a meaning, up to a byte that ends it.
    fn expanded_text(&mut self, word: &mut Word, escapable: &[u8], ends: fn(u8) -> bool) -> Result<(), Fault> {
        let mut text = String::new();
        while let Some(byte) = self.peek() {
            if ends(byte) {
                break;
            }
            match byte {
                b'\\' if self.raw(1).is_some_and(|next| escapable.contains(&next)) => {
                    self.at += 1;
                    self.bare_run(&mut text)?;
                }
                b'$' | b'`' => {
                    flush_quoted(&mut text, word);
                    self.at += 1;
                    if byte == b'$' { self.dollar(true, word)? } else { self.backtick(true, word)? }
                }
                b'\n' if !self.pending.is_empty() => return Err(Fault::Syntax),
                _ => self.bare_run(&mut text)?,
            }
        }
        flush_quoted(&mut text, word);
        Ok(())
    }

    /// Parses the rest of a backtick substitution: its text loses one level of escapes and is parsed by itself.
    pub(super) fn backtick(&mut self, quoted: bool, word: &mut Word) -> Result<(), Fault> {
        let mut text = String::new();
        loop {
            match self.raw(0).ok_or(Fault::Syntax)? {
                b'`' => break,
                b'\\' => {
                    let next = self.raw(1).ok_or(Fault::Syntax)?;
                    self.at += 1;
                    let is_escape = matches!(next, b'`' | b'$' | b'\\') || (quoted && next == b'"');
                    if !is_escape {
                        text.push('\\');
                    }
                    self.bare_run(&mut text)?;
                }
                _ => self.bare_run(&mut text)?,
            }
        }
        self.at += 1;
        let list = super::parse(&text, self.depth + 1)?;
        word.parts.push(Part::Substitution { list, quoted });
        Ok(())
    }

    /// Returns the word as an assignment, if it is one. The parser's position is behind it, at the `(` of an array if there is one.
    pub(super) fn assignment(&mut self, word: &Word) -> Result<Option<Assignment>, Fault> {
        let Some(Part::Bare(first)) = word.parts.first() else { return Ok(None) };
        let name: String = first.chars().take_while(|char| char.is_ascii() && is_name(*char as u8)).collect();
        if name.is_empty() || name.starts_with(|char: char| char.is_ascii_digit()) {
            return Ok(None);
        }
        let Some(rest) = first.get(name.len()..) else { return Ok(None) };
        let mut elements = Vec::new();
        let mut value = None;
        if rest.starts_with('[') {
            let is_element = word.parts.iter().any(|part| matches!(part, Part::Bare(text) if text.contains("]=") || text.contains("]+=")));
            if !is_element {
                return Ok(None);
            }
        } else if let Some(text) = rest.strip_prefix('=') {
            let mut parts = word.parts.clone();
            match parts.first_mut() {
                Some(first) if !text.is_empty() => *first = Part::Bare(text.to_owned()),
                _ => drop(parts.remove(0)),
            }
            value = Some(Word { parts });
        } else if !rest.starts_with("+=") {
            return Ok(None);
        }
        let is_open = matches!(word.parts.last(), Some(Part::Bare(text)) if text.ends_with('='));
        if is_open && self.eat(b'(') {
            value = None;
            elements = self.array()?;
        }
        Ok(Some(Assignment { name, word: word.clone(), value, elements }))
    }

    /// Parses the rest of an array, its parenthesis included.
    fn array(&mut self) -> Result<Vec<Word>, Fault> {
        self.enter()?;
        let mut elements = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat(b')') {
                self.leave();
                return Ok(elements);
            }
            let word = self.word(Place::Array)?;
            if word.parts.is_empty() {
                return Err(Fault::Syntax);
            }
            elements.push(word);
        }
    }
}

/// Returns whether an opening bracket behind this text begins the subscript of an assignment.
fn begins_subscript(bare: &str, place: Place) -> bool {
    match bare.as_bytes() {
        [] => place == Place::Array,
        [first, rest @ ..] => is_name(*first) && !first.is_ascii_digit() && rest.iter().all(|byte| is_name(*byte)),
    }
}

/// Ends a run of bare text.
fn flush(bare: &mut String, word: &mut Word) {
    if !bare.is_empty() {
        word.parts.push(Part::Bare(std::mem::take(bare)));
    }
}

/// Ends a run of quoted text.
fn flush_quoted(text: &mut String, word: &mut Word) {
    if !text.is_empty() {
        word.parts.push(Part::Quoted(std::mem::take(text)));
    }
}
