//! What `find` and `fd` enter and look for, and whether what they hand on is only what they look for.

use super::find::{ACTIONS, primaries};
use super::patterns::{braces, crossing, glob_of_regex, path_of_regex};
use super::reading::scan;
use super::touches::{Touch, file};
use super::{is_in, table};
use crate::argument::{Argument, text_at};
use crate::grammar::Access;

/// TABLE: tests of `find` whose value is a pattern of names.
const FIND_PATTERNS: [&str; 10] =
    ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname", "-ilname", "-regex", "-iregex"];

/// A pattern that finds everything hidden: it stands for one that cannot be told.
pub const HIDDEN_ONES: &str = ".*";

/// A pattern that finds everything but what is hidden: it stands for names that nothing narrows down.
pub const UNHELD: &str = "*";

/// The most brackets around an action that are looked at.
const DEPTH_MAX: usize = 32;

/// What `find` enters, and what it looks for. What stands behind an odd number of `!`, or in front of `-prune -o`, is left out.
pub(super) fn of_find(arguments: &[Argument]) -> Vec<Touch> {
    let is_option = |text: &str| matches!(text, "-H" | "-L" | "-P" | "--") || text.starts_with("-O");
    let starts = arguments.iter().enumerate().skip_while(|(_, argument)| is_option(&argument.text));
    let starts = starts.take_while(|(_, argument)| !argument.text.starts_with(['-', '(', '!', ')']));
    let is_deleted = arguments.iter().any(|argument| argument.text == "-delete");
    let access = if is_deleted { Access::Write } else { Access::Read };
    let mut touched: Vec<Touch> = starts.map(|(index, argument)| Touch::File { index, path: argument.text.clone(), access }).collect();
    if touched.is_empty() && !arguments.is_empty() {
        touched.push(Touch::File { index: 0, path: ".".to_owned(), access });
    }
    let expression = Expression::new(arguments);
    let patterns = (0..expression.words.len()).filter_map(|at| expression.looked_for(at));
    touched.extend(patterns.map(|pattern| Touch::Pattern(folders_of(pattern))));
    if expression.hands_on_others() {
        touched.push(Touch::Pattern(UNHELD.to_owned()));
    }
    touched
}

/// Returns whether a program only prints the names that it finds, and does nothing with the files.
#[must_use]
pub fn only_names(program: &str, arguments: &[Argument]) -> bool {
    const ACTIONS: [&str; 5] = ["-delete", "-exec", "-execdir", "-ok", "-okdir"];
    let mut texts = arguments.iter().map(|argument| argument.text.as_str());
    match program {
        "find" | "gfind" => !texts.any(|text| ACTIONS.contains(&text) || text.starts_with("-f")),
        // Letters may be bundled, and what is computed may be an option.
        "fd" | "fdfind" => {
            let is_action =
                |text: &str| text.starts_with("--e") || text.starts_with('-') && !text.starts_with("--") && text.contains(['x', 'X']);
            !texts.any(is_action) && arguments.iter().all(|argument| argument.as_known().is_some() || argument.is_operand())
        }
        _ => false,
    }
}

/// Returns whether a pattern finds every name, perhaps below some folder.
#[must_use]
pub fn is_everything(pattern: &str) -> bool {
    pattern.rsplit('/').next().is_some_and(|last| last.bytes().all(|byte| byte == b'*'))
}

/// Returns a pattern that looks for a folder alone if the pattern finds every name in the folder: other tests hold the names, or none does.
fn folders_of(pattern: String) -> String {
    match pattern.rsplit_once('/').filter(|_| is_everything(&pattern)) {
        Some((folder, _)) => format!("{folder}/x.x"),
        None => pattern,
    }
}

/// The operators, tests and actions of a `find`.
pub(super) struct Expression<'a> {
    /// Each with its value, if it has one.
    pub(super) words: Vec<(&'a str, &'a str)>,
}

impl<'a> Expression<'a> {
    pub(super) fn new(arguments: &'a [Argument]) -> Self {
        Self { words: primaries(arguments).into_iter().map(|at| (text_at(arguments, at), text_at(arguments, at + 1))).collect() }
    }

