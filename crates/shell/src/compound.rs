//! Groups, subshells, branches and loops: loops over words are gone through.

use super::argument::{Argument, Certainty};
use super::grammar::{Command, Construct, Kind, List, Piece, Word};
use super::walk::{WORD_BYTES, Walk};
use super::{assignments, files, output, streams};

impl Walk<'_> {
    pub(super) fn compound(&mut self, kind: &Kind, command: &Command) {
        match kind {
            Kind::Simple(_) => {}
            Kind::Group(list) => self.list(list),
            Kind::Subshell(list) => self.elsewhere(|walk| walk.list(list)),
            Kind::If(lists) => self.branches(lists),
            Kind::While { condition, body } => self.looping(command, |walk| walk.while_loop(condition, body)),
            Kind::For { name, words, body, is_setting: true } => words.iter().for_each(|word| self.turn(name, word, body)),
            Kind::For { name, words, body, is_setting: false } => self.looping(command, |walk| {
                let outer = std::mem::replace(&mut walk.round, files::goes_round(body).then_some(false));
                words.iter().for_each(|word| walk.turn(name, word, body));
                walk.round = outer;
            }),
        }
    }

    fn while_loop(&mut self, condition: &List, body: &List) {
        self.repeats += 1;
        match streams::reader(condition) {
            Some((names, is_whole)) => {
                let computed = !(self.is_fed_found && is_whole) || self.is_fed_nul && !streams::reads_nul(condition);
                let name = Argument { certainty: Certainty::Nothing, computed, found: true, ..Argument::known("*") };
                self.bound(&names, &name, body);
            }
            None => {
                self.list(condition);
                self.list(body);
            }
        }
        self.repeats -= 1;
    }

    /// Walks the turns of a loop for one of its words.
    fn turn(&mut self, name: &str, word: &Word, body: &List) {
        // The folder may be another one where the value is used.
        if word.pieces.contains(&Piece::Directory) {
            self.doubt(Construct::Inside, word.at);
        }
        if word.pieces.iter().any(|piece| matches!(piece, Piece::Process(_))) {
            // Nobody knows what the body does with such a file.
            self.doubt(Construct::Process, word.at);
        }
        let list = word.as_output();
        let numbers = list.and_then(output::sequence).unwrap_or_default();
        let values = match list.filter(|_| !numbers.is_empty()) {
            Some(list) => {
                self.read_output(list);
                numbers.into_iter().map(|text| Argument { at: word.at, ..Argument::known(text) }).collect()
            }
            None => vec![Argument { many: false, ..self.argument(word) }],
        };
        for value in values {
            if self.is_over() {
                return self.doubt(Construct::TooMuch, word.at);
            }
            self.spend(WORD_BYTES);
            self.bound(&[name], &value, body);
        }
    }

    /// Walks the body of a loop with a value for its variables.
    fn bound(&mut self, names: &[&str], value: &Argument, body: &List) {
        if self.values.iter().any(|(name, _)| names.contains(&name.as_str())) {
            return self.doubt(Construct::LoopName, value.at);
        }
        let outer = self.values.len();
        self.values.extend(names.iter().map(|name| ((*name).to_owned(), value.clone())));
        // A program may read what is called in capitals, if the environment has the name.
        let is_read = names.iter().any(|name| name.starts_with(|first: char| first.is_ascii_uppercase()));
        let is_of_form = value.is_reference || value.is_number || !value.text.contains('*');
        let is_plain = !value.text.contains(assignments::SIGNS) && (!value.computed || is_of_form);
        let held_odd = self.holds_odd;
        self.holds_odd |= is_read && !is_plain;
        self.list(body);
        self.holds_odd = held_odd;
        self.values.truncate(outer);
    }
}
