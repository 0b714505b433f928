//! Looks into texts that bash evaluates, in arithmetic, subscripts, offsets and tests, and into what other shells read there.
//!
//! Arithmetic evaluates the values of the variables that it names, executes the substitutions in their subscripts, and assigns.
//! Which name an operator belongs to does not matter here: where a text assigns, every name in it may be assigned.

use super::finding::Unproven;
use super::scope::Scope;
use super::syntax::{self, Compound, Fault, Kind, Part, Word};
use super::value::{Field, Hole};
use super::variables;
use super::walk::{Context, Reached, Walk, Way, has_subscript};

/// Returns the names of variables in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.split(move |char| !is_name(char)).filter(|name| name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_'))
}

/// Returns whether an operator in the text assigns: `=`, `+=` and their like, `++`, `--`.
fn assigns(text: &str) -> bool {
    let plain = text.replace("<<=", "=").replace(">>=", "=");
    let without = ["==", "!=", "<=", ">="].iter().fold(plain, |text, operator| text.replace(operator, " "));
    without.contains('=') || text.contains("++") || text.contains("--")
}

/// Returns the variables that an arithmetic text may assign.
pub fn assigned(text: &str) -> impl Iterator<Item = &str> {
    let does = assigns(text);
    names(text).filter(move |_| does)
}

impl Walk {
    /// Notes that a variable is assigned otherwise than by `NAME=value`.
    pub fn assigned(&mut self, name: &str) {
        if !variables::is_ordinary(name) {
            self.unproven(Unproven::Assignment);
        }
        if variables::is_special(name) {
            self.unproven(Unproven::Loader);
        }
    }

    /// Looks into a text that is evaluated as arithmetic.
    pub fn evaluated(&mut self, text: &str, scope: &Scope) {
        for name in assigned(text) {
            self.assigned(name);
        }
        for name in names(text) {
            let Some(value) = scope.text_of(name) else { continue };
            self.unproven(Unproven::Evaluated);
            // Part of this subscript is not known.
            if value.text.contains('[') && !value.holes.is_empty() {
                self.unproven(Unproven::ShellText);
            }
        }
    }

    /// Assigns as `${name:=text}` does, where the variable is not set.
    pub fn default_value(&mut self, name: &str, text: &str, scope: &mut Scope, context: &Context) {
        self.unproven(Unproven::Assignment);
        self.assigned(name);
        let text = text.replace(['\'', '"', '\\'], "");
        if has_subscript(&text) {
            self.expanded_text(&text, &mut scope.for_child(), &context.by(Way::Variable));
        }
        self.texts.push(text);
    }

    /// Walks the substitutions in subscripts of quoted words, which tests and arithmetic execute: `[[ -v 'a[$(id)]' ]]`.
    pub fn quoted_subscripts(&mut self, word: &Word, scope: &mut Scope, context: &Context) {
        for part in &word.parts {
            match part {
                Part::Quoted(text) if has_subscript(text) => self.expanded_text(text, scope, &context.by(Way::Substitution)),
                _ => {}
            }
        }
    }

    /// Evaluates the operands of `[[ ]]` where it compares numbers or looks up variables.
    pub fn operands(&mut self, compound: &Compound, scope: &Scope) {
        let evaluates = |word: &Word| matches!(word.bare(), Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R"));
        if !compound.is_test || !compound.words.iter().any(evaluates) {
            return;
        }
        for part in compound.words.iter().flat_map(|word| &word.parts) {
            match part {
                Part::Bare(text) if text.starts_with('-') => {}
                Part::Bare(text) | Part::Quoted(text) | Part::Parameter { name: text, .. } => self.evaluated(text, scope),
                _ => {}
            }
        }
    }

    /// Walks the other reading of `(( ))` and `[[ ]]`.
    pub fn other_reading(&mut self, compound: &Compound, scope: &Scope, context: &Context) {
        let Some(text) = compound.text.as_deref().filter(|text| !text.trim().is_empty()) else { return };
        let (from, was_unknown) = (self.reached.len(), self.unproven.contains(&Unproven::CommandPosition));
        self.read_otherwise(compound, text, scope, context);
        // To such a shell `[[ -f x && $y == z ]]` starts the program that `$y` names, which the environment decides. The allow side
        // refuses that.
        let is_ambient =
            |word: &Field| word.text.is_empty() && !word.holes.is_empty() && word.holes.iter().all(|(_, hole)| *hole == Hole::Ambient);
        let is_alone = |reached: &Reached| matches!(reached.words.as_slice(), [word] if word.as_known().is_some());
        let reached = self.reached.get(from..).unwrap_or_default();
        if !was_unknown && reached.iter().all(|reached| is_alone(reached) || reached.words.first().is_some_and(is_ambient)) {
            self.unproven.retain(|reason| *reason != Unproven::CommandPosition);
        }
    }

    /// Walks `(( ))` and `[[ ]]` as a shell reads them that does not know them: as subshells, and as a program called `[[`.
    fn read_otherwise(&mut self, compound: &Compound, text: &str, scope: &Scope, context: &Context) {
        if !self.budget.spend(text.len() + 8) {
            return self.unproven(Unproven::TooMuch);
        }
        let prefixed = if compound.is_test { format!(": {text} ]]") } else { text.to_owned() };
        let mut list = match syntax::parse(&prefixed, context.depth) {
            Ok(list) => list,
            Err(Fault::Depth) => return self.unproven(Unproven::TooDeep),
            Err(Fault::Syntax) => {
                self.unproven(Unproven::Evaluated);
                return self.fragments(text, compound.is_test, scope, context);
            }
        };
        // The program `[[` itself does nothing; its words have been walked.
        if let Some(command) = list.first_mut().and_then(|pipeline| pipeline.commands.first_mut()).filter(|_| compound.is_test) {
            command.kind = Kind::Compound(Compound::default());
        }
        let mut scope = scope.for_child();
        scope.bind(&list, &mut self.budget);
        self.list(&list, &mut scope, context);
    }

    /// Notes pieces of a text that is not understood as a whole, to be compared with blocked patterns.
    fn fragments(&mut self, text: &str, is_test: bool, scope: &Scope, context: &Context) {
        let context = Context { assumed: true, ..context.clone() };
        for piece in text.split(['|', '&', ';', '(', ')', '\n']).skip(usize::from(is_test)).filter(|piece| !piece.trim().is_empty()) {
            if !self.budget.spend(piece.len() + 8) {
                return self.unproven(Unproven::TooMuch);
            }
            if let Ok(list) = syntax::parse(piece, context.depth) {
                self.list(&list, &mut scope.for_child(), &context);
            }
        }
    }
}
