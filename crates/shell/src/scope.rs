//! The variables of a command line: what it assigns, wherever that happens.
//!
//! A variable has a known value only if it is given the same literal everywhere, and surely has it by now: by an assignment that stands
//! openly in the command line, and not in a condition, a subshell, a loop or a pipe. Otherwise it may be empty, and then `$X sudo id`
//! executes `sudo`, and `r${X}m` is `rm`.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::arithmetic;
use super::syntax::{Argument, Assignment, Command, Kind, List, Part, Redirect, Simple, Word};
use super::value::{Budget, Field, Hole, expand_whole};

/// The builtins that give variables which they name a value that the command line does not show.
const SETTERS: [&str; 8] = ["read", "mapfile", "readarray", "printf", "getopts", "unset", "readonly", "let"];
/// The builtins that may give such a value too, or make a name a reference to another.
const DECLARERS: [&str; 3] = ["declare", "typeset", "local"];

/// The variables that the shell sets itself, whatever is assigned.
const MAGIC: [&str; 18] = [
    "_",
    "COPROC",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "OLDPWD",
    "OPTARG",
    "OPTIND",
    "PIPESTATUS",
    "RANDOM",
    "REPLY",
    "SECONDS",
    "SRANDOM",
];

/// What a simple command does with the names among its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Other,
    Setter,
    Declarer,
    /// `export NAME` leaves the value as it is.
    Exporter,
}

/// What is known of a variable.
#[derive(Debug, Clone)]
struct Variable {
    value: Field,
    /// Whether all its values are numbers, which arithmetic can evaluate without harm.
    is_number: bool,
}

/// The variables in force.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Shared with the scopes of other shells until one of them assigns.
    variables: Rc<FxHashMap<String, Variable>>,
    /// The variables that surely have their value by now.
    certain: FxHashSet<String>,
    /// Whether assignments are being collected: then those that were found count as made.
    binding: bool,
    /// Whether `$1` and `$@` are arguments that the command line itself gives.
    positional: bool,
    /// Whether variables may be set that are not named: by `eval`.
    dynamic: bool,
}

impl Scope {
    /// Adds what these commands assign.
    pub fn bind(&mut self, list: &List, budget: &mut Budget) {
        // What is shared is copied where something is assigned.
        if !budget.spend(self.weight()) {
            *self = Self { dynamic: true, positional: true, ..Self::default() };
        }
        self.binding = true;
        self.bind_list(list, budget);
        self.binding = false;
    }

    fn bind_list(&mut self, list: &List, budget: &mut Budget) {
        for pipeline in list {
            for command in &pipeline.commands {
                self.bind_command(command, budget);
            }
        }
    }

    /// Notes that the positional parameters are not those of the caller any more.
    pub fn set_positional(&mut self) {
        self.positional = true;
    }

    /// Returns what a copy takes of the budget.
    fn weight(&self) -> usize {
        self.variables.iter().map(|(name, variable)| 64 + name.len() + variable.value.weight()).sum()
    }

    /// Returns whether words are split elsewhere than at blanks.
    #[must_use]
    pub fn sets_ifs(&self) -> bool {
        self.dynamic || self.variables.contains_key("IFS")
    }

    /// Returns what a parameter stands for. Its copy is taken from the budget, and where that is spent nothing is known.
    #[must_use]
    pub fn value(&self, name: &str, modified: bool, budget: &mut Budget) -> Field {
        let hole = |hole| Field { holes: vec![(0, hole)], ..Field::default() };
        match name {
            "#" | "?" | "$" | "!" | "-" => hole(Hole::Plain),
            _ if modified => hole(Hole::Computed),
            _ if name.starts_with(|char: char| char.is_ascii_digit() || matches!(char, '@' | '*')) => {
                hole(if self.positional { Hole::Computed } else { Hole::Ambient })
            }
            _ if MAGIC.contains(&name) || name.starts_with("BASH") => hole(Hole::Computed),
            _ => match self.variables.get(name) {
                Some(Variable { value, .. }) if self.binding || self.certain.contains(name) => match budget.spend(value.weight()) {
                    true => value.clone(),
                    false => hole(Hole::Computed),
                },
                // Its value or none.
                Some(Variable { value, .. }) => hole(if value.is_plain() { Hole::Plain } else { Hole::Computed }),
                None => hole(if self.dynamic { Hole::Computed } else { Hole::Ambient }),
            },
        }
    }

    /// Gives a variable a value, beside those that it has.
    pub fn assign(&mut self, name: &str, value: Field) {
        let is_number = value.as_known().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        self.assign_variable(name, value, is_number);
    }

    fn assign_variable(&mut self, name: &str, mut value: Field, is_number: bool) {
        // Only words split.
        value.splits = false;
        let variables = Rc::make_mut(&mut self.variables);
        if let Some(variable) = variables.get_mut(name) {
            variable.is_number &= is_number;
            let present = &mut variable.value;
            if *present != value {
                let hole = if present.is_plain() && value.is_plain() { Hole::Plain } else { Hole::Computed };
                *present = Field { holes: vec![(0, hole)], ..Field::default() };
            }
        } else {
            variables.insert(name.to_owned(), Variable { value, is_number });
        }
    }

    /// Notes that the variable has its value from here on.
    pub fn make_certain(&mut self, name: &str) {
        self.certain.insert(name.to_owned());
    }

    /// Notes that the variable has this value from here on, if it is never given another.
    pub fn make_certain_of(&mut self, name: &str, value: &Field) {
        if self.variables.get(name).is_some_and(|Variable { value: known, .. }| known.text == value.text && known.holes == value.holes) {
            self.make_certain(name);
        }
    }