    fn word(&self, at: usize) -> &'a str {
        self.words.get(at).map_or("", |(word, _)| word)
    }

    fn is_negated(&self, at: usize) -> bool {
        (0..at).rev().take_while(|before| is_not(self.word(*before))).count() % 2 == 1
    }

    /// Returns the pattern of a test for a name that is neither negated nor pruned, as one in which `**` stands for slashes too.
    fn looked_for(&self, at: usize) -> Option<String> {
        let (test, value) = self.words.get(at).filter(|(test, _)| FIND_PATTERNS.contains(test))?;
        let is_pruned = self.word(at + 1) == "-prune" && matches!(self.word(at + 2), "-o" | "-or");
        let pattern = || match *test {
            "-regex" | "-iregex" => path_of_regex(value).unwrap_or_else(|| HIDDEN_ONES.to_owned()),
            "-name" | "-iname" => (*value).to_owned(),
            _ => crossing(value),
        };
        (!self.is_negated(at) && !is_pruned).then(pattern)
    }

    /// Returns whether a test holds names back here. What finds everything does not, nor what looks for the targets of links.
    fn holds(&self, at: usize) -> bool {
        !self.word(at).ends_with("lname") && self.looked_for(at).is_some_and(|pattern| !is_everything(&pattern))
    }

    /// Returns whether an action is reached by names that no test in front of it has held: `find . -exec rm {} + -name x`, and what stands
    /// behind an `-o`. In brackets every choice has to hold them. Without an action all names are printed that the whole expression holds.
    fn hands_on_others(&self) -> bool {
        // Of each bracket: whether all choices so far hold names, whether this one does, and whether the bracket is negated.
        let mut open = vec![(true, false, false)];
        let mut acts = false;
        for at in 0..self.words.len() {
            match self.word(at) {
                "(" => open.push((true, false, self.is_negated(at))),
                ")" => {
                    let (all, last, is_negated) = open.pop().unwrap_or_default();
                    if let Some((_, outer, _)) = open.last_mut() {
                        *outer |= all && last && !is_negated;
                    }
                }
                "-o" | "-or" | "," => {
                    if let Some((all, last, _)) = open.last_mut() {
                        (*all, *last) = (*all && *last, false);
                    }
                }
                action if is_in(ACTIONS, action) => {
                    acts = true;
                    if open.len() > DEPTH_MAX || !open.iter().any(|(_, is_held, _)| *is_held) {
                        return true;
                    }
                }
                _ if self.holds(at) => open.iter_mut().rev().take(1).for_each(|(_, last, _)| *last = true),
                _ => {}
            }
        }
        !acts && !matches!(open.as_slice(), [(true, true, _)])
    }
}

fn is_not(word: &str) -> bool {
    matches!(word, "!" | "-not")
}

/// What `fd` enters and looks for: a regular expression, or a glob with `-g`; with `-e` an extension.
pub(super) fn of_fd(arguments: &[Argument]) -> Vec<Touch> {
    let Some(compiled) = table("fd") else { return Vec::new() };
    let Ok(scan) = scan(arguments, &compiled.options, compiled.style) else { return Vec::new() };
    let extensions = scan.given.iter().filter(|(name, _)| matches!(*name, "e" | "extension")).filter_map(|(_, value)| value.as_ref());
    let mut touched: Vec<Touch> = extensions.map(|value| Touch::Pattern(format!("*.{}", value.text.trim_start_matches('.')))).collect();
    let is_hidden = scan.has(&["H", "hidden", "I", "no-ignore"]);
    for (at, index) in scan.operands.iter().enumerate() {
        let Some(argument) = arguments.get(*index) else { continue };
        match at {
            0 if scan.has(&["g", "glob"]) => touched.extend(braces(&argument.text).into_iter().map(Touch::Pattern)),
            0 if scan.has(&["F", "fixed-strings"]) && !is_hidden => touched.push(Touch::Pattern(argument.text.clone())),
            0 if scan.has(&["F", "fixed-strings"]) => touched.push(Touch::Pattern(format!("*{}*", argument.text))),
            // It is found anywhere in a name, and hidden files only where that is asked for.
            0 if is_hidden => touched.push(Touch::Pattern(glob_of_regex(&argument.text).unwrap_or_else(|| HIDDEN_ONES.to_owned()))),
            0 => {}
            _ => touched.extend(file(arguments, *index, Access::Read)),
        }
    }
    touched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_get_only_names_that_tests_have_held() {
        let hands_on = |line: &str| Expression::new(&line.split(' ').map(Argument::known).collect::<Vec<_>>()).hands_on_others();
        for line in [
            ". -exec rm {} + -name x",
            ". -delete -name x",
            ". -name x -o -exec rm {} +",
            ". -name x , -exec rm {} +",
            ". ( -name x -o -type f ) -exec rm {} +",
            ". ! ( -name x ) -exec rm {} +",
            ". ! -name x -exec rm {} +",
            ". -path ./x -prune -o -exec rm {} +",
            ".",
            ". -type f",
            ". -name x -o -true",
            ". -name x -o -print",
            ". ( -name x -o -type f )",
            ". ! -name -name -exec cat {} +",
            ". ! -fstype -name -exec cat {} +",
            ". ( -name x -exec echo ) ( ; -o -true ) -delete",
            ". -name ** -delete",
            ". -path ./* -delete",
            ". -regex .* -delete",
            ". -lname x -delete",
        ] {
            assert!(hands_on(line), "{line}");
        }
        for line in [
            ". -name x -exec rm {} +",
            ". -type f -name x -delete",
            ". ( -name x -o -name y ) -exec rm {} +",
            ". -path ./y -prune -o -name x -exec rm {} +",
            ". -name x ( -type f -exec rm {} + )",
            ". -name x -o -name y",
            ". ( -name x -o -name y ) -type f",
            ". -type f -name x -print0",
            ". -name x -exec echo -o ; -delete",
            ". -path ./src/*.x -delete",
        ] {
            assert!(!hands_on(line), "{line}");
        }
    }
}
