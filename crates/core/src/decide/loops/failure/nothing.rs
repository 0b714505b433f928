//! Shape: the empty answer to a look-up. It is no failure; many of them in a row are guesses.

use std::sync::LazyLock;

use super::Asked;
use super::view::{Hinted, View, hinted};
use crate::decide::loops::search::{begins, position};

/// What an empty answer says behind `no` or `0`.
const THINGS: [&str; 16] = [
    "match", "result", "file", "row", "item", "entr", "email", "record", "document", "message", "event", "page", "contact", "product",
    "hit", "data",
];

/// What is said of things that are not there.
static NOT_THERE: LazyLock<Hinted> = LazyLock::new(|| hinted(["ot found", "o such file", "does not exist"]));

/// Returns whether a result is the empty answer to a look-up.
pub fn see(view: &View<'_>) -> bool {
    let line = view.first_line();
    is_empty_value(view) || says_nothing(view, line) || (is_empty_output(view) && view.asked.has(Asked::LOOKS_UP))
}

/// Returns whether the text is an empty list or object, or an object with nothing but an empty list.
fn is_empty_value(view: &View<'_>) -> bool {
    let Some(value) = view.value else { return false };
    let is_empty = |value: tollgate_json::Value<'_>| value.items().next().is_none() && value.members().next().is_none();
    match (value.is_object(), value.members().next(), value.members().nth(1)) {
        (true, Some((_, only)), None) => matches!(only.source(), b"[]" | b"{}") || is_empty(only) && only.source().starts_with(b"["),
        (true, Some(_), Some(_)) => false,
        _ => is_empty(value),
    }
}

/// Returns whether a line says that there is nothing: `No matches found`, `0 results`, `not found`.
fn says_nothing(view: &View<'_>, line: &[u8]) -> bool {
    if line.len() > 200 {
        return false;
    }
    let counted = ["no ", "0 ", "found no ", "found 0 ", "there are no "].iter().find(|start| begins(line, start));
    let is_counted = counted.is_some_and(|start| {
        let rest = line.get(start.len()..).unwrap_or_default();
        THINGS.iter().any(|thing| position(rest, thing).is_some_and(|at| at <= 20))
    });
    is_counted || view.holds(line, &NOT_THERE)
}

/// Returns whether a command printed nothing, in whichever frame its shell puts that.
fn is_empty_output(view: &View<'_>) -> bool {
    let output = view.text.trim_ascii();
    let is_frame = || {
        output.starts_with(b"<returncode>")
            && memchr::memmem::find(output, b"<output>")
                .is_some_and(|at| output.get(at + b"<output>".len()..).unwrap_or_default().trim_ascii_start().starts_with(b"</output>"))
    };
    let is_member = || view.member("output").or_else(|| view.member("stdout")).is_some_and(|text| text.is_text(""));
    output.is_empty() || is_frame() || is_member()
}

#[cfg(test)]
mod tests {
    use crate::decide::loops::failure::tests::seen_after;

    #[test]
    fn a_look_up_that_prints_nothing_found_nothing() {
        let nothing = |command: &str, result: &str| seen_after(command, None, result).is_nothing;
        for command in ["grep -rn x .", "cd src && find . -name y", "which cargo"] {
            assert!(nothing(command, ""), "{command}");
            assert!(nothing(command, "<returncode>1</returncode>\n<output>\n</output>"), "{command}");
            assert!(!nothing(command, "src/a.rs"), "{command}");
        }
        assert!(!nothing("mkdir out", ""));
        assert!(!nothing("finder x", ""));
    }
}
