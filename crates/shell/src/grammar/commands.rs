//! Lists, pipelines, simple and compound commands.

use super::braces;
use super::cursor::Parser;
use super::names::{KNOWN, OTHERS, is_loop_name};
use super::tree::{Command, End, Kind, List, Piece, Pipeline, Redirect, Simple, Word};
use super::words::ends_word;
use super::{Construct, Refusal};

/// Calls a function for every redirection in a list.
pub(super) fn each_redirect(list: &mut List, call: &mut impl FnMut(&mut Redirect)) {
    for command in list.iter_mut().flat_map(|pipeline| &mut pipeline.commands) {
        command.redirects.iter_mut().for_each(&mut *call);
        match &mut command.kind {
            Kind::Simple(simple) => simple.words.iter_mut().for_each(|word| in_word(word, call)),
            Kind::Group(list) | Kind::Subshell(list) => each_redirect(list, call),
            Kind::If(lists) => lists.iter_mut().for_each(|list| each_redirect(list, call)),
            Kind::While { condition, body } => [condition, body].into_iter().for_each(|list| each_redirect(list, call)),
            Kind::For { words, body, .. } => {
                words.iter_mut().for_each(|word| in_word(word, call));
                each_redirect(body, call);
            }
        }
    }
}

/// Calls a function for every redirection in the commands whose output is a part of a word.
fn in_word(word: &mut Word, call: &mut impl FnMut(&mut Redirect)) {
    for piece in &mut word.pieces {
        if let Piece::Output { list, .. } | Piece::Process(list) = piece {
            each_redirect(list, call);
        }
    }
}

impl<'t> Parser<'t> {
    /// Reads pipelines up to a closing parenthesis, one of these words, or the end.
    pub(super) fn list(&mut self, ends: &[&str]) -> Result<List, Refusal> {
        let mut list = List::new();
        let mut is_open = false;
        loop {
            self.lines()?;
            let ended = self.peek().is_none_or(|byte| byte == b')') || ends.iter().any(|end| self.is_word(end));
            if ended {
                return if is_open { Err(self.refuse(Construct::Incomplete)) } else { Ok(list) };
            }
            // Behind `&&` and `||` it would hold only sometimes.
            if !is_open && let Some((name, value)) = self.setting()? {
                // What follows is the body of a loop over one word.
                let body = self.deeper(|parser| parser.list(ends))?;
                let kind = Kind::For { name, words: vec![value], body, is_setting: true };
                list.push(Pipeline { commands: vec![Command { kind, redirects: Vec::new() }], is_negated: false, end: End::Sequence });
                return Ok(list);
            }
            let (commands, is_negated) = self.pipeline()?;
            let end = self.end()?;
            list.push(Pipeline { commands, is_negated, end });
            is_open = matches!(end, End::And | End::Or);
            // An operator that is followed by another one.
            if is_open && matches!(self.peek(), Some(b'&' | b'|' | b';')) {
                return Err(self.refuse(Construct::Operator));
            }
        }
    }

    /// Reads what stands behind a pipeline.
    fn end(&mut self) -> Result<End, Refusal> {
        self.blanks()?;
        let (length, end) = match (self.peek(), self.peek_at(1)) {
            (None | Some(b'\n' | b')'), _) => (0, End::Sequence),
            (Some(b';'), Some(b';' | b'&' | b'|')) => return Err(self.refuse(Construct::Operator)),
            (Some(b';'), _) => (1, End::Sequence),
            (Some(b'&'), Some(b'&')) => (2, End::And),
            (Some(b'|'), Some(b'|')) => (2, End::Or),
            // To zsh `&!` and `&|` are other operators, and `&>` is one to bash.
            (Some(b'&'), next) if next.is_none_or(|byte| b" \t\n)".contains(&byte)) => (1, End::Background),
            (Some(b'&'), Some(b'>')) => return Err(self.refuse(Construct::BothWritten)),
            (Some(b'&'), _) => return Err(self.refuse(Construct::Operator)),
            _ => return Err(self.refuse(Construct::Unexpected)),
        };
        self.at += length;
        Ok(end)
    }

    /// Reads `NAME=literal` and the separator behind it, if the name is one that a loop may use too. The variable then has this value for the
    /// rest of the list.
    fn setting(&mut self) -> Result<Option<(String, Word)>, Refusal> {
        let start = self.at;
        let Some(name) = self.assignment(&Simple::default()).filter(|name| is_loop_name(name)) else { return Ok(None) };
        self.at += name.len() + 1;
        let value = self.value(true)?;
        self.blanks()?;
        let separator = match (self.peek(), self.peek_at(1)) {
            (Some(b'&'), Some(b'&')) => 2,
            (Some(b';'), next) if !next.is_some_and(|byte| b";&|".contains(&byte)) => 1,
            (Some(b'\n'), _) => 0,
            _ => return Err(Refusal { construct: Construct::Assignment, at: start }),
        };
        self.at += separator;
        Ok(Some((name.to_owned(), value)))
    }

