//! Text in a terminal's cells: what has no place on a screen is replaced, and what is too long is cut.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Returns text that comes from events so that it can stand on a terminal: it holds no character that moves the cursor, changes colours or
/// turns the order of letters around.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let is_harmful = |letter: char| {
        letter.is_control() || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    if text.contains(is_harmful) { text.replace(is_harmful, "?").into() } else { text.into() }
}

/// The digits of a hash that are shown unless every column is asked for.
const HASH_DIGITS: usize = 16;

/// Returns a hash as tables show it: all of it where every column is asked for, else its beginning.
pub(crate) fn hash_text(hash: &str, is_wide: bool) -> String {
    hash.chars().take(if is_wide { usize::MAX } else { HASH_DIGITS }).collect()
}

/// Returns the text in exactly `width` cells: filled up with spaces, or cut with an ellipsis.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let cells = |letter: char| letter.width().unwrap_or(0);
    let total: usize = text.chars().map(cells).sum();
    let mut fitted = String::with_capacity(width);
    let mut used = 0;
    if total <= width {
        fitted.push_str(text);
        used = total;
    } else if width > 0 {
        for letter in text.chars() {
            // The last cell is the ellipsis.
            if used + cells(letter) >= width {
                break;
            }
            used += cells(letter);
            fitted.push(letter);
        }
        fitted.push('…');
        used += 1;
    }
    fitted.extend(std::iter::repeat_n(' ', width.saturating_sub(used)));
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fills_its_cells_and_no_more() {
        assert_eq!(fit("abc", 5), "abc  ");
        assert_eq!(fit("abcdef", 5), "abcd…");
        assert_eq!(fit("abcde", 5), "abcde");
        // Each of these takes two cells.
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日… ");
        assert_eq!(fit("日本語", 6), "日本語");
        assert_eq!((fit("abc", 0), fit("abc", 1)), (String::new(), "…".to_owned()));
    }

    #[test]
    fn what_comes_from_events_cannot_steer_the_terminal() {
        assert_eq!(shown("\u{1b}[2J\u{1b}]0;x\u{7}ls\r\n"), "?[2J?]0;x?ls??");
        assert_eq!(shown("a\u{9b}31mb\u{202e}c"), "a?31mb?c");
        assert_eq!(shown("größe 日本"), "größe 日本");
    }
}
