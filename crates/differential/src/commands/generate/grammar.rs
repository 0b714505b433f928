//! Lines by a grammar of the shell: mostly plain, with neighbours of what is plain.

use fastrand::Rng;

use super::programs;
use super::words::{
    GLOBS, NAMES, ODD_REDIRECTIONS, ODD_SEPARATORS, ODD_WORDS, OPTIONS, PAYLOADS, PIECES, PLAIN, REDIRECTIONS, RESERVED, SEPARATORS,
};
use crate::commands::rules::RuleSet;

/// How deep commands stand in commands.
const DEPTH_MAX: usize = 3;

/// Makes one line.
#[derive(Debug)]
pub(super) struct Grammar<'g> {
    pub(super) rng: &'g mut Rng,
    pub(super) set: &'g RuleSet,
    /// How many of a thousand choices are odd ones.
    odd: u32,
    /// The name of the innermost loop.
    pub(super) names: Vec<String>,
}

impl<'g> Grammar<'g> {
    /// Returns a grammar with a random share of odd choices, often none.
    pub(super) fn new(rng: &'g mut Rng, set: &'g RuleSet) -> Self {
        let odd = rng.choice([0, 0, 15, 40, 100, 250]).unwrap_or(0);
        Self { rng, set, odd, names: Vec::new() }
    }

