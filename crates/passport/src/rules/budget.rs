//! The budget of steps that a text of a call has: what looks for places in it takes time by their number, not by the text's length alone.

use std::borrow::Cow;

use bash_commands::Checked;

use crate::denial::Denial;

/// The budget: so many steps, and so many more for each byte. A step is one place that is looked up. An ordinary text takes less than a
/// tenth of its budget.
const STEPS: usize = 2_048;
const STEPS_PER_BYTE: usize = 1;

/// In how many bytes of a place a further component is charged.
const PLACE_BYTES: usize = 16;
/// How many times as much as a plain name a glob costs: it is compared with each secret.
const GLOB_STEPS: usize = 16;
/// How many times as much as a word a file costs that the line opens: every limit of files is asked.
const FILE_STEPS: usize = 8;

/// How many times as much as a word a file costs that a program is given.
const OPERAND_STEPS: usize = 2;

/// How many patterns of a passport are compared with a component for nothing.
const WEIGHT: usize = 16;
/// How many components a call may name whatever they weigh, so that a passport with many patterns alike still allows ordinary calls.
const COMPONENTS: usize = 64;
/// The most components of a path. Each folder above a path is looked up, so that they take time by their number and by their length.
const DEPTH_MAX: usize = 256;

/// How many components of globs may be compared with entries of a passport, over a call, and how many each of its texts counts at least. A hundred
/// globs beside four hundred entries stay within.
const COMPARED_MAX: usize = 262_144;
const COMPARED_EACH: usize = 3;

/// The longest word that is taken for one path, in bytes. In a longer one every piece is.
const WORD_BYTES_MAX: usize = 512;

/// Returns whether a word is too long for a path or a glob: it is a text, in which a path may stand between blanks and punctuation.
pub(super) fn is_text(word: &str) -> bool {
    word.len() > WORD_BYTES_MAX
}

/// Returns the parts of a word that may be paths.
pub(super) fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let is_separator = |char: char| char.is_whitespace() || "=@:,;'\"()[]{}<>|&".contains(char);
    word.split(move |char| is_text(word) && is_separator(char))
}

/// Checks that the places that a command line names (words, patterns of names, and files of arguments) can be looked at within its budget.
/// `weight` is how many patterns of files a component is compared with.
pub(super) fn check_line(checked: &Checked, line: &str, weight: usize) -> Result<(), Denial> {
    // A wildcard that stands for slashes too makes more patterns of one.
    let crossing = |pattern: &str| 1 + pattern.matches("**").count();
    let patterns: usize = checked.patterns.iter().map(|pattern| crossing(pattern) * steps(pattern, true)).sum();
    let operands: usize = checked.operands.iter().map(|operand| operand_steps(&operand.path, operand.is_glob)).sum();
    let files: usize = checked.files.iter().map(|file| FILE_STEPS * steps(&file.path, file.path.contains(['*', '?', '[']))).sum();
    let mut words = 0;
    checked.each_word(&mut |word, is_glob| words += pieces(word).map(|piece| steps(piece, is_glob)).sum::<usize>());
    const MESSAGE: &str = "Command names more places than its budget of steps lets be looked at; split it into several calls";
    check(patterns + operands + files + words, line.len(), MESSAGE)?;
    check_weighed(operands + files, weight, line.len(), MESSAGE)
}

/// Checks that the places that arguments name can be compared with the passport's patterns within their budget.
pub(super) fn check_places<'t>(texts: impl Iterator<Item = &'t Cow<'t, str>> + Clone, weight: usize) -> Result<(), Denial> {
    const MESSAGE: &str =
        "Arguments name more places than the budget of steps lets be compared with the passport's patterns; split the call";
    let components = texts.clone().map(|text| steps(text, false)).sum();
    check_weighed(components, weight, texts.map(|text| text.len()).sum(), MESSAGE)
}

/// Checks that globs, and what is taken with all that lies below, can be compared with every entry that is blocked. `places` are these texts.
pub(super) fn check_compared<'t>(places: impl Iterator<Item = &'t str>, entries: usize) -> Result<(), Denial> {
    check_pairs(places.map(|place| COMPARED_EACH + place.bytes().filter(|byte| *byte == b'/').count()).sum(), entries)
}

/// Checks that so many components can be compared with so many entries.
pub(super) fn check_pairs(components: usize, entries: usize) -> Result<(), Denial> {
    const MESSAGE: &str =
        "Call names more globs, patterns and whole folders than can be compared with the passport's entries; split the call";
    if components.saturating_mul(entries) > COMPARED_MAX { Err(Denial::new("oap.too_costly", MESSAGE)) } else { Ok(()) }
}

/// Checks that a path has no more components than any file's.
pub(super) fn check_depth(path: &str) -> Result<(), Denial> {
    if !is_too_deep(path) {
        return Ok(());
    }
    Err(Denial::new("oap.too_costly", format!("File path has more than {DEPTH_MAX} components")))
}

/// Returns whether a text has more components than a path may have. Those that lead nowhere do not count.
pub(super) fn is_too_deep(text: &str) -> bool {
    text.split('/').filter(|component| !matches!(*component, "" | ".")).count() > DEPTH_MAX
}

fn check_weighed(components: usize, weight: usize, bytes: usize, message: &'static str) -> Result<(), Denial> {
    if weight <= WEIGHT || components <= COMPONENTS {
        return Ok(());
    }
    check(components.saturating_mul(weight), bytes, message)
}

/// Checks that a glob, as its expansions of braces, can be compared with all places within the budget of its text.
pub(super) fn check_glob(expansions: &[String], text: &str) -> Result<(), Denial> {
    let steps = expansions.iter().map(|glob| steps(glob, true)).sum();
    const MESSAGE: &str = "A glob stands for more places than its budget of steps lets be looked at; name fewer of them";
    check(steps, text.len(), MESSAGE)
}

fn check(steps: usize, bytes: usize, message: &'static str) -> Result<(), Denial> {
    if steps > STEPS + bytes * STEPS_PER_BYTE { Err(Denial::new("oap.too_costly", message)) } else { Ok(()) }
}

/// Returns how many steps it takes to look at a file that a program is given: the limits of a glob take no more than its comparison.
fn operand_steps(path: &str, is_glob: bool) -> usize {
    if is_glob { steps(path, true) } else { OPERAND_STEPS * steps(path, false) }
}

/// Returns how many steps it takes to look at a place.
fn steps(place: &str, is_glob: bool) -> usize {
    let count = |of: &[u8]| place.bytes().filter(|byte| of.contains(byte)).count();
    let (paths, components) = (1 + count(b"=@:,"), 1 + count(b"/"));
    // What stands behind each `..` is a path of its own.
    let starts = 1 + place.split(['/', '=', '@', ':', ',']).filter(|component| *component == "..").count();
    paths * starts * (components + place.len() / PLACE_BYTES) * if is_glob { GLOB_STEPS } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_affordable(glob: &str) -> bool {
        check_glob(&[glob.to_owned()], glob).is_ok()
    }

    /// Such a glob took 462 ms, as long as 1,267 ordinary paths of its size.
    #[test]
    fn a_glob_of_many_paths_is_too_costly() {
        assert!(!is_affordable(&"*/@a ".repeat(200)));
        assert!(!is_affordable(&"../*".repeat(200)));
    }

    #[test]
    fn ordinary_globs_are_affordable() {
        for glob in ["*.rs", "src/**/*.{c,h}", "/workspace/project/src/main/java/com/example/service/impl/*Service*.java", "../../*/a?.txt"]
        {
            assert!(is_affordable(glob), "{glob}");
        }
    }
}
