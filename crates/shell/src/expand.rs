//! Words → arguments: what a word stands for in the loops that are around it, as far as that is known.

use super::argument::{Argument, Certainty};
use super::found;
use super::grammar::{Construct, Piece, Word};
use super::walk::{Walk, Way};

impl Walk<'_> {
    /// Returns what a word stands for.
    pub(super) fn argument(&mut self, word: &Word) -> Argument {
        let mut argument = Argument { at: word.at, ..Argument::default() };
        for (index, piece) in word.pieces.iter().enumerate() {
            let front = argument.text.len();
            let unknown = match piece {
                Piece::Text(text) => {
                    argument.text.push_str(text);
                    continue;
                }
                Piece::Glob(char) => {
                    argument.many = true;
                    argument.text.push(*char);
                    Certainty::Nothing
                }
                Piece::Home | Piece::Directory => {
                    if !(argument.text.is_empty() || argument.text.ends_with(['=', ':', '@', ','])) {
                        self.doubt(Construct::Inside, word.at);
                    }
                    let is_home = *piece == Piece::Home;
                    argument.text.push(if is_home { '~' } else { '.' });
                    let is_path = match word.pieces.get(index + 1) {
                        None => true,
                        Some(Piece::Text(text)) => text.is_empty() || text.starts_with('/'),
                        Some(_) => false,
                    };
                    // Where the home directory is not set, only a slash behind it makes it a path.
                    if is_path || !is_home { Certainty::Operand } else { Certainty::Nothing }
                }
                Piece::Status => {
                    argument.text.push('*');
                    Certainty::Operand
                }
                Piece::Variable { name, quoted, at } => self.variable(name, *quoted, *at, &mut argument),
                Piece::Output(list) => {
                    self.ways.push(Way::Substitution);
                    let is_read_on = std::mem::replace(&mut self.is_read_on, true);
                    self.list(list);
                    self.is_read_on = is_read_on;
                    self.ways.pop();
                    argument.text.push('*');
                    let is_found = found::is_found(list);
                    argument.computed |= !is_found;
                    argument.found |= is_found;
                    Certainty::Nothing
                }
            };
            argument.certainty = match (argument.certainty, unknown) {
                (certainty, Certainty::Known) => certainty,
                (Certainty::Known, unknown) if front == 0 => unknown,
                (Certainty::Known, _) => begun(argument.text.get(..front).unwrap_or_default()),
                (certainty, _) => certainty,
            };
        }
        self.spend(argument.text.len());
        argument
    }

    /// Appends the value of a variable, and returns what is known of it.
    fn variable(&mut self, name: &str, quoted: bool, at: usize, argument: &mut Argument) -> Certainty {
        let Some((_, value)) = self.values.iter().rev().find(|(bound, _)| bound == name) else {
            self.doubt(Construct::Variable, at);
            return Certainty::Nothing;
        };
        let is_plain =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./,:@%+".contains(&byte));
        let is_unquoted = !quoted && !value.as_known().is_some_and(is_plain);
        let certainty = value.certainty;
        argument.computed |= value.computed;
        argument.found |= value.found;
        let length = value.text.len();
        if length <= self.budget {
            argument.text.push_str(&value.text);
        }
        if is_unquoted {
            self.doubt(Construct::Unquoted, at);
        }
        self.spend(length);
        certainty
    }
}

/// Returns what is known of a word that begins with this text and goes on with something unknown.
fn begun(text: &str) -> Certainty {
    match text.strip_prefix('-') {
        None => Certainty::Operand,
        Some(rest) if rest.starts_with('-') && rest.contains('=') => Certainty::Value,
        Some(_) => Certainty::Nothing,
    }
}
