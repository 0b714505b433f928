//! Lists, pipelines and commands.

use std::cell::OnceCell;
use std::rc::Rc;

use super::cursor::Pending;
use super::words::Place;
use super::{Argument, Command, Compound, Fault, Kind, List, Parser, Part, Pipeline, Redirect, RedirectKind, Simple, Word};

/// Reserved words that end a list or stand inside a command, and begin none.
const CLOSING: [&str; 9] = ["then", "elif", "else", "fi", "do", "done", "esac", "}", "in"];

impl Parser<'_> {
    /// The whole text.
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

    /// The reserved word or other bare word that comes next, not taken, and where it ends.
    fn peek_bare(&mut self) -> (String, usize) {
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
    fn reserved(&mut self, expected: &str) -> Result<(), Fault> {
        self.skip_lines()?;
        let (word, end) = self.peek_bare();
        if word != expected {
            return Err(Fault::Syntax);
        }
        self.at = end;
        Ok(())
    }

    /// Pipelines up to the end, a closing parenthesis, `;;` or one of these reserved words, none of which is taken.
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
            list.push(self.pipeline()?);
            self.skip_blanks();
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

    /// Commands joined by `|` or `|&`.
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

    /// A command with its redirections.
    fn command(&mut self) -> Result<Command, Fault> {
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

    /// `( … )` or `(( … ))`.
    fn parenthesised(&mut self) -> Result<Kind, Fault> {
        if self.peek_second() == Some(b'(') && self.is_arithmetic() {
            self.eat_all(b"((");
            let inner = self.arithmetic(b')')?;
            self.expect(b')')?;
            return Ok(Kind::Compound(Compound { words: vec![inner], ..Compound::default() }));
        }
        self.expect(b'(')?;
        let list = self.list(&[])?;
        self.expect(b')')?;
        non_empty(&list)?;
        Ok(Kind::Compound(Compound { lists: vec![list], ..Compound::default() }))
    }

    /// The command that a reserved word begins, if the word is one.
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
            "for" | "select" => Kind::Compound(self.for_loop()?),
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
    fn closes(&mut self) -> bool {
        self.skip_blanks();
        self.eat(b')')
    }

    /// `list; then list [elif list; then list]… [else list] fi`
    fn branches(&mut self) -> Result<Compound, Fault> {
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

    /// `do list done`
    fn do_group(&mut self) -> Result<List, Fault> {
        self.reserved("do")?;
        let list = self.list(&["done"])?;
        self.reserved("done")?;
        non_empty(&list)?;
        Ok(list)
    }

    /// What follows `for` or `select`.
    fn for_loop(&mut self) -> Result<Compound, Fault> {
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

    /// Words up to a metacharacter.
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

    /// What follows `case`.
    fn case(&mut self) -> Result<Compound, Fault> {
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

    /// What follows `[[`: its words; operators and parentheses do not matter.
    fn test(&mut self) -> Result<Compound, Fault> {
        let mut compound = Compound::default();
        loop {
            let start = self.at;
            self.skip_lines()?;
            // A comment could swallow what bash takes for a pattern and the end of the test.
            if self.slice(start, self.at)?.contains('#') {
                return Err(Fault::Syntax);
            }
            let (word, end) = self.peek_bare();
            if word == "]]" {
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

    /// What follows a function's name: its body.
    fn function(&mut self) -> Result<Kind, Fault> {
        self.skip_lines()?;
        let body = self.command()?;
        match body.kind {
            Kind::Compound(_) => Ok(Kind::Function(Box::new(body))),
            _ => Err(Fault::Syntax),
        }
    }

    /// What follows `coproc`: a command, a compound one perhaps behind a name.
    fn coprocess(&mut self) -> Result<Kind, Fault> {
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
        let list = vec![Pipeline { commands: vec![command] }];
        Ok(Kind::Compound(Compound { lists: vec![list], variable, ..Compound::default() }))
    }

    /// Assignments, words and redirections in any order, or a function's definition.
    fn simple(&mut self) -> Result<Command, Fault> {
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

    /// A redirection, if one comes next.
    fn redirect(&mut self) -> Result<Option<Redirect>, Fault> {
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

/// A list that may not be empty.
fn non_empty(list: &List) -> Result<(), Fault> {
    if list.is_empty() { Err(Fault::Syntax) } else { Ok(()) }
}
