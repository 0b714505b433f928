//! Shape: a short text whose first lines say in words that something did not work, or a longer one that begins with such words.

use super::FailureSign;
use super::view::View;

/// How long a text may be that is taken for the words of a failure, in bytes.
const TEXT_BYTES_MAX: usize = 600;
/// How many lines are looked at, and how many bytes of each.
const LINES: usize = 2;
const LINE_BYTES: usize = 240;
/// How many words of a longer text are looked at.
const LONG_WORDS: usize = 9;

/// Looks for words of failure in the first lines of a short text.
pub fn see<'v>(view: &View<'v>) -> Option<FailureSign<'v>> {
    let (lines, words) = if view.text.len() > TEXT_BYTES_MAX { (1, LONG_WORDS) } else { (LINES, usize::MAX) };
    view.lines().take(lines).find(|line| says_failure(line, words)).map(FailureSign::Failed)
}

/// How lines of code begin.
const CODE: [&[u8]; 14] =
    [b"#", b"//", b"/*", b"class ", b"def ", b"import ", b"from ", b"return ", b"if ", b"fn ", b"pub ", b"const ", b"let ", b"function "];

fn says_failure(line: &[u8], words_max: usize) -> bool {
    let line = line.get(..LINE_BYTES).unwrap_or(line);
    // Lines of code, and lines with a number in front of them, are contents.
    if CODE.iter().any(|start| line.starts_with(start)) || line.iter().take_while(|byte| byte.is_ascii_digit()).count() > 0 {
        return false;
    }
    let mut before: [&[u8]; 2] = [b"", b""];
    let mut lower = [0; 16];
    let words = line.split(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'\'' | b'_')).filter(|word| !word.is_empty());
    for (at, word) in words.take(words_max).enumerate() {
        let is_known = lower.get_mut(..word.len()).is_some_and(|lower| {
            lower.copy_from_slice(word);
            lower.make_ascii_lowercase();
            is_failure(lower, before, at)
        });
        if is_known {
            return true;
        }
        before = [before[1], word];
    }
    false
}

/// Returns whether a word of a line says that something failed. `before` are the two words before it, `at` is its place.
fn is_failure(word: &[u8], before: [&[u8]; 2], at: usize) -> bool {
    let last = |words: &[&str]| words.iter().any(|word| before[1].eq_ignore_ascii_case(word.as_bytes()));
    let is_denied = last(&["no", "not", "0", "without", "zero", "never", "any", "if", "when", "of", "for", "on"]);
    match word {
        b"cannot" | b"can't" | b"couldn't" | b"unable" | b"unauthorized" | b"unauthorised" | b"forbidden" | b"unrecognized" => !is_denied,
        b"failed" | b"failure" | b"invalid" | b"denied" | b"rejected" | b"refused" | b"exceeded" | b"expired" => !is_denied && at <= 12,
        b"timeout" | b"unavailable" | b"unreachable" | b"unknown" | b"unexpected" | b"unsupported" | b"missing" => !is_denied && at <= 6,
        b"error" if last(&["syntax"]) => true,
        b"error" | b"exception" => !is_denied && !last(&["about"]) && at <= 2,
        b"found" | b"allowed" | b"permitted" | b"supported" | b"exist" | b"available" | b"installed" | b"possible" | b"authorized" => {
            last(&["not", "doesn't", "isn't", "don't"])
        }
        b"exists" => last(&["already"]),
        b"such" => last(&["no"]),
        b"out" => last(&["timed"]),
        b"required" => last(&["is", "are"]) && at <= 8,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::decide::loops::failure::tests::check;

    #[test]
    fn long_texts_say_it_at_their_beginning_alone() {
        let long = "It is a long story. ".repeat(40);
        check(&[format!("Your edit has brought a new syntax error. {long}").as_str()], &[]);
        let report = format!("A story of two people who met by chance and did not know what had failed. {long}");
        check(&[], &[report.as_str()]);
    }
}
