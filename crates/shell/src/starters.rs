//! Programs that start the command among their arguments: how the tables of [`super::wrappers`] are read.

use super::finding::Unproven;
use super::run::join;
use super::scope::Scope;
use super::syntax;
use super::value::Field;
use super::walk::{Context, Walk, Way};
use super::wrappers::{LONG_PLAIN, RUNNERS, SHELL_WITHOUT_COMMAND, TEXT_OPTIONS, Takes, Wrapper, wrapper};

/// The most words behind a runner that are taken for a command's beginning.
const BEGINNINGS_MAX: usize = 32;

/// Walks what the program starts.
pub fn run(walk: &mut Walk, program: &str, arguments: &[Field], scope: &mut Scope, context: &Context) {
    text_options(walk, program, arguments, scope, context);
    if program == "su" || program == "newgrp" {
        walk.piped(scope, context);
    }
    if let Some(row) = wrapper(program) {
        wrapped(walk, row, arguments, scope, context);
    }
    if let Some((name, subcommands)) = RUNNERS.iter().find(|(name, _)| *name == program) {
        runner(walk, name, subcommands, arguments, scope, context);
    }
}

/// Walks the texts that are values of options.
fn text_options(walk: &mut Walk, program: &str, arguments: &[Field], scope: &mut Scope, context: &Context) {
    let Some((name, options)) = TEXT_OPTIONS.iter().find(|(name, _)| *name == program) else { return };
    let context = context.by(Way::TextOf(name));
    for (at, word) in arguments.iter().enumerate() {
        for option in *options {
            let is_long = option.starts_with("--");
            // `-qc value`: the last of several letters.
            let is_last = option.len() == 2
                && !is_long
                && word.text.starts_with('-')
                && !word.text.starts_with("--")
                && word.text.ends_with(&option.get(1..).unwrap_or_default());
            let Some(rest) = word.text.strip_prefix(option).or(is_last.then_some("")) else { continue };
            let value = match rest {
                "" => arguments.get(at + 1).cloned(),
                _ if is_long => cut(word, option.len() + 1).filter(|_| rest.starts_with('=')),
                // `-cvalue`
                _ => cut(word, option.len()),
            };
            if let Some(value) = value {
                walk.shell_text(&value, &mut scope.for_child(), &context);
            }
        }
    }
}

/// Returns a word without its beginning.
fn cut(word: &Field, from: usize) -> Option<Field> {
    let holes = word.holes.iter().filter(|(at, _)| *at >= from).map(|(at, hole)| (at - from, *hole)).collect();
    Some(Field { text: word.text.get(from..)?.to_owned(), holes, splits: word.splits })
}

/// Gets past a program's own words.
fn wrapped(walk: &mut Walk, row: &'static Wrapper, arguments: &[Field], scope: &mut Scope, context: &Context) {
    let mut at = 0;
    let mut before = row.before;
    // Where the command would begin if an option that is not in the table took a value.
    let mut other_beginning = None;
    while let Some(word) = arguments.get(at) {
        if word.hides_option() && word.as_known().is_none() {
            walk.unproven(Unproven::CommandPosition);
        }
        match options(row, &word.text) {
            Own::Lookup => return,
            Own::End => {
                at += 1;
                // What stands before the command may stand behind `--` as well.
                at += before;
                break;
            }
            Own::Alone => at += 1,
            Own::Valued => at += 2,
            Own::Unlisted => {
                walk.unproven(Unproven::StarterOption);
                other_beginning = Some(at + 2);
                at += 1;
            }
            Own::Assignment => {
                walk.unproven(Unproven::Assignment);
                walk.variable(word, scope, context);
                at += 1;
            }
            Own::Operand if before > 0 => {
                before -= 1;
                at += 1;
            }
            Own::Operand => break,
        }
    }
    if at >= arguments.len() && SHELL_WITHOUT_COMMAND.contains(&row.name) {
        walk.piped(scope, context);
    }
    let context = context.by(Way::Behind(row.name));
    start(walk, row, arguments.get(at..).unwrap_or_default(), scope, &context);
    if let Some(other) = other_beginning.filter(|other| *other != at) {
        start(walk, row, arguments.get(other..).unwrap_or_default(), scope, &Context { assumed: true, ..context });
    }
}

fn start(walk: &mut Walk, row: &Wrapper, words: &[Field], scope: &mut Scope, context: &Context) {
    if words.is_empty() {
        return;
    }
    match row.takes {
        Takes::Words => walk.run(words.to_vec(), scope, context),
        Takes::Text => walk.shell_text(&join(words), &mut scope.for_child(), context),
    }
}

/// A program's own word before the command that it starts.
enum Own {
    /// `command -v name` only looks the name up.
    Lookup,
    /// `--`
    End,
    Alone,
    Valued,
    Unlisted,
    Assignment,
    Operand,
}

fn options(row: &Wrapper, text: &str) -> Own {
    if row.name == "command" && matches!(text, "-v" | "-V" | "-pv" | "-pV") {
        return Own::Lookup;
    }
    if text == "--" {
        return Own::End;
    }
    if let Some(long) = text.strip_prefix("--") {
        return match long.contains('=') {
            true => Own::Alone,
            false if row.long_valued.contains(&long) => Own::Valued,
            false if LONG_PLAIN.contains(&long) => Own::Alone,
            false => Own::Unlisted,
        };
    }
    if let Some(letters) = text.strip_prefix('-') {
        if letters.is_empty() {
            return if row.name == "env" { Own::Alone } else { Own::Operand };
        }
        for (at, letter) in letters.char_indices() {
            if row.valued.contains(letter) {
                return if at + letter.len_utf8() == letters.len() { Own::Valued } else { Own::Alone };
            }
            if !row.plain.contains(letter) {
                return Own::Unlisted;
            }
        }
        return Own::Alone;
    }
    let name = text.split('=').next().unwrap_or_default();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name && name.len() < text.len() { Own::Assignment } else { Own::Operand }
}

/// Walks the words behind a runner's subcommand, each of which may begin a command.
fn runner(walk: &mut Walk, name: &'static str, subcommands: &[&str], arguments: &[Field], scope: &mut Scope, context: &Context) {
    let from = if subcommands.is_empty() {
        0
    } else {
        match arguments.iter().position(|word| word.as_known().is_some_and(|text| subcommands.contains(&text))) {
            Some(at) => at + 1,
            None => return,
        }
    };
    // Inside a reading of many words no more readings are tried: they would multiply.
    if context.ways.iter().any(|way| matches!(way, Way::Behind(runner) if RUNNERS.iter().any(|(known, _)| known == runner))) {
        return;
    }
    let context = Context { assumed: true, ..context.by(Way::Behind(name)) };
    for at in (from..arguments.len()).take(BEGINNINGS_MAX) {
        let Some(words) = arguments.get(at..) else { return };
        let begins = words.first().and_then(Field::as_known).is_some_and(|text| !text.starts_with('-'));
        if !begins {
            continue;
        }
        walk.run(words.to_vec(), scope, &context);
        // `tmux new 'rm -rf /'`: what is no command line is no text for a shell either.
        let text = words.first().and_then(Field::as_known).filter(|text| text.contains([' ', '\t', '\n']));
        if let Some(text) = text.filter(|text| syntax::parse(text, context.depth).is_ok()) {
            walk.text(text, &mut scope.for_child(), &context);
        }
    }
}
