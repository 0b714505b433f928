//! What a command starts: other commands, and texts that shells execute.

use super::argument::Argument;
use super::grammar::{self, Construct};
use super::reached::Way;
use super::tables::Started;
use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn started(&mut self, program: &str, started: Started) {
        if self.depth >= grammar::DEPTH_MAX {
            return self.doubt(Construct::TooDeep, 0);
        }
        self.depth += 1;
        match started {
            Started::Command(mut words) => {
                if matches!(program, "xargs" | "gxargs") {
                    self.hand_on(&mut words);
                }
                self.ways.push(Way::Behind(program.to_owned()));
                self.run(words);
            }
            Started::Text(text) => {
                self.ways.push(Way::TextOf(program.to_owned()));
                // Places in the text are others.
                let authored = std::mem::take(&mut self.authored);
                self.text(program, &text);
                self.authored = authored;
            }
        }
        self.ways.pop();
        self.depth -= 1;
    }

    /// Walks a text that a shell executes. It has no variables of the line's loops.
    pub(super) fn text(&mut self, program: &str, text: &Argument) {
        // In the text nobody knows any more which digits the line has computed.
        let known = text.as_known().filter(|_| !text.is_numbered);
        let Some(known) = known else { return self.doubt(Construct::ShellText, text.at) };
        // It may go elsewhere, and in a loop.
        let (outside, moves) = (self.directories.spot(), self.directories.moves());
        self.directories.lose();
        let outer = self.text_at;
        let values = std::mem::take(&mut self.values);
        self.text_at = outer.or(Some(text.at));
        match grammar::parse(known, self.depth) {
            Ok(list) => self.list(&list),
            Err(refusal) => self.doubt(refusal.construct, refusal.at),
        }
        self.text_at = outer;
        self.values = values;
        // Other programs than these builtins run it in a process of its own.
        if !matches!(program, "alias" | "eval" | "trap") || self.directories.moves() == moves {
            self.directories.set(outside);
        }
    }
}
