//! Which texts are hardly the id of anybody. A control or a rule for such a text would look like a closed gate, and would stop nobody.

use tollgate_passport::is_invisible;

/// What is wrong with the text of which [`is_no_id`] says so, and what to write.
pub const NO_ID: &str = "ids are compared as they are, and an asterisk, a blank at an end or a sign that is not shown stands in none; write each id that the events carry";

/// Returns whether a text is hardly the id of anybody: a pattern, or an id with a blank at an end or a sign that is not shown.
#[must_use]
pub fn is_no_id(text: &str) -> bool {
    text.contains('*') || text.trim() != text || text.contains(|sign: char| sign.is_control() || is_invisible(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_signs_that_nobody_sees_stand_in_no_id() {
        for text in ["*", "acme-*", "acme ", " 42", "a\tb", "a\u{200b}b", "\u{feff}a", "a\0"] {
            assert!(is_no_id(text), "{text:?}");
        }
        for text in ["42", "alice smith", "a/b", "w\u{e4}hle", "alice@example.com"] {
            assert!(!is_no_id(text), "{text}");
        }
    }
}
