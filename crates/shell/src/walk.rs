//! Walks a syntax tree and collects the simple commands that it may execute, in order.

use std::fmt;
use std::rc::Rc;

use super::finding::Unproven;
use super::scope::Scope;
use super::syntax::{
    self, Argument, Assignment, Command, Compound, DEPTH_MAX, Fault, Kind, List, Part, Redirect, RedirectKind, Simple, Word,
};
use super::value::{Budget, EXPANDED_MAX, Field, Hole, expand, expand_whole};
use super::{COMMANDS_MAX, stdin, variables};

/// A simple command that may be executed.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Program and arguments.
    pub words: Vec<Field>,
    /// The ways by which it is reached, from the outside in; none if it stands openly in the line.
    pub ways: Vec<Way>,
    /// Whether it only says what another command amounts to, or is one of two readings: it is compared with blocked patterns and needs
    /// no permission.
    pub assumed: bool,
}

/// A way by which a command is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `$( )` or backticks.
    Substitution,
    /// `<( )` or `>( )`.
    Process,
    /// The body of a function.
    Function,
    /// Behind a program that starts it.
    Behind(&'static str),
    /// In a text that a program hands to a shell.
    TextOf(&'static str),
    /// In what a shell reads.
    Piped,
    /// In a variable that some program executes.
    Variable,
    /// What an option of the program amounts to.
    Meaning,
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Substitution => formatter.write_str("in a command substitution"),
            Self::Process => formatter.write_str("in a process substitution"),
            Self::Function => formatter.write_str("in a function"),
            Self::Behind(program) => write!(formatter, "behind {program}"),
            Self::TextOf(program) => write!(formatter, "in a text given to {program}"),
            Self::Piped => formatter.write_str("in what a shell reads"),
            Self::Variable => formatter.write_str("in a variable that programs execute"),
            Self::Meaning => formatter.write_str("as the meaning of an option"),
        }
    }
}

/// What a command reads.
#[derive(Debug, Clone)]
pub enum Stdin {
    /// What the shell itself reads, or a file: no part of the command line.
    Inherited,
    /// A literal.
    Text(Rc<str>),
    /// The output of commands.
    Unknown,
}

/// Where a command stands.
#[derive(Debug, Clone)]
pub struct Context {
    /// The ways by which its commands are reached, from the outside in.
    pub ways: Vec<Way>,
    /// Whether its commands are assumed, as in [`Reached::assumed`].
    pub assumed: bool,
    /// What it reads unless it is redirected.
    pub stdin: Stdin,
    /// How many constructs are around it.
    pub depth: usize,
    /// Whether it surely runs, in the shell itself: what it assigns is assigned from there on.
    pub is_certain: bool,
}

impl Context {
    /// Returns the context of the command line itself.
    #[must_use]
    pub fn outside() -> Self {
        Self { ways: Vec::new(), assumed: false, stdin: Stdin::Inherited, depth: 0, is_certain: true }
    }

    /// Returns the context one construct deeper.
    #[must_use]
    pub fn inside(&self) -> Self {
        Self { depth: self.depth + 1, is_certain: false, ..self.clone() }
    }

    /// Returns the context one construct deeper, by this way.
    #[must_use]
    pub fn by(&self, way: Way) -> Self {
        let mut context = self.inside();
        context.ways.push(way);
        context
    }

    /// Returns the context with other input.
    #[must_use]
    pub fn reading(&self, stdin: Stdin) -> Self {
        Self { stdin, ..self.clone() }
    }
}

/// Collects what is reached.
#[derive(Debug)]
pub struct Walk {
    /// The commands that were reached.
    pub reached: Vec<Reached>,
    /// What could not be proven, in order, each once.
    pub unproven: Vec<Unproven>,
    /// Texts beside commands that patterns are compared with: files of redirections, assigned values.
    pub texts: Vec<String>,
    /// How much may still be expanded.
    pub budget: Budget,
}

impl Default for Walk {
    fn default() -> Self {
        Self { reached: Vec::new(), unproven: Vec::new(), texts: Vec::new(), budget: Budget(EXPANDED_MAX) }
    }
}

impl Walk {
    /// Notes that something cannot be proven.
    pub fn unproven(&mut self, reason: Unproven) {
        if !self.unproven.contains(&reason) {
            self.unproven.push(reason);
        }
    }

    /// Returns whether nothing more can be learnt.
    pub fn is_over(&mut self, depth: usize) -> bool {
        if self.budget.0 == 0 || self.reached.len() >= COMMANDS_MAX {
            self.unproven(Unproven::TooMuch);
        }
        if depth > DEPTH_MAX {
            self.unproven(Unproven::TooDeep);
        }
        self.unproven.iter().any(|reason| reason.is_fatal())
    }

