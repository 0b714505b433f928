//! What `find` and `fd` enter and look for, and whether what they hand on is only what they look for.

use super::patterns::{braces, glob_of_regex};
use super::reading::scan;
use super::table;
use super::touches::{Touch, file};
use crate::argument::Argument;
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
    let starts = arguments.iter().enumerate().skip_while(|(_, argument)| argument.text.starts_with('-'));
    let starts = starts.take_while(|(_, argument)| !argument.text.starts_with(['-', '(', '!', ')']));
    let mut touched: Vec<Touch> =
        starts.map(|(index, argument)| Touch::File { index, path: argument.text.clone(), access: Access::Read }).collect();
    let text = |at: usize| arguments.get(at).map_or("", |argument| argument.text.as_str());
    for (index, argument) in arguments.iter().enumerate().filter(|(index, _)| is_looked_for(arguments, *index)) {
        let value = text(index + 1);
        touched.push(Touch::Pattern(if argument.text.ends_with("regex") {
            glob_of_regex(value).unwrap_or_else(|| HIDDEN_ONES.to_owned())
        } else {
            value.to_owned()
        }));
    }
    if hands_on_others(arguments) {
        touched.push(Touch::Pattern(UNHELD.to_owned()));
    }
    touched
}

/// Returns whether a program only prints the names that it finds, and does nothing with the files.
#[must_use]
pub fn only_names(program: &str, arguments: &[Argument]) -> bool {
    const ACTIONS: [&str; 5] = ["-delete", "-exec", "-execdir", "-ok", "-okdir"];
    matches!(program, "find" | "gfind")
        && !arguments.iter().any(|argument| ACTIONS.contains(&argument.text.as_str()) || argument.text.starts_with("-f"))
}

/// Returns whether a test for a name stands here that is neither negated nor pruned.
fn is_looked_for(arguments: &[Argument], index: usize) -> bool {
    let text = |at: usize| arguments.get(at).map_or("", |argument| argument.text.as_str());
    let negations = || arguments.get(..index).unwrap_or_default().iter().rev().take_while(|word| is_not(&word.text)).count();
    let is_pruned = || text(index + 2) == "-prune" && matches!(text(index + 3), "-o" | "-or");
    FIND_PATTERNS.contains(&text(index)) && negations() % 2 == 0 && !is_pruned()
}

fn is_not(word: &str) -> bool {
    matches!(word, "!" | "-not")
}

/// Returns whether an action is reached by names that no test in front of it has held: `find . -exec rm {} + -name x`, and what stands
/// behind an `-o`. In brackets every choice has to hold them. Without an action all names are printed that the whole expression holds.
fn hands_on_others(arguments: &[Argument]) -> bool {
    const ACTIONS: [&str; 6] = ["-delete", "-exec", "-ls", "-print", "-print0", "-printf"];
    // Of each bracket: whether all choices so far hold names, whether this one does, and whether the bracket is negated.
    let mut open = vec![(true, false, false)];
    let mut acts = false;
    for (index, argument) in arguments.iter().enumerate() {
        match argument.text.as_str() {
            "(" => open.push((true, false, index.checked_sub(1).and_then(|at| arguments.get(at)).is_some_and(|word| is_not(&word.text)))),
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
            action if ACTIONS.contains(&action) => {
                acts = true;
                if open.len() > DEPTH_MAX || !open.iter().any(|(_, is_held, _)| *is_held) {
                    return true;
                }
            }
            _ if is_looked_for(arguments, index) => open.iter_mut().rev().take(1).for_each(|(_, last, _)| *last = true),
            _ => {}
        }
    }
    !acts && !matches!(open.as_slice(), [(true, true, _)])
}

/// What `fd` enters and looks for: a regular expression, or a glob with `-g`; with `-e` an extension.
pub(super) fn of_fd(arguments: &[Argument]) -> Vec<Touch> {
    let Some(compiled) = table("fd") else { return Vec::new() };
    let Ok(scan) = scan(arguments, &compiled.options, compiled.program.style) else { return Vec::new() };
    let extensions = scan.given.iter().filter(|(name, _)| matches!(*name, "e" | "extension")).filter_map(|(_, value)| value.as_ref());
    let mut touched: Vec<Touch> = extensions.map(|value| Touch::Pattern(format!("*.{}", value.text.trim_start_matches('.')))).collect();
    for (at, index) in scan.operands.iter().enumerate() {
        let Some(argument) = arguments.get(*index) else { continue };
        match at {
            0 if scan.has(&["g", "glob"]) => touched.extend(braces(&argument.text).into_iter().map(Touch::Pattern)),
            0 if scan.has(&["F", "fixed-strings"]) => touched.push(Touch::Pattern(argument.text.clone())),
            // It is found anywhere in a name, and hidden files only where that is asked for.
            0 if scan.has(&["H", "hidden", "I", "no-ignore"]) => {
                touched.push(Touch::Pattern(glob_of_regex(&argument.text).unwrap_or_else(|| HIDDEN_ONES.to_owned())));
            }
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
        let hands_on = |line: &str| hands_on_others(&line.split(' ').map(Argument::known).collect::<Vec<_>>());
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
        ] {
            assert!(!hands_on(line), "{line}");
        }
    }
}