    /// Notes that the variable may not have its value any more.
    pub fn make_uncertain(&mut self, name: &str) {
        self.certain.remove(name);
    }

    /// Returns a copy for another shell, in which variables may not be set.
    #[must_use]
    pub fn for_child(&self) -> Self {
        Self { variables: Rc::clone(&self.variables), certain: FxHashSet::default(), ..*self }
    }

    /// Returns the value that a variable may be given, if it is not only given numbers.
    #[must_use]
    pub fn text_of(&self, name: &str) -> Option<&Field> {
        self.variables.get(name).filter(|variable| !variable.is_number).map(|variable| &variable.value)
    }

    fn assign_unknown(&mut self, name: &str) {
        self.assign(name, Field::unknown(Hole::Computed));
    }

    fn bind_command(&mut self, command: &Command, budget: &mut Budget) {
        for redirect in &command.redirects {
            self.bind_redirect(redirect, budget);
        }
        match &command.kind {
            Kind::Simple(simple) => self.bind_simple(simple, budget),
            Kind::Function(body) => {
                self.positional = true;
                self.bind_command(body, budget);
            }
            Kind::Compound(compound) => {
                for word in &compound.words {
                    self.bind_word(word, budget);
                }
                if let Some(name) = &compound.variable {
                    self.bind_loop(name, &compound.words, budget);
                }
                for list in &compound.lists {
                    self.bind_list(list, budget);
                }
            }
        }
    }

    /// Notes a loop's variable: it is not known, but no option if none of its values is one.
    fn bind_loop(&mut self, name: &str, words: &[Word], budget: &mut Budget) {
        if words.is_empty() {
            return self.assign_unknown(name);
        }
        // The words are expanded before the first of them is assigned.
        let fields: Vec<Field> = words.iter().flat_map(|word| super::value::expand(word, self, budget)).collect();
        for field in fields {
            self.assign(name, field);
        }
    }

    fn bind_simple(&mut self, simple: &Simple, budget: &mut Budget) {
        for assignment in &simple.assignments {
            self.bind_assignment(assignment, budget);
        }
        let mut role = Role::Other;
        for (at, argument) in simple.words.iter().enumerate() {
            match argument {
                Argument::Assignment(assignment) => {
                    self.bind_assignment(assignment, budget);
                    // It is an argument like any other, unless the program is `env` or its like.
                    if role == Role::Other {
                        self.assign(&assignment.name, Field { holes: vec![(0, Hole::Ambient)], ..Field::default() });
                    }
                }
                Argument::Word(word) => {
                    self.bind_word(word, budget);
                    let field = expand_whole(word, self, budget);
                    role = self.bind_argument(&field, at, role);
                }
            }
        }
    }

    /// Notes what a word of a simple command does to variables; the builtin may stand behind `command`, `builtin` and their options.
    fn bind_argument(&mut self, field: &Field, at: usize, role: Role) -> Role {
        let Some(text) = field.as_known() else {
            let is_open = field.holes.iter().any(|(at, hole)| *at == 0 && *hole == Hole::Computed);
            self.dynamic |= is_open && role != Role::Other;
            return role;
        };
        match (role, text) {
            (_, "eval") => self.dynamic = true,
            (_, "set" | "shift") => self.positional = true,
            (Role::Other, builtin) if at < 4 && SETTERS.contains(&builtin) => return Role::Setter,
            (Role::Other, builtin) if at < 4 && DECLARERS.contains(&builtin) => return Role::Declarer,
            (Role::Other, "export") if at < 4 => return Role::Exporter,
            // A reference to a variable: what is assigned to one is assigned to the other.
            (Role::Declarer, option) if option.starts_with('-') => self.dynamic |= option.contains('n'),
            (Role::Setter | Role::Declarer | Role::Exporter, text) => {
                let name: String = text.chars().take_while(|char| char.is_ascii_alphanumeric() || *char == '_').collect();
                let rest = text.get(name.len()..).unwrap_or_default();
                let sets = rest.starts_with(['=', '[', '+']) || (rest.is_empty() && role != Role::Exporter);
                if sets && !name.is_empty() {
                    self.assign_unknown(&name);
                }
            }
            _ => {}
        }
        role
    }

    fn bind_assignment(&mut self, assignment: &Assignment, budget: &mut Budget) {
        self.bind_word(&assignment.word, budget);
        for word in &assignment.elements {
            self.bind_word(word, budget);
        }
        match &assignment.value {
            Some(word) => {
                let value = expand_whole(word, self, budget);
                self.assign(&assignment.name, value);
            }
            None => self.assign_unknown(&assignment.name),
        }
    }

    fn bind_redirect(&mut self, redirect: &Redirect, budget: &mut Budget) {
        self.bind_word(&redirect.target, budget);
        if let Some(word) = redirect.document.get() {
            self.bind_word(word, budget);
        }
    }

    fn bind_word(&mut self, word: &Word, budget: &mut Budget) {
        for part in &word.parts {
            match part {
                Part::Bare(_) | Part::Quoted(_) | Part::Ambiguous => {}
                Part::Evaluated(text) => {
                    for name in arithmetic::assigned(text) {
                        self.assign_variable(name, Field { holes: vec![(0, Hole::Plain)], ..Field::default() }, true);
                    }
                }
                Part::Parameter { name, assigns, inner, .. } => {
                    if assigns.is_some() {
                        self.assign_unknown(name);
                    }
                    self.bind_word(inner, budget);
                }
                Part::Substitution { list, .. } | Part::Process(list) => self.bind_list(list, budget),
                Part::Arithmetic(inner) => self.bind_word(inner, budget),
            }
        }
    }
}
