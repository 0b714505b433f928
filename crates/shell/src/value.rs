//! Expands words as bash does: the result is text, with holes where that is not known.

use super::braces::{self, Atom};
use super::scope::Scope;
use super::syntax::{Part, Word};

/// Why a piece of a word is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hole {
    /// A number, a path that bash makes up, or one of several texts none of which is an option.
    Plain,
    /// Names of files.
    Glob,
    /// A variable that the command line does not set.
    Ambient,
    /// The path of a pipe to other commands: `<( )`.
    Process,
    /// The output of a command, or a variable that holds something of the kind: it can be anything, an option too.
    Computed,
}

/// One word after expansion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    /// What is known of its text.
    pub text: String,
    /// Where in the text something is missing, in order.
    pub holes: Vec<(usize, Hole)>,
    /// Whether it may turn out to be several words, or none.
    pub splits: bool,
}

impl Field {
    /// Returns a word that is known.
    #[must_use]
    pub fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns a word of which nothing is known.
    #[must_use]
    pub fn unknown(hole: Hole) -> Self {
        Self { holes: vec![(0, hole)], splits: true, ..Self::default() }
    }

    /// Returns the text, if all of it is known.
    #[must_use]
    pub fn as_known(&self) -> Option<&str> {
        self.holes.is_empty().then_some(self.text.as_str())
    }

    /// Returns the name of the program at this path, if it is known: the last segment without control characters.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        let name_at = self.text.rfind('/').map_or(0, |slash| slash + 1);
        let is_known = self.holes.last().is_none_or(|(at, _)| *at < name_at);
        // A hole that splits may hide a word before this one.
        let name = self.text.get(name_at..)?.trim_matches(char::is_control);
        (is_known && !self.splits && !name.is_empty()).then_some(name)
    }

    /// Returns whether it may be an option, or bring one, that cannot be read off.
    #[must_use]
    pub fn hides_option(&self) -> bool {
        let is_open = |(at, hole): &(usize, Hole)| *hole == Hole::Computed && (*at == 0 || self.splits);
        self.holes.iter().any(is_open) || (self.text.starts_with('-') && self.holes.iter().any(|(_, hole)| *hole != Hole::Process))
    }

    /// Returns whether it is no option whatever it turns out to be, even if it is split.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let begins = self.text.split([' ', '\t', '\n']).any(|word| word.starts_with('-'));
        !begins && self.holes.iter().all(|(_, hole)| *hole != Hole::Computed)
    }

    /// Returns what it takes of the budget.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.text.len() + self.holes.len() * size_of::<(usize, Hole)>()
    }

    fn hole(&mut self, hole: Hole) {
        self.hole_at(self.text.len(), hole);
    }

    /// Notes a hole behind those that there are. Of each kind there is one at a place, so that holes do not grow by doubling.
    fn hole_at(&mut self, at: usize, hole: Hole) {
        let is_present = self.holes.iter().rev().take_while(|(other, _)| *other == at).any(|(_, other)| *other == hole);
        if !is_present {
            self.holes.push((at, hole));
        }
    }

    /// Appends another word's text and holes.
    fn append(&mut self, other: &Self) {
        let offset = self.text.len();
        self.text.push_str(&other.text);
        for (at, hole) in &other.holes {
            self.hole_at(at + offset, *hole);
        }
    }
}

/// The most bytes that all expansions of a command line may have together, their holes included, so that nothing grows by doubling.
pub const EXPANDED_MAX: usize = 1 << 20;

/// What is left of [`EXPANDED_MAX`].
#[derive(Debug)]
pub struct Budget(pub usize);

impl Budget {
    /// Spends so many bytes; returns false if they are not there.
    pub fn spend(&mut self, bytes: usize) -> bool {
        let enough = self.0 >= bytes;
        self.0 = self.0.saturating_sub(bytes);
        enough
    }
}

/// Returns the words that a word expands to.
#[must_use]
pub fn expand(word: &Word, scope: &Scope, budget: &mut Budget) -> Vec<Field> {
    if let Some(text) = word.bare()
        && !text.contains(['{', '*', '?', '[', '~'])
    {
        return vec![Field::known(text)];
    }
    let Some(words) = braces::expand(word, budget) else { return vec![Field::unknown(Hole::Computed)] };
    let mut fields = Vec::with_capacity(words.len());
    for atoms in words {
        Expansion { scope, budget, fields: &mut fields, field: Field::default(), started: false }.run(&atoms);
    }
    fields
}