    pub(super) fn pick(&mut self, list: &[&'static str]) -> &'static str {
        self.rng.choice(list).copied().unwrap_or("")
    }

    /// Returns whether the next choice is an odd one.
    pub(super) fn is_odd(&mut self) -> bool {
        self.rng.u32(..1000) < self.odd
    }

    pub(super) fn one_in(&mut self, count: u32) -> bool {
        self.rng.u32(..count) == 0
    }

    /// Makes a line.
    pub(super) fn line(&mut self) -> String {
        let mut line = self.list(0);
        if self.is_odd() {
            let piece = self.pick(PIECES);
            line.push_str(piece);
        }
        line
    }

    pub(super) fn list(&mut self, depth: usize) -> String {
        let mut text = self.pipeline(depth);
        while self.one_in(3) {
            let separator = if self.is_odd() { self.pick(ODD_SEPARATORS) } else { self.pick(SEPARATORS) };
            // What follows a here-document begins on a line of its own.
            if !text.ends_with('\n') || separator == "\n" || self.is_odd() {
                text.push_str(separator);
            }
            text += &self.pipeline(depth);
        }
        text
    }

    fn pipeline(&mut self, depth: usize) -> String {
        let mut text = String::new();
        if self.one_in(30) {
            text.push_str("! ");
        }
        if self.is_odd() {
            let word = self.pick(RESERVED);
            text.push_str(word);
            text.push(' ');
        }
        text += &self.command(depth);
        text
    }

    fn command(&mut self, depth: usize) -> String {
        if depth >= DEPTH_MAX || !self.one_in(5) { self.simple() } else { self.compound(depth + 1) }
    }

    /// Makes a simple command.
    pub(super) fn simple(&mut self) -> String {
        let mut text = String::new();
        if self.is_odd() {
            let (name, word) = (self.pick(NAMES), self.word());
            let operator = if self.one_in(8) { "+=" } else { "=" };
            text += &format!("{name}{operator}{word} ");
        }
        if self.one_in(60) {
            let redirection = self.redirection();
            text += &format!("{redirection} ");
        }
        text += &self.program_and_options();
        if self.one_in(12) {
            // The names of files may look like options.
            return format!("{text} {}", self.pick(&["*", "*", "./*", "-- *", "?*", "* *"]));
        }
        let mut here_document = None;
        for _ in 0..self.rng.usize(..4) {
            text.push_str(self.blank());
            text += &self.word();
        }
        while self.one_in(5) {
            text.push_str(self.blank());
            text += &self.redirection();
        }
        if self.one_in(25) {
            let (begin, body) = self.here_document();
            text.push_str(self.blank());
            text += &begin;
            here_document = Some(body);
        }
        if let Some(body) = here_document {
            if self.one_in(4) {
                text += " | ";
                text += &self.program_and_options();
            }
            text += &body;
        }
        text
    }

    pub(super) fn program_and_options(&mut self) -> String {
        if self.is_odd() {
            let word = if self.rng.bool() { self.pick(PAYLOADS) } else { self.pick(ODD_WORDS) };
            return word.to_owned();
        }
        let entry = self.rng.choice(self.set.listed).copied().unwrap_or("ls");
        let entry = if self.is_odd() { self.disguised(entry) } else { entry.to_owned() };
        let program = entry.split(' ').next().unwrap_or("").to_owned();
        let arguments = programs::arguments(self.rng, &program);
        if arguments.is_empty() { entry } else { format!("{entry} {arguments}") }
    }

    /// Returns another spelling of a program's name.
    fn disguised(&mut self, name: &str) -> String {
        let (first, rest) = name.split_at_checked(1).unwrap_or((name, ""));
        match self.rng.u8(..9) {
            0 => format!("'{name}'"),
            1 => format!("\"{name}\""),
            2 => format!("\\{name}"),
            3 => format!("{first}''{rest}"),
            4 => format!("/usr/bin/{name}"),
            5 => format!("={name}"),
            6 => format!("{first}\\\n{rest}"),
            7 => format!("{name}\u{a0}x"),
            _ => format!("$(echo {name})"),
        }
    }

    fn blank(&mut self) -> &'static str {
        if self.is_odd() { self.pick(&["\t", "  ", " \\\n", "\\\n", "\u{b}", "\u{c}", "\r", "\u{a0}", "\u{2003}", ""]) } else { " " }
    }

    pub(super) fn word(&mut self) -> String {
        if self.is_odd() {
            let word = self.pick(ODD_WORDS);
            return match self.rng.u8(..4) {
                0 => format!("a{word}"),
                1 => format!("\"{word}\""),
                _ => word.to_owned(),
            };
        }
        match self.rng.u32(..100) {
            0..45 => self.pick(PLAIN).to_owned(),
            45..55 => self.pick(OPTIONS).to_owned(),
            55..67 => format!("\"{}\"", self.phrase()),
            67..80 => format!("'{}'", self.phrase()),
            80..88 => self.pick(GLOBS).to_owned(),
            88..91 => format!("{}'{}'\"{}\"", self.pick(PLAIN), self.pick(PLAIN), self.pick(PLAIN)),
            91..93 => format!("\\{}", self.pick(PIECES)),
            93..95 => format!("\"$({})\"", self.program_and_options()),
            _ => match self.names.last().cloned() {
                Some(name) => self.use_of(&name),
                None => self.pick(PLAIN).to_owned(),
            },
        }
    }

    fn use_of(&mut self, name: &str) -> String {
        match self.rng.u8(..8) {
            0 => format!("\"${{{name}}}\""),
            1 => format!("${name}"),
            2 => format!("\"${name}.txt\""),
            3 => format!("\"./${name}\""),
            _ => format!("\"${name}\""),
        }
    }

    /// Returns the inside of a quoted word.
    fn phrase(&mut self) -> String {
        let mut text = self.pick(PLAIN).to_owned();
        for _ in 0..self.rng.usize(..3) {
            let piece = if self.is_odd() || self.one_in(3) { self.pick(PIECES) } else { self.pick(PLAIN) };
            // A quotation mark would end the word; whether that happens is for the odd lines.
            if !piece.contains(['\'', '"', '`', '$', '\\']) || self.is_odd() {
                text.push(' ');
                text.push_str(piece);
            }
        }
        text
    }

    pub(super) fn redirection(&mut self) -> String {
        if self.is_odd() { self.pick(ODD_REDIRECTIONS).to_owned() } else { self.pick(REDIRECTIONS).to_owned() }
    }

    /// Returns the beginning and the rest of a here-document.
    fn here_document(&mut self) -> (String, String) {
        let (begin, end) = if self.is_odd() {
            self.rng
                .choice([
                    ("<<E", "E"),
                    ("<<\\E", "E"),
                    ("<<'E F'", "E F"),
                    ("<<-E", "\tE"),
                    ("<<'E'\\\n", "E"),
                    ("<<''", ""),
                    ("<<E\"\"", "E"),
                    ("<< 'é'", "é"),
                    ("<<'$x'", "$x"),
                    ("<<'E'x", "Ex"),
                    ("<<\"E\\\"\"", "E\""),
                ])
                .unwrap_or_default()
        } else {
            self.rng.choice([("<<'E'", "E"), ("<<'EOF'", "EOF"), ("<<\"E\"", "E"), ("<<-'E'", "E"), ("<< 'E'", "E")]).unwrap_or_default()
        };
        let mut body = String::from("\n");
        for _ in 0..self.rng.usize(..3) {
            let piece = if self.rng.bool() { self.pick(PIECES) } else { self.pick(ODD_WORDS) };
            body.push_str(piece);
            body.push('\n');
        }
        let end = if self.is_odd() {
            self.rng.choice(["E ", " E", "E;canary", "e", "\\E", "E\\", "\tE", "E)", "'E'"]).unwrap_or_default()
        } else {
            end
        };
        (begin.to_owned(), format!("{body}{end}\n"))
    }
}
