//! Parses branches, loops, tests and functions.

use super::commands::non_empty;
use super::words::Place;
use super::{Compound, Fault, Kind, List, Parser, Pipeline, Word};

impl Parser<'_> {
    /// Parses `list; then list [elif list; then list]… [else list] fi`.
    pub(super) fn branches(&mut self) -> Result<Compound, Fault> {
        let mut compound = Compound::default();
        loop {
            let condition = self.list(&["then"])?;
            self.reserved("then")?;
            let body = self.list(&["elif", "else", "fi"])?;
            non_empty(&condition)?;
            non_empty(&body)?;
            compound.lists.extend([condition, body]);
            let (word, end) = self.peek_bare();
            self.at = end;
            if word == "else" {
                let body = self.list(&["fi"])?;
                non_empty(&body)?;
                compound.lists.push(body);
                self.reserved("fi")?;
                return Ok(compound);
            }
            match word.as_str() {
                "elif" => {}
                "fi" => return Ok(compound),
                _ => return Err(Fault::Syntax),
            }
        }
    }

    /// Parses `do list done`.
    pub(super) fn do_group(&mut self) -> Result<List, Fault> {
        self.reserved("do")?;
        let list = self.list(&["done"])?;
        self.reserved("done")?;
        non_empty(&list)?;
        Ok(list)
    }

    /// Parses what follows `for` or `select`.
    pub(super) fn for_loop(&mut self) -> Result<Compound, Fault> {
        let mut compound = Compound::default();
        self.skip_blanks();
        if self.peek() == Some(b'(') {
            if !self.eat_all(b"((") {
                return Err(Fault::Syntax);
            }
            compound.words.push(self.arithmetic(b')')?);
            self.expect(b')')?;
        } else {
            let word = self.word(Place::Command)?;
            compound.variable = Some(word.bare().ok_or(Fault::Syntax)?.to_owned());
            self.skip_lines()?;
            let (word, end) = self.peek_bare();
            if word == "in" {
                self.at = end;
                compound.words = self.words()?;
            }
        }
        self.skip_blanks();
        self.eat(b';');
        self.skip_lines()?;
        let (word, end) = self.peek_bare();
        let body = if word == "{" {
            self.at = end;
            let list = self.list(&["}"])?;
            self.reserved("}")?;
            list
        } else {
            self.do_group()?
        };
        compound.lists.push(body);
        Ok(compound)
    }

    /// Parses words up to a metacharacter.
    fn words(&mut self) -> Result<Vec<Word>, Fault> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            let word = self.word(Place::Command)?;
            if word.parts.is_empty() {
                return Ok(words);
            }
            words.push(word);
        }
    }

    /// Parses what follows `case`.
    pub(super) fn case(&mut self) -> Result<Compound, Fault> {
        let mut compound = Compound::default();
        self.skip_blanks();
        compound.words.push(self.word(Place::Command)?);
        self.reserved("in")?;
        loop {
            self.skip_lines()?;
            let (word, end) = self.peek_bare();
            if word == "esac" {
                self.at = end;
                return Ok(compound);
            }
            self.eat(b'(');
            loop {
                self.skip_blanks();
                let pattern = self.word(Place::Command)?;
                if pattern.parts.is_empty() {
                    return Err(Fault::Syntax);
                }
                compound.words.push(pattern);
                self.skip_blanks();
                if !self.eat(b'|') {
                    break;
                }
            }
            self.expect(b')')?;
            compound.lists.push(self.list(&["esac"])?);
            let _ = self.eat_all(b";;&") || self.eat_all(b";;") || self.eat_all(b";&");
        }
    }

    /// Parses what follows `[[`: its words; operators and parentheses do not matter.
    pub(super) fn test(&mut self) -> Result<Compound, Fault> {
        let mut compound = Compound { is_test: true, ..Compound::default() };
        let outside = self.at;
        loop {
            let start = self.at;
            self.skip_lines()?;
            // A comment could swallow what bash takes for a pattern and the end of the test.
            if self.slice(start, self.at)?.contains('#') {
                return Err(Fault::Syntax);
            }
            let (word, end) = self.peek_bare();
            if word == "]]" {
                compound.text = Some(self.slice(outside, self.at)?.to_owned());
                self.at = end;
                return Ok(compound);
            }
            let word = self.word(Place::Test)?;
            if word.parts.is_empty() {
                return Err(Fault::Syntax);
            }
            compound.words.push(word);
        }
    }

    /// Parses what follows a function's name: its body.
    pub(super) fn function(&mut self) -> Result<Kind, Fault> {
        self.skip_lines()?;
        let body = self.command()?;
        match body.kind {
            Kind::Compound(_) => Ok(Kind::Function(Box::new(body))),
            _ => Err(Fault::Syntax),
        }
    }

    /// Parses what follows `coproc`: a command, a compound one perhaps behind a name.
    pub(super) fn coprocess(&mut self) -> Result<Kind, Fault> {
        self.skip_blanks();
        let start = self.at;
        let first = self.word(Place::Command)?;
        self.skip_blanks();
        let (word, _) = self.peek_bare();
        let is_name = first.bare().is_some()
            && (self.peek() == Some(b'(') || ["{", "if", "while", "until", "for", "case", "select", "[["].contains(&word.as_str()));
        if !is_name {
            self.at = start;
        }
        let command = self.command()?;
        let variable = if is_name { first.bare().map(str::to_owned) } else { Some("COPROC".to_owned()) };
        let list = vec![Pipeline { commands: vec![command], ..Pipeline::default() }];
        Ok(Kind::Compound(Compound { lists: vec![list], variable, ..Compound::default() }))
    }
}
