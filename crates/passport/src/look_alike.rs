//! Other spellings of a name that some file systems take for the same name: compatibility forms, case beyond ASCII, invisible characters.
//!
//! macOS compares names without case and after normalisation, and its older file system leaves invisible characters out. On ext4 a folder
//! can be set to fold case. Which file system a tool writes to is not known, so a place that is blocked is so in every spelling.

use icu_normalizer::ComposingNormalizerBorrowed;

/// Returns the spelling in ASCII letters, as far as there is such, of a text with characters beyond ASCII. `None` for a text without.
pub(super) fn plain_spelling(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let visible: String = text.chars().filter(|character| !is_invisible(*character)).collect();
    Some(ComposingNormalizerBorrowed::new_nfkc().normalize(&visible).to_lowercase())
}

/// Returns whether Unicode calls a character default-ignorable: it is not shown, and some systems compare names without it.
fn is_invisible(character: char) -> bool {
    matches!(
        u32::from(character),
        0xad | 0x34f
            | 0x61c
            | 0x115f..=0x1160
            | 0x17b4..=0x17b5
            | 0x180b..=0x180f
            | 0x200b..=0x200f
            | 0x202a..=0x202e
            | 0x2060..=0x206f
            | 0x3164
            | 0xfe00..=0xfe0f
            | 0xfeff
            | 0xffa0
            | 0xfff0..=0xfff8
            | 0x1bca0..=0x1bca3
            | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff
    )
}

#[cfg(test)]
mod tests {
    use super::plain_spelling;

    #[test]
    fn other_spellings_of_a_name_are_the_name() {
        for text in [".\u{17f}sh", ".\u{ff33}SH", ".s\u{200c}s\u{feff}h", ".\u{24e2}sh", ".ss\u{ff48}"] {
            assert_eq!(plain_spelling(text).as_deref(), Some(".ssh"), "{text:?}");
        }
        assert_eq!(plain_spelling(".ssh"), None);
        assert_eq!(plain_spelling("na\u{ef}ve").as_deref(), Some("na\u{ef}ve"));
    }
}
