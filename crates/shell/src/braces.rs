//! Brace expansion: `{rm,-rf,/}` is three words.

use super::syntax::{Part, Word};
use super::value::Budget;

/// The most words that one word may expand to.
const WORDS_MAX: usize = 256;

/// A piece of a word while braces are expanded.
#[derive(Debug, Clone, Copy)]
pub enum Atom<'a> {
    /// An unquoted character.
    Char(char),
    /// A sequence: `{1..9}`.
    Sequence,
    /// A part that braces leave as it is.
    Part(&'a Part),
}

/// Returns the words that a word with braces stands for; none if they would be too many.
#[must_use]
pub fn expand<'a>(word: &'a Word, budget: &mut Budget) -> Option<Vec<Vec<Atom<'a>>>> {
    let mut atoms = Vec::new();
    let mut has_brace = false;
    for part in &word.parts {
        match part {
            Part::Bare(text) => {
                has_brace |= text.contains('{');
                atoms.extend(text.chars().map(Atom::Char));
            }
            other => atoms.push(Atom::Part(other)),
        }
    }
    if !has_brace {
        return Some(vec![atoms]);
    }
    // Depth first, so that the words come out in order.
    let (mut open, mut done) = (vec![atoms], Vec::new());
    while let Some(atoms) = open.pop() {
        if !budget.spend(atoms.len()) || open.len() + done.len() >= WORDS_MAX {
            return None;
        }
        match group(&atoms) {
            None => done.push(atoms),
            Some(group) => open.extend(group.alternatives(&atoms).into_iter().rev()),
        }
    }
    Some(done)
}

/// The first group of braces that is expanded.
#[derive(Debug)]
struct Group {
    start: usize,
    commas: Vec<usize>,
    end: usize,
}

impl Group {
    /// Returns the words that the group stands for, one brace less in each.
    fn alternatives<'a>(&self, atoms: &[Atom<'a>]) -> Vec<Vec<Atom<'a>>> {
        let part = |from: usize, to: usize| atoms.get(from..to).unwrap_or_default();
        let (before, after) = (part(0, self.start), part(self.end + 1, atoms.len()));
        if self.commas.is_empty() {
            return vec![[before, &[Atom::Sequence], after].concat()];
        }
        let starts = std::iter::once(&self.start).chain(&self.commas);
        let ends = self.commas.iter().chain(std::iter::once(&self.end));
        starts.zip(ends).map(|(from, to)| [before, part(from + 1, *to), after].concat()).collect()
    }
}

/// Finds the group that begins first, in one pass.
fn group(atoms: &[Atom<'_>]) -> Option<Group> {
    let mut open: Vec<Group> = Vec::new();
    let mut first: Option<Group> = None;
    for (at, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Char('{') => open.push(Group { start: at, commas: Vec::new(), end: at }),
            Atom::Char(',') => {
                if let Some(group) = open.last_mut() {
                    group.commas.push(at);
                }
            }
            Atom::Char('}') => {
                let Some(mut group) = open.pop() else { continue };
                group.end = at;
                let inside = atoms.get(group.start + 1..at).unwrap_or_default();
                let is_expanded = !group.commas.is_empty() || is_sequence(inside);
                if is_expanded && first.as_ref().is_none_or(|first| group.start < first.start) {
                    first = Some(group);
                }
            }
            _ => {}
        }
    }
    first
}

/// Returns whether the text is a sequence: `1..9`, `a..z`, `1..9..2`.
fn is_sequence(atoms: &[Atom<'_>]) -> bool {
    let is_ordinary = |atom: &Atom<'_>| matches!(atom, Atom::Char(char) if char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '+'));
    let has_dots = atoms.windows(2).any(|pair| matches!(pair, [Atom::Char('.'), Atom::Char('.')]));
    has_dots && atoms.iter().all(is_ordinary)
}
