//! A word of a command after its expansions, as far as it is known.

/// What is known of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Certainty {
    /// All of its text.
    #[default]
    Known,
    /// How it begins, and that this makes it no option: the name of a file that a glob finds below a folder that is written out, or a word
    /// that begins with the home directory.
    Operand,
    /// The name of a long option up to its `=`, and not its value: `--include=*.rs`.
    Value,
    /// Nothing: it may be an option.
    Nothing,
}

/// An argument of a command, or its program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Argument {
    /// Its text. In the place of what is not known stands `*`.
    pub text: String,
    /// What is known of it.
    pub certainty: Certainty,
    /// Whether it may be several arguments: a glob that finds several files.
    pub many: bool,
    /// Whether a part of it is computed by the line: the output of a command, or what a loop reads. Names of files that a program has found
    /// are not.
    pub computed: bool,
    /// Whether a part of it is a name of a file that a program has found. Such a name may begin with a dot.
    pub found: bool,
    /// Whether it is the name of a branch or tag that `git` has printed, or begins or ends so.
    pub is_reference: bool,
    /// Whether it is a number in digits that the line computes, or several of them, or nothing. Blanks may stand around it.
    pub is_number: bool,
    /// Whether a part of it is a number that the line computes: `1` stands for each of its digits.
    pub is_numbered: bool,
    /// Where it stands in the command line, in bytes.
    pub at: usize,
}

/// Returns the text of the argument at a place; an empty text behind the last.
pub(crate) fn text_at(arguments: &[Argument], at: usize) -> &str {
    arguments.get(at).map_or("", |argument| argument.text.as_str())
}

/// Returns the text of the argument in front of a place; an empty text in front of the first.
pub(crate) fn text_in_front(arguments: &[Argument], at: usize) -> &str {
    at.checked_sub(1).map_or("", |before| text_at(arguments, before))
}

impl Argument {
    /// Returns a name with any digits in the place of those of numbers that the line computes.
    #[must_use]
    pub fn with_any_digits(name: &str) -> String {
        name.replace('1', "[0-9]")
    }

    /// Returns an argument that is known.
    #[must_use]
    pub fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns the text, if all of it is known.
    #[must_use]
    pub fn as_known(&self) -> Option<&str> {
        (self.certainty == Certainty::Known).then_some(self.text.as_str())
    }

    /// Returns whether it is surely no option: known and without a dash at its beginning, or an operand. A single `-` is an operand.
    #[must_use]
    pub fn is_operand(&self) -> bool {
        match self.certainty {
            Certainty::Known => self.text == "-" || !self.text.starts_with('-'),
            Certainty::Operand => true,
            Certainty::Value | Certainty::Nothing => false,
        }
    }

    /// Returns whether it is literal, or as good as that: the names of files that a glob finds in a folder that is written out.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        matches!(self.certainty, Certainty::Known | Certainty::Operand)
    }
}
