//! Parses lists, pipelines and commands.

use super::words::Place;
use super::{Command, Compound, Fault, Kind, List, Parser, Pipeline};

/// The reserved words that end a list or stand inside a command, and begin none.
const CLOSING: [&str; 9] = ["then", "elif", "else", "fi", "do", "done", "esac", "}", "in"];

impl Parser<'_> {
    /// Parses the whole text.
    pub(super) fn program(&mut self) -> Result<List, Fault> {
        if self.text.contains('\0') {
            return Err(Fault::Syntax);
        }
        self.enter()?;
        let list = self.list(&[])?;
        if self.at < self.text.len() {
            return Err(Fault::Syntax);
        }
        self.leave();
        Ok(list)
    }

    /// Returns the reserved word or other bare word that comes next, without taking it, and where it ends.
    pub(super) fn peek_bare(&mut self) -> (String, usize) {
        let (start, mut word) = (self.at, String::new());
        while let Some(byte) = self.peek() {
            if super::cursor::is_meta(byte) || b"'\"\\$`".contains(&byte) || !byte.is_ascii() || word.len() > 8 {
                break;
            }
            word.push(char::from(byte));
            self.at += 1;
        }
        let is_whole = self.peek().is_none_or(super::cursor::is_meta);
        let end = std::mem::replace(&mut self.at, start);
        if is_whole { (word, end) } else { (String::new(), start) }
    }

    /// Takes a reserved word.
    pub(super) fn reserved(&mut self, expected: &str) -> Result<(), Fault> {
        self.skip_lines()?;
        let (word, end) = self.peek_bare();
        if word != expected {
            return Err(Fault::Syntax);
        }
        self.at = end;
        Ok(())
    }

    /// Parses pipelines up to the end, a closing parenthesis, `;;` or one of these reserved words, none of which is taken.
    pub(super) fn list(&mut self, ends: &[&str]) -> Result<List, Fault> {
        let mut list = List::new();
        // Whether `&&` or `||` waits for its right side.
        let mut is_owed = false;
        loop {
            self.skip_lines()?;
            let at_end = match self.peek() {
                None | Some(b')') => true,
                Some(b';') => matches!(self.peek_second(), Some(b';' | b'&')),
                _ => ends.contains(&self.peek_bare().0.as_str()),
            };
            if at_end {
                return if is_owed { Err(Fault::Syntax) } else { Ok(list) };
            }
            let mut pipeline = self.pipeline()?;
            pipeline.conditional = is_owed;
            self.skip_blanks();
            pipeline.background = self.peek() == Some(b'&') && self.peek_second() != Some(b'&');
            list.push(pipeline);
            is_owed = self.eat_all(b"&&") || self.eat_all(b"||");
            if is_owed {
                continue;
            }
            match self.peek() {
                Some(b';') if !matches!(self.peek_second(), Some(b';' | b'&')) => self.bump(),
                Some(b'&') => self.bump(),
                Some(b'\n' | b';' | b')') | None => {}
                Some(_) => return Err(Fault::Syntax),
            }
        }
    }

    /// Parses commands joined by `|` or `|&`.
    fn pipeline(&mut self) -> Result<Pipeline, Fault> {
        let mut pipeline = Pipeline::default();
        loop {
            self.skip_blanks();
            let (word, end) = self.peek_bare();
            match word.as_str() {
                "!" => self.at = end,
                "time" => {
                    self.at = end;
                    for option in ["-p", "--"] {
                        self.skip_blanks();
                        let (word, end) = self.peek_bare();
                        if word == option {
                            self.at = end;
                        }
                    }
                }
                _ => break,
            }
        }
        // `time` and `!` may stand alone.
        if matches!(self.peek(), None | Some(b'\n' | b';' | b')')) {
            return Ok(pipeline);
        }
        loop {
            pipeline.commands.push(self.command()?);
            self.skip_blanks();
            if self.peek() != Some(b'|') || self.peek_second() == Some(b'|') {
                return Ok(pipeline);
            }
            self.bump();
            self.eat(b'&');
            self.skip_lines()?;
        }
    }

    /// Parses a command with its redirections.
    pub(super) fn command(&mut self) -> Result<Command, Fault> {
        self.skip_blanks();
        self.enter()?;
        let (word, end) = self.peek_bare();
        let compound = if self.peek() == Some(b'(') {
            Some(self.parenthesised()?)
        } else if CLOSING.contains(&word.as_str()) {
            return Err(Fault::Syntax);
        } else {
            self.reserved_command(&word, end)?
        };
        let command = match compound {
            Some(kind) => {
                let mut redirects = Vec::new();
                loop {
                    self.skip_blanks();
                    match self.redirect()? {
                        Some(redirect) => redirects.push(redirect),
                        None => break Command { kind, redirects },
                    }
                }
            }
            None => self.simple()?,
        };
        self.leave();
        Ok(command)
    }

    /// Parses `( … )` or `(( … ))`.
    fn parenthesised(&mut self) -> Result<Kind, Fault> {
        if self.peek_second() == Some(b'(') && self.is_arithmetic() {
            self.eat_all(b"((");
            let start = self.at;
            let inner = self.arithmetic(b')')?;
            let text = self.slice(start, self.at)?.strip_suffix(')').map(str::to_owned);
            self.expect(b')')?;
            return Ok(Kind::Compound(Compound { words: vec![inner], text, ..Compound::default() }));
        }
        self.expect(b'(')?;
        let list = self.list(&[])?;
        self.expect(b')')?;
        non_empty(&list)?;
        Ok(Kind::Compound(Compound { lists: vec![list], ..Compound::default() }))
    }

    /// Parses the command that a reserved word begins, if the word is one.
    fn reserved_command(&mut self, word: &str, end: usize) -> Result<Option<Kind>, Fault> {
        let start = std::mem::replace(&mut self.at, end);
        let kind = match word {
            "{" => {
                let list = self.list(&["}"])?;
                self.reserved("}")?;
                non_empty(&list)?;
                Kind::Compound(Compound { lists: vec![list], ..Compound::default() })
            }
            "if" => Kind::Compound(self.branches()?),
            "while" | "until" => {
                let condition = self.list(&["do"])?;
                non_empty(&condition)?;
                let body = self.do_group()?;
                Kind::Compound(Compound { lists: vec![condition, body], ..Compound::default() })
            }
            "for" | "select" => Kind::Compound(Compound { iterates: word == "for", ..self.for_loop()? }),
            "case" => Kind::Compound(self.case()?),
            "[[" => Kind::Compound(self.test()?),
            "function" => {
                self.skip_blanks();
                let name = self.word(Place::Command)?;
                self.skip_blanks();
                if name.parts.is_empty() || (self.eat(b'(') && !self.closes()) {
                    return Err(Fault::Syntax);
                }
                self.function()?
            }
            "coproc" => self.coprocess()?,
            _ => {
                self.at = start;
                return Ok(None);
            }
        };
        Ok(Some(kind))
    }

    /// Takes a closing parenthesis behind blanks.
    pub(super) fn closes(&mut self) -> bool {
        self.skip_blanks();
        self.eat(b')')
    }
}

/// Refuses an empty list.
pub(super) fn non_empty(list: &List) -> Result<(), Fault> {
    if list.is_empty() { Err(Fault::Syntax) } else { Ok(()) }
}