    /// Walks a text that is executed; what it assigns is added to the scope.
    pub fn text(&mut self, text: &str, scope: &mut Scope, context: &Context) {
        if self.is_over(context.depth) {
            return;
        }
        if !self.budget.spend(text.len()) {
            return self.unproven(Unproven::TooMuch);
        }
        match syntax::parse(text, context.depth) {
            Ok(list) => {
                scope.bind(&list, &mut self.budget);
                self.list(&list, scope, context);
            }
            Err(Fault::Syntax) => self.unproven(Unproven::Unparsable),
            Err(Fault::Depth) => self.unproven(Unproven::TooDeep),
        }
    }

    /// Walks what a text expands to where it is expanded as a here-document is.
    pub fn expanded_text(&mut self, text: &str, scope: &mut Scope, context: &Context) {
        match syntax::parse_document(text, context.depth) {
            Ok(word) => self.word(&word, scope, context),
            Err(Fault::Syntax) => self.unproven(Unproven::Unparsable),
            Err(Fault::Depth) => self.unproven(Unproven::TooDeep),
        }
    }

    /// Walks pipelines in order.
    pub fn list(&mut self, list: &List, scope: &mut Scope, context: &Context) {
        for pipeline in list {
            let mut context = context.clone();
            context.is_certain &= pipeline.commands.len() == 1 && !pipeline.conditional && !pipeline.background;
            for command in &pipeline.commands {
                let stdin = self.command(command, scope, &context);
                context.stdin = stdin;
            }
        }
    }

    /// Walks a command: what it writes, as far as that is known.
    fn command(&mut self, command: &Command, scope: &mut Scope, context: &Context) -> Stdin {
        if self.is_over(context.depth) {
            return Stdin::Unknown;
        }
        let is_certain = context.is_certain && command.redirects.is_empty();
        let mut context = context.inside();
        for redirect in &command.redirects {
            self.redirect(redirect, scope, &mut context);
        }
        match &command.kind {
            Kind::Simple(simple) => {
                context.is_certain = is_certain;
                return self.simple(simple, scope, &context);
            }
            Kind::Function(body) => {
                let _ = self.command(body, scope, &context.by(Way::Function).reading(Stdin::Unknown));
            }
            Kind::Compound(compound) => {
                for word in &compound.words {
                    self.word(word, scope, &context);
                    self.quoted_subscripts(word, scope, &context);
                }
                self.operands(compound, scope);
                self.other_reading(compound, scope, &context);
                self.loop_values(compound, scope, &context);
                let variable = compound.variable.as_deref().filter(|_| compound.iterates);
                if let Some(name) = variable {
                    scope.make_certain(name);
                }
                for list in &compound.lists {
                    self.list(list, scope, &context);
                }
                if let Some(name) = variable {
                    scope.make_uncertain(name);
                }
            }
        }
        Stdin::Unknown
    }

    /// Notes the variable of a loop or coprocess, and the values that it is given.
    fn loop_values(&mut self, compound: &Compound, scope: &mut Scope, context: &Context) {
        let Some(name) = &compound.variable else { return };
        if name != "COPROC" {
            self.assigned(name);
        }
        for field in compound.words.iter().flat_map(|word| expand(word, scope, &mut self.budget)).collect::<Vec<_>>() {
            if has_subscript(&field.text) {
                self.expanded_text(&field.text, &mut scope.for_child(), &context.by(Way::Variable));
            }
        }
    }

    fn simple(&mut self, simple: &Simple, scope: &mut Scope, context: &Context) -> Stdin {
        for assignment in &simple.assignments {
            self.assignment(assignment, scope, context);
            if context.is_certain && simple.words.is_empty() {
                self.make_certain(assignment, scope);
            }
        }
        let mut words = Vec::with_capacity(simple.words.len());
        for argument in &simple.words {
            match argument {
                Argument::Word(word) => {
                    self.word(word, scope, context);
                    words.extend(expand(word, scope, &mut self.budget));
                }
                Argument::Assignment(assignment) => {
                    self.assignment_words(assignment, scope, context);
                    let is_declared =
                        matches!(words.first().and_then(Field::as_known), Some("export" | "declare" | "typeset" | "readonly"));
                    words.push(expand_whole(&assignment.word, scope, &mut self.budget));
                    if context.is_certain && is_declared {
                        self.make_certain(assignment, scope);
                    }
                }
            }
        }
        let output = stdin::output(&words, &context.stdin);
        self.run(words, scope, context);
        output
    }

