//! Other spellings of a name that some file systems take for the same name: compatibility forms, case beyond ASCII, invisible characters, and
//! those of Windows.
//!
//! macOS compares names without case and after normalisation, and its older file system leaves invisible characters out. On ext4 a folder
//! can be set to fold case. Which file system a tool writes to is not known, so a place that is blocked is so in every spelling.

use icu_normalizer::ComposingNormalizerBorrowed;

use super::beginning::{behind_drive, count_parents, is_file_address};

/// Returns another spelling under which some system may know a name: in ASCII letters, as far as there are such, and without what Windows leaves
/// out (dots and blanks at the end of a component, and the name of a stream behind a colon). `None` for a text that is spelled so itself.
pub(super) fn plain_spelling(text: &str) -> Option<String> {
    if text.is_ascii() && text.split('/').all(|component| without_end(component).len() == component.len()) {
        return None;
    }
    let folded = if text.is_ascii() { text.to_owned() } else { folded(text) };
    let plain: Vec<&str> = folded.split('/').map(without_end).collect();
    Some(plain.join("/"))
}

/// Returns a text in lower case, without compatibility forms and invisible characters.
pub(super) fn folded(text: &str) -> String {
    let visible: String = text.chars().filter(|character| !is_invisible(*character)).collect();
    let folded = ComposingNormalizerBorrowed::new_nfkc().normalize(&visible).to_lowercase();
    // A dotless i, one that lowering has left with a dot above it, the only letter that folds to two of ASCII, and the sigma at the end of a word.
    folded.replace('\u{131}', "i").replace("i\u{307}", "i").replace('\u{df}', "ss").replace('\u{3c2}', "\u{3c3}")
}

/// Returns a component without a stream, and without dots and blanks at its end.
fn without_end(component: &str) -> &str {
    let name = component.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    if name.is_empty() { component } else { name }
}

/// Returns whether a path that a tool is given may be another place than its text says to some system: a URL, a drive, a short name,
/// several paths in one, or a path with percent signs or variables that are replaced.
pub(super) fn is_ambiguous(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let is_short_name = |component: &str| {
        component.split_once('~').is_some_and(|(stem, rest)| {
            let digits = rest.split('.').next().unwrap_or_default();
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            (1..=6).contains(&stem.len()) && !stem.contains('.') && is_number
        })
    };
    let parts = [":/", ",/", ";/"];
    let has_sign = || {
        behind_drive(path).is_some()
            || is_file_address(path)
            || lower.starts_with(['$', '%'])
            || parts.iter().any(|part| lower.contains(part))
            || has_encoded(path)
            || lower.split('/').any(is_short_name)
    };
    // Nearly no path has any of these, and then there is less to look for.
    path.contains([':', ',', ';', '%', '$', '~']) && has_sign()
        || plain_spelling(path).is_some_and(|spelling| {
            let slashes = |text: &str| text.bytes().filter(|byte| *byte == b'/').count();
            slashes(&spelling) != slashes(path) || count_parents(&spelling) > 0 && count_parents(path) == 0
        })
}

/// Returns whether percent signs stand for characters that nobody has to write so, and that what decodes an address reads: letters, digits,
/// dots, slashes.
pub(super) fn has_encoded(text: &str) -> bool {
    let is_encoded = |(at, _): (usize, &str)| {
        let byte = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte.is_ascii_control() || b"./\\~".contains(&byte))
    };
    text.match_indices('%').any(is_encoded)
}

/// Returns whether Unicode calls a character default-ignorable: it is not shown, and some systems compare names without it.
#[must_use]
pub fn is_invisible(character: char) -> bool {
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
    use super::{is_ambiguous, plain_spelling};

    #[test]
    fn other_spellings_of_a_name_are_the_name() {
        for text in [".\u{17f}sh", ".\u{ff33}SH", ".s\u{200c}s\u{feff}h", ".\u{24e2}sh", ".ss\u{ff48}", ".\u{df}h", ".\u{1e9e}H"] {
            assert_eq!(plain_spelling(text).as_deref(), Some(".ssh"), "{text:?}");
        }
        assert_eq!(plain_spelling(".ssh"), None);
        for text in [".git.", ".git ", ".git::$INDEX_ALLOCATION", ".g\u{131}t", ".G\u{130}T", ".git\u{3000}"] {
            assert_eq!(plain_spelling(text).as_deref(), Some(".git"), "{text:?}");
        }
        assert_eq!(plain_spelling("\u{3a3}\u{391}\u{3a3}"), plain_spelling("\u{3c3}\u{3b1}\u{3c3}"), "a sigma at the end of a word");
        assert_eq!([plain_spelling(".."), plain_spelling("./.../a")], [None, None]);
        assert_eq!(plain_spelling("na\u{ef}ve").as_deref(), Some("na\u{ef}ve"));
    }

    #[test]
    fn paths_that_systems_read_differently_are_ambiguous() {
        for path in "file:/etc/passwd FILE:x C:/Windows c:x /w/GIT~1/config ENV~1 /w/%2e%2e/x /w/..%2Fx /w/%70rivate /w/a%00.md \
            /w/a:/etc/passwd /w/a,/etc/passwd $HOME/x %USERPROFILE%/x /w/\u{ff0e}\u{ff0e}/x /w/\u{2025}/x"
            .split_ascii_whitespace()
        {
            assert!(is_ambiguous(path), "{path}");
        }
        for path in ["/w/a.txt", "a/../b", "~/x", "/w/na\u{ef}ve.txt", "/w/100%.txt", "/w/a%20b%c3%a9", "/w/foo.~1~", "/w/a:b", "/w/$x"] {
            assert!(!is_ambiguous(path), "{path}");
        }
    }
}