/// Returns what a word stands for where it is not split: the value of an assignment, a here-document.
#[must_use]
pub fn expand_whole(word: &Word, scope: &Scope, budget: &mut Budget) -> Field {
    let mut field = Field::default();
    for part in &word.parts {
        match part {
            Part::Bare(text) | Part::Quoted(text) => {
                if field.text.is_empty() && field.holes.is_empty() && matches!(part, Part::Bare(_)) && text.starts_with('~') {
                    field.hole(Hole::Ambient);
                }
                if !budget.spend(text.len()) {
                    return Field::unknown(Hole::Computed);
                }
                field.text.push_str(text);
            }
            Part::Parameter { name, modified, .. } => field.append(&scope.value(name, *modified, budget)),
            Part::Substitution { .. } => field.hole(Hole::Computed),
            Part::Process(_) => field.hole(Hole::Process),
            Part::Arithmetic(_) => field.hole(Hole::Plain),
            Part::Evaluated(_) | Part::Ambiguous => {}
        }
    }
    field
}

/// The expansion of one word behind its braces.
struct Expansion<'a> {
    scope: &'a Scope,
    budget: &'a mut Budget,
    fields: &'a mut Vec<Field>,
    field: Field,
    /// Whether the current word is a word even if it stays empty.
    started: bool,
}

impl Expansion<'_> {
    fn run(mut self, atoms: &[Atom<'_>]) {
        let mut brackets = atoms.iter().filter(|atom| matches!(atom, Atom::Char(']'))).count();
        for (index, atom) in atoms.iter().enumerate() {
            match atom {
                Atom::Char(char) => {
                    if *char == ']' {
                        brackets -= 1;
                    }
                    self.bare(*char, index == 0, brackets > 0);
                }
                Atom::Sequence => {
                    self.field.hole(Hole::Plain);
                    self.started = true;
                }
                Atom::Part(part) => self.part(part),
            }
        }
        self.flush();
    }

    fn bare(&mut self, char: char, is_first: bool, closes: bool) {
        self.started = true;
        match char {
            '*' | '?' => self.field.hole(Hole::Glob),
            '[' if closes => self.field.hole(Hole::Glob),
            '~' if is_first => self.field.hole(Hole::Ambient),
            _ => self.field.text.push(char),
        }
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Bare(text) | Part::Quoted(text) => {
                self.started = true;
                // Braces repeat it.
                match self.budget.spend(text.len()) {
                    true => self.field.text.push_str(text),
                    false => self.field.hole(Hole::Computed),
                }
            }
            Part::Parameter { name, modified, quoted, .. } => self.parameter(name, *modified, *quoted),
            Part::Substitution { quoted, .. } => {
                self.started = true;
                self.field.hole(Hole::Computed);
                self.field.splits |= !quoted;
            }
            Part::Process(_) => {
                self.started = true;
                self.field.hole(Hole::Process);
            }
            Part::Arithmetic(_) => {
                self.started = true;
                self.field.hole(Hole::Plain);
            }
            Part::Evaluated(_) | Part::Ambiguous => {}
        }
    }

    fn parameter(&mut self, name: &str, modified: bool, quoted: bool) {
        if name == "IFS" && !modified && !quoted && !self.scope.sets_ifs() {
            self.flush();
            return;
        }
        let value = self.scope.value(name, modified, self.budget);
        if quoted {
            self.started = true;
            // `"$@"` is as many words as there are.
            self.field.splits |= name == "@";
            self.field.append(&value);
            return;
        }
        // What the environment holds is taken for one word: the command line has no say in it.
        self.field.splits |= value.holes.iter().any(|(_, hole)| *hole != Hole::Ambient);
        if self.scope.sets_ifs() && !value.text.is_empty() {
            self.started = true;
            self.field.hole(Hole::Computed);
            self.field.splits = true;
            return;
        }
        self.split(&value);
    }

    /// Appends an unquoted value: blanks separate words, and patterns stand for files.
    fn split(&mut self, value: &Field) {
        let mut holes = value.holes.iter().peekable();
        for (at, char) in value.text.char_indices() {
            while let Some((_, hole)) = holes.next_if(|(hole_at, _)| *hole_at <= at) {
                self.field.hole(*hole);
                self.started = true;
            }
            match char {
                ' ' | '\t' | '\n' => self.flush(),
                _ => self.bare(char, false, true),
            }
        }
        for (_, hole) in holes {
            self.field.hole(*hole);
            self.started = true;
        }
    }

    /// Ends the current word.
    fn flush(&mut self) {
        if self.started {
            self.fields.push(std::mem::take(&mut self.field));
        }
        self.started = false;
    }
}