    /// Walks the substitutions in a word.
    pub fn word(&mut self, word: &Word, scope: &mut Scope, context: &Context) {
        if self.is_over(context.depth) {
            return;
        }
        for part in &word.parts {
            match part {
                Part::Bare(_) | Part::Quoted(_) => {}
                Part::Ambiguous => self.unproven(Unproven::Dialect),
                Part::Evaluated(text) => self.evaluated(text, scope),
                Part::Parameter { name, assigns, prompt, inner, .. } => {
                    if *prompt {
                        self.unproven(Unproven::ShellText);
                    }
                    if let Some(text) = assigns {
                        self.default_value(name, text, scope, context);
                    }
                    self.word(inner, scope, &context.inside());
                }
                Part::Arithmetic(inner) => self.word(inner, scope, &context.inside()),
                Part::Substitution { list, .. } => {
                    self.list(list, scope, &context.by(Way::Substitution).reading(Stdin::Inherited));
                }
                Part::Process(list) => self.list(list, scope, &context.by(Way::Process).reading(Stdin::Unknown)),
            }
        }
    }

    fn make_certain(&mut self, assignment: &Assignment, scope: &mut Scope) {
        if let Some(word) = &assignment.value {
            let value = expand_whole(word, scope, &mut self.budget);
            scope.make_certain_of(&assignment.name, &value);
        }
    }

    fn assignment_words(&mut self, assignment: &Assignment, scope: &mut Scope, context: &Context) {
        self.word(&assignment.word, scope, context);
        for element in &assignment.elements {
            self.word(element, scope, context);
            let field = expand_whole(element, scope, &mut self.budget);
            self.texts.push(field.text);
        }
    }

    fn assignment(&mut self, assignment: &Assignment, scope: &mut Scope, context: &Context) {
        self.unproven(Unproven::Assignment);
        self.assignment_words(assignment, scope, context);
        let field = expand_whole(&assignment.word, scope, &mut self.budget);
        self.variable(&field, scope, context);
        self.texts.push(field.text);
    }

    /// Looks into `NAME=value`, since the values of some variables are executed.
    pub fn variable(&mut self, field: &Field, scope: &mut Scope, context: &Context) {
        let Some((name, value)) = field.text.split_once('=') else { return };
        match variables::role(name) {
            variables::Role::Loader => self.unproven(Unproven::Loader),
            variables::Role::Command if !field.holes.is_empty() => self.unproven(Unproven::ShellText),
            variables::Role::Command => {
                let context = Context { assumed: true, ..context.by(Way::Variable) };
                self.text(value, &mut scope.for_child(), &context);
            }
            variables::Role::Prompt => self.expanded_text(value, &mut scope.for_child(), &context.by(Way::Variable)),
            variables::Role::Other => {}
        }
        // Arithmetic executes what stands in a subscript, in a variable's value too.
        if has_subscript(value) {
            self.expanded_text(value, &mut scope.for_child(), &context.by(Way::Variable));
        }
    }

    fn redirect(&mut self, redirect: &Redirect, scope: &mut Scope, context: &mut Context) {
        self.word(&redirect.target, scope, context);
        match redirect.kind {
            RedirectKind::Duplicate => {}
            RedirectKind::DuplicateInput => context.stdin = Stdin::Unknown,
            RedirectKind::Read | RedirectKind::Write => {
                let target = expand_whole(&redirect.target, scope, &mut self.budget);
                let is_process = target.holes.iter().any(|(_, hole)| *hole == Hole::Process);
                if redirect.kind == RedirectKind::Write && !is_process && !target.as_known().is_some_and(is_harmless_device) {
                    self.unproven(Unproven::Redirection);
                }
                if is_process || target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
                    context.stdin = Stdin::Unknown;
                }
                self.texts.push(target.text);
            }
            RedirectKind::String | RedirectKind::Document => {
                let field = match redirect.document.get() {
                    Some(body) => {
                        self.word(body, scope, context);
                        expand_whole(body, scope, &mut self.budget)
                    }
                    None if redirect.kind == RedirectKind::Document => Field::default(),
                    None => expand_whole(&redirect.target, scope, &mut self.budget),
                };
                // Two inputs, of which the descriptor decides: neither is taken for the one.
                let is_second = !matches!(context.stdin, Stdin::Inherited);
                context.stdin = match field.as_known() {
                    Some(text) if !is_second => Stdin::Text(Rc::from(text)),
                    _ => Stdin::Unknown,
                };
            }
        }
    }
}

/// Returns whether a text has a substitution in a subscript.
#[must_use]
pub fn has_subscript(text: &str) -> bool {
    text.find('[').and_then(|at| text.get(at..)).is_some_and(|rest| rest.contains("$(") || rest.contains("${") || rest.contains('`'))
}

/// Returns whether the path is a device that keeps nothing of what is written into it.
fn is_harmless_device(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/fd/1" | "/dev/fd/2")
}
