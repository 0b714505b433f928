//! Walks what a command executes beside itself: shells and builtins that execute texts, and, by their tables, other programs.

use super::finding::Unproven;
use super::scope::Scope;
use super::value::{Field, Hole};
use super::walk::{Context, Reached, Stdin, Walk, Way, has_subscript};
use super::{executors, git, starters};

/// The programs that execute a text, a file or what they read.
const SHELLS: [&str; 13] = ["sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "fish", "tcsh", "csh", "yash"];
/// The builtins that assign `NAME=value`, which may be quoted.
const DECLARERS: [&str; 6] = ["declare", "typeset", "local", "export", "readonly", "let"];
/// The builtins that evaluate subscripts in their arguments, and execute the substitutions in them.
const EVALUATORS: [&str; 14] =
    ["let", "declare", "typeset", "local", "export", "readonly", "read", "unset", "printf", "test", "[", "mapfile", "wait", "getopts"];

impl Walk {
    /// Notes a command, and walks what it executes beside itself.
    pub fn run(&mut self, words: Vec<Field>, scope: &mut Scope, context: &Context) {
        let Some(first) = words.first() else { return };
        let program = first.program().map(str::to_owned);
        if !self.budget.spend(words.iter().map(|word| word.weight() + 8).sum()) {
            return self.unproven(Unproven::TooMuch);
        }
        self.reached.push(Reached { words: words.clone(), ways: context.ways.clone(), assumed: context.assumed });
        if self.reached.len() >= super::COMMANDS_MAX {
            return self.unproven(Unproven::TooMuch);
        }
        if context.depth > super::syntax::DEPTH_MAX {
            return self.unproven(Unproven::TooDeep);
        }
        let Some(program) = program else { return self.unproven(Unproven::CommandPosition) };
        let arguments = words.get(1..).unwrap_or_default();
        if let Some(shell) = SHELLS.iter().find(|shell| **shell == program) {
            return self.shell(shell, arguments, scope, context);
        }
        match program.as_str() {
            // Behind `time`, which is a program to other shells, stand its options.
            _ if program.starts_with('-') => starters::run(self, "time", &words, scope, &Context { assumed: true, ..context.clone() }),
            "eval" => self.eval(arguments, scope, context),
            "trap" => self.trap(arguments, scope, context),
            "alias" => self.aliases(arguments, scope, context),
            "source" | "." => self.source(arguments, scope, context),
            "at" | "batch" | "crontab" => self.piped(scope, context),
            // The shell itself reads on from what is redirected here.
            "exec" if arguments.is_empty() && !matches!(context.stdin, Stdin::Inherited) => self.unproven(Unproven::DataIntoShell),
            "hash" | "enable" if arguments.iter().any(|word| matches!(word.as_known(), Some("-p" | "-f"))) => {
                self.unproven(Unproven::Loader)
            }
            "git" => git::run(self, arguments, scope, context),
            _ => {
                self.declarations(&program, arguments, scope, context);
                executors::run(self, &program, arguments, scope, context);
                starters::run(self, &program, arguments, scope, context);
            }
        }
    }

    /// Walks what a shell executes: `sh -c text`, `sh file`, `… | sh`.
    fn shell(&mut self, shell: &'static str, arguments: &[Field], scope: &mut Scope, context: &Context) {
        let (mut takes_text, mut reads) = (false, false);
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            let Some(text) = word.as_known() else { break };
            let Some(letters) = text.strip_prefix(['-', '+']) else { break };
            at += 1;
            match letters {
                "" | "-" => break,
                "-rcfile" | "-init-file" => at += 1,
                _ if letters.starts_with('-') => {}
                _ => {
                    takes_text |= text.starts_with('-') && letters.contains('c');
                    reads |= letters.contains('s');
                    at += letters.bytes().filter(|letter| b"oO".contains(letter)).count();
                }
            }
        }
        let Some(operand) = arguments.get(at) else {
            // `sh -c` alone is an error.
            if !takes_text {
                self.piped(scope, context);
            }
            return;
        };
        if takes_text {
            let mut inner = scope.for_child();
            if arguments.len() > at + 1 {
                inner.set_positional();
            }
            let context = context.by(Way::TextOf(shell));
            return self.shell_text(operand, &mut inner, &context);
        }
        if operand.hides_option() {
            self.unproven(Unproven::ShellText);
        } else if reads {
            self.piped(scope, context);
        } else {
            self.script(operand, scope, context);
        }
    }

    /// Notes a file that is executed as a script: it is not looked into, unless it is a pipe.
    fn script(&mut self, file: &Field, scope: &mut Scope, context: &Context) {
        let is_stdin = matches!(file.as_known(), Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"));
        if is_stdin {
            self.piped(scope, context);
        } else if file.holes.iter().any(|(_, hole)| *hole == Hole::Process)
            || file.text.starts_with("/dev/")
            || file.text.starts_with("/proc/")
        {
            self.unproven(Unproven::DataIntoShell);
        }
    }

    /// Walks what a shell reads from its input.
    pub fn piped(&mut self, scope: &mut Scope, context: &Context) {
        match &context.stdin {
            Stdin::Inherited => {}
            Stdin::Text(text) => {
                let text = text.clone();
                self.text(&text, &mut scope.for_child(), &context.by(Way::Piped).reading(Stdin::Inherited));
            }
            Stdin::Unknown => self.unproven(Unproven::DataIntoShell),
        }
    }

    /// Walks a text that a shell executes.
    pub fn shell_text(&mut self, text: &Field, scope: &mut Scope, context: &Context) {
        if text.as_known().is_some() {
            return self.text(&text.text, scope, context);
        }
        let is_computed = text.splits || text.holes.iter().any(|(_, hole)| matches!(hole, Hole::Computed | Hole::Process));
        self.unproven(if is_computed { Unproven::ShellText } else { Unproven::ExpandedShellText });
        // What is known of it is looked at nevertheless, with a variable in the place of each hole.
        let mut filled = String::new();
        let mut from = 0;
        for (at, _) in &text.holes {
            filled.push_str(text.text.get(from..*at).unwrap_or_default());
            filled.push_str("${_}");
            from = *at;
        }
        filled.push_str(text.text.get(from..).unwrap_or_default());
        self.text(&filled, scope, context);
    }

    /// Walks the text of `eval`, which joins its arguments and executes them in the shell itself.
    fn eval(&mut self, arguments: &[Field], scope: &mut Scope, context: &Context) {
        let arguments = match arguments.split_first() {
            Some((first, rest)) if first.as_known() == Some("--") => rest,
            _ => arguments,
        };
        let context = context.by(Way::TextOf("eval"));
        self.shell_text(&join(arguments), scope, &context);
    }

    /// Walks the text of `trap text signal…`.
    fn trap(&mut self, arguments: &[Field], scope: &mut Scope, context: &Context) {
        let operand = arguments.iter().find(|word| !matches!(word.as_known(), Some("--")));
        match operand {
            Some(word) if matches!(word.as_known(), Some("-" | "-p" | "-l" | "-P")) => {}
            Some(word) => self.shell_text(word, scope, &context.by(Way::TextOf("trap"))),
            None => {}
        }
    }

    /// Walks the text of `alias name=text`, with whatever may follow the name.
    fn aliases(&mut self, arguments: &[Field], scope: &mut Scope, context: &Context) {
        for word in arguments {
            let Some(text) = word.as_known() else {
                self.unproven(Unproven::ShellText);
                continue;
            };
            let Some((_, text)) = text.split_once('=') else { continue };
            let mut inner = scope.for_child();
            inner.set_positional();
            self.text(&format!("{text} \"$@\""), &mut inner, &context.by(Way::TextOf("alias")));
        }
    }

    /// Notes the file of `source file`.
    fn source(&mut self, arguments: &[Field], scope: &mut Scope, context: &Context) {
        match arguments.first() {
            Some(file) if file.as_known().is_none() && file.hides_option() => self.unproven(Unproven::DataIntoShell),
            Some(file) => self.script(file, scope, context),
            None => {}
        }
    }

    /// Walks the assignments among the arguments of builtins, and the substitutions in subscripts that they evaluate.
    fn declarations(&mut self, program: &str, arguments: &[Field], scope: &mut Scope, context: &Context) {
        if DECLARERS.contains(&program) {
            for word in arguments.iter().filter(|word| word.text.contains('=')) {
                self.unproven(Unproven::Assignment);
                self.variable(word, scope, context);
                self.texts.push(word.text.clone());
            }
        }
        let evaluates = EVALUATORS.contains(&program) && (program != "printf" || arguments.first().and_then(Field::as_known) == Some("-v"));
        if evaluates {
            for word in arguments.iter().filter(|word| program == "let" || word.text.contains('[')) {
                self.evaluated(&word.text, scope);
            }
            for word in arguments.iter().filter(|word| has_subscript(&word.text)) {
                self.expanded_text(&word.text, &mut scope.for_child(), &context.by(Way::Substitution));
            }
        }
    }
}

/// Returns the words with a space between them.
#[must_use]
pub fn join(words: &[Field]) -> Field {
    let mut joined = Field::default();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            joined.text.push(' ');
        }
        let offset = joined.text.len();
        joined.text.push_str(&word.text);
        joined.holes.extend(word.holes.iter().map(|(at, hole)| (at + offset, *hole)));
        joined.splits |= word.splits && word.holes.iter().any(|(_, hole)| *hole == Hole::Computed);
    }
    joined
}
