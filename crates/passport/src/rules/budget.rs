//! The budget of steps that a text of a call has: what looks for places in it takes time by their number, not by the text's length alone.

use bash_commands::Checked;

use crate::examine::Denial;

/// The budget: so many steps, and so many more for each byte. A step is one place that is looked up. An ordinary text takes less than a
/// hundredth of its budget.
const STEPS: usize = 4_096;
const STEPS_PER_BYTE: usize = 4;

/// What a component of a glob costs, in steps, and in how many bytes of the glob it costs the same again: it is compared with each secret.
const GLOB_STEPS: usize = 64;
const GLOB_BYTES: usize = 16;

/// Checks that the places that a command line names (words, patterns of names, and files of arguments) can be looked at within its budget.
pub(super) fn check_line(checked: &Checked, line: &str) -> Result<(), Denial> {
    let patterns: usize = checked.patterns.iter().map(|pattern| steps(pattern, true)).sum();
    let operands: usize = checked.operands.iter().map(|operand| steps(&operand.path, operand.is_glob)).sum();
    let mut words = 0;
    checked.each_word(&mut |word, is_glob| words += steps(word, is_glob));
    const MESSAGE: &str = "Command names more places than its budget of steps lets be looked at; split it into several calls";
    check(patterns + operands + words, line.len(), MESSAGE)
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

/// Returns how many steps it takes to look at a place.
fn steps(place: &str, is_glob: bool) -> usize {
    let count = |of: &[u8]| place.bytes().filter(|byte| of.contains(byte)).count();
    let (paths, components) = (1 + count(b"=@:,"), 1 + count(b"/"));
    // What stands behind each `..` is a path of its own.
    let starts = 1 + place.matches("..").count();
    if is_glob { GLOB_STEPS * paths * starts * (components + place.len() / GLOB_BYTES) } else { paths + components }
}