    /// Reads commands that are joined by pipes, and whether `!` stands in front of them.
    fn pipeline(&mut self) -> Result<(Vec<Command>, bool), Refusal> {
        let is_negated = self.is_word("!");
        if is_negated {
            self.at += 1;
            self.blanks()?;
            if !self.before().is_some_and(|before| matches!(before, b' ' | b'\t')) || self.is_word("!") {
                return Err(self.refuse(Construct::History));
            }
        }
        let mut pipeline = vec![self.deeper(Self::command)?];
        loop {
            self.blanks()?;
            match (self.peek(), self.peek_at(1)) {
                (Some(b'|'), Some(b'|')) => return Ok((pipeline, is_negated)),
                (Some(b'|'), Some(b'&')) => return Err(self.refuse(Construct::BothPiped)),
                (Some(b'|'), _) => self.at += 1,
                _ => return Ok((pipeline, is_negated)),
            }
            self.lines()?;
            pipeline.push(self.deeper(Self::command)?);
        }
    }

    /// Returns whether this word stands here, without quotes.
    fn is_word(&self, word: &str) -> bool {
        self.rest().strip_prefix(word).is_some_and(|rest| ends_word(rest.bytes().next()))
    }

    fn keyword(&mut self, word: &str) -> Result<(), Refusal> {
        self.lines()?;
        if !self.is_word(word) {
            let construct = if self.peek().is_none() { Construct::Incomplete } else { Construct::Unexpected };
            return Err(self.refuse(construct));
        }
        self.at += word.len();
        Ok(())
    }

    /// Reads a list that is not empty, up to one of these words.
    fn body(&mut self, ends: &[&str]) -> Result<List, Refusal> {
        let list = self.list(ends)?;
        if list.is_empty() { Err(self.refuse(Construct::Incomplete)) } else { Ok(list) }
    }

    fn command(&mut self) -> Result<Command, Refusal> {
        let mut redirects = Vec::new();
        let kind = match self.peek() {
            Some(b'(') => self.subshell()?,
            _ if self.is_word("{") => {
                self.at += 1;
                let list = self.body(&["}"])?;
                self.keyword("}")?;
                Kind::Group(list)
            }
            _ if self.is_word("if") => self.condition()?,
            _ if self.is_word("while") || self.is_word("until") => {
                self.at += "while".len();
                let condition = self.body(&["do"])?;
                self.keyword("do")?;
                let body = self.body(&["done"])?;
                self.keyword("done")?;
                Kind::While { condition, body }
            }
            _ if self.is_word("for") => self.for_loop()?,
            _ => return self.simple(),
        };
        loop {
            self.blanks()?;
            if !self.is_redirect() {
                break;
            }
            redirects.push(self.redirect()?);
        }
        if !ends_word(self.peek()) {
            return Err(self.refuse(Construct::Unexpected));
        }
        Ok(Command { kind, redirects })
    }

    fn subshell(&mut self) -> Result<Kind, Refusal> {
        if self.peek_at(1) == Some(b'(') {
            return Err(self.refuse(Construct::Arithmetic));
        }
        self.at += 1;
        let list = self.body(&[])?;
        if self.peek() != Some(b')') {
            return Err(self.refuse(Construct::Incomplete));
        }
        self.at += 1;
        Ok(Kind::Subshell(list))
    }

    fn condition(&mut self) -> Result<Kind, Refusal> {
        self.keyword("if")?;
        let mut lists = vec![self.body(&["then"])?];
        self.keyword("then")?;
        loop {
            lists.push(self.body(&["elif", "else", "fi"])?);
            if self.is_word("elif") {
                self.keyword("elif")?;
                lists.push(self.body(&["then"])?);
                self.keyword("then")?;
                continue;
            }
            if self.is_word("else") {
                self.keyword("else")?;
                lists.push(self.body(&["fi"])?);
            }
            self.keyword("fi")?;
            return Ok(Kind::If(lists));
        }
    }

    fn for_loop(&mut self) -> Result<Kind, Refusal> {
        self.keyword("for")?;
        self.blanks()?;
        if self.rest().starts_with("((") {
            return Err(self.refuse(Construct::CountingLoop));
        }
        let length = self.rest().bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let name = self.rest().get(..length).unwrap_or_default();
        if !is_loop_name(name) {
            return Err(self.refuse(Construct::LoopName));
        }
        self.at += length;
        self.blanks()?;
        self.keyword("in")?;
        let mut words = Vec::new();
        loop {
            self.blanks()?;
            match self.peek() {
                // Dash and busybox sh do not read a here-document at this line end.
                Some(b'\n') if !self.documents.is_empty() => return Err(self.refuse(Construct::DocumentPlace)),
                Some(b';' | b'\n') => break,
                byte if ends_word(byte) || self.is_redirect() => return Err(self.refuse(Construct::Unexpected)),
                _ => words.extend(self.braced()?.into_iter().flatten()),
            }
        }
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        self.keyword("do")?;
        let body = self.body(&["done"])?;
        self.keyword("done")?;
        Ok(Kind::For { name: name.to_owned(), words, body, is_setting: false })
    }

    fn simple(&mut self) -> Result<Command, Refusal> {
        let start = self.at;
        self.reserved()?;
        let (mut simple, mut redirects) = (Simple::default(), Vec::new());
        loop {
            self.blanks()?;
            if ends_word(self.peek()) {
                break;
            }
            if self.is_redirect() {
                redirects.push(self.redirect()?);
            } else if let Some(name) = self.assignment(&simple) {
                self.at += name.len() + 1;
                let value = self.value(false)?;
                simple.assignments.push((name.to_owned(), value));
            } else if simple.words.is_empty() {
                simple.words.push(self.word()?);
            } else if self.is_word("==") && simple.words.first().and_then(Word::as_text) == Some("[[") {
                // To zsh it would be the path of a program elsewhere.
                simple.words.push(Word { pieces: vec![Piece::Text("==".to_owned())], at: self.at, ..Word::default() });
                self.at += "==".len();
            } else {
                let [words, unbraced] = self.braced()?;
                if simple.unbraced.is_empty() && !unbraced.is_empty() {
                    simple.unbraced.clone_from(&simple.words);
                }
                if !simple.unbraced.is_empty() {
                    simple.unbraced.extend_from_slice(if unbraced.is_empty() { &words } else { &unbraced });
                }
                simple.words.extend(words);
            }
        }
        // Between double brackets bash compares with `<` and `>`.
        if simple.words.first().and_then(Word::as_text) == Some("[[") && !redirects.is_empty() {
            return Err(Refusal { construct: Construct::Redirection, at: start });
        }
        if simple.words.is_empty() {
            let construct = match simple.assignments.is_empty() {
                true if redirects.is_empty() => Construct::Unexpected,
                true => Construct::NoCommand,
                false => Construct::Assignment,
            };
            return Err(Refusal { construct, at: start });
        }
        Ok(Command { kind: Kind::Simple(simple), redirects })
    }

    /// Reads a word that may have braces: the words that bash and zsh make of it, and the word that dash and busybox sh do, if that is another.
    fn braced(&mut self) -> Result<[Vec<Word>; 2], Refusal> {
        let at = self.at;
        let Some((length, words, unbraced)) = braces::list(self.rest()) else { return Ok([vec![self.word()?], Vec::new()]) };
        self.at += length;
        let read = |text: &String| {
            let word = Parser::new(text, self.depth, self.takes_bare).word();
            word.map(|word| Word { at, ..word }).map_err(|refusal| Refusal { at, ..refusal })
        };
        Ok([words.iter().map(read).collect::<Result<_, _>>()?, vec![read(&unbraced)?]])
    }

    /// Refuses words that are reserved, at the beginning of a command.
    fn reserved(&self) -> Result<(), Refusal> {
        if KNOWN.iter().any(|word| self.is_word(word)) {
            return Err(self.refuse(Construct::Unexpected));
        }
        match OTHERS.iter().find(|word| self.is_word(word)) {
            Some(word) => Err(self.refuse(Construct::Reserved(word))),
            None => Ok(()),
        }
    }

    /// Returns the name of an assignment in front of a command.
    fn assignment(&self, simple: &Simple) -> Option<&'t str> {
        if !simple.words.is_empty() || self.peek().is_none_or(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let length = self.rest().bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let name = self.rest().get(..length).filter(|name| !name.is_empty());
        name.filter(|_| self.peek_at(length) == Some(b'='))
    }

    /// Reads the value of an assignment: a literal in which zsh finds no `=command`, or the output of commands, `$?` or `$!` where that may stand.
    fn value(&mut self, may_be_output: bool) -> Result<Word, Refusal> {
        let at = self.at;
        let value = if ends_word(self.peek()) { Word { at, ..Word::default() } } else { self.word()? };
        if may_be_output && (value.as_output().is_some() || matches!(value.pieces.as_slice(), [Piece::Status | Piece::Background])) {
            return Ok(value);
        }
        // No shell looks for names of files there.
        let text = value.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.clone()),
            Piece::Glob(sign) => Some(sign.to_string()),
            _ => None,
        });
        match text.collect::<Option<String>>() {
            Some(text) if !text.contains(":=") => Ok(Word { pieces: vec![Piece::Text(text)], ..value }),
            _ => Err(Refusal { construct: Construct::Assignment, at }),
        }
    }
}
