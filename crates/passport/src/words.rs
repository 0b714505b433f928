//! Commands that are given as a list of words, of which a host starts a program without a shell.

use std::borrow::Cow;

/// TABLE: shells that read the last of three words as a line.
const SHELLS: [&str; 4] = ["bash", "dash", "sh", "zsh"];

/// TABLE: folders in which every system has them.
const FOLDERS: [&str; 3] = ["", "/bin/", "/usr/bin/"];

/// Returns the line with which a shell starts the program that a list of words starts, with the same words; or the line that the list gives
/// to a shell.
pub(super) fn line_of(words: &[Cow<'_, str>]) -> String {
    if let [shell, option, line] = words
        && ["-c", "-lc"].contains(&&**option)
        && FOLDERS.iter().any(|folder| shell.strip_prefix(folder).is_some_and(|name| SHELLS.contains(&name)))
    {
        return line.to_string();
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Returns a word as a shell reads it back. Without quotes stands what is no sign to any shell.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./,:@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_the_line_of_a_shell_is_taken_out() {
        let cases: [(&[&str], &str); 8] = [
            (&["git", "diff"], "git diff"),
            (&["git", "commit", "-m", "it's; rm x"], "git commit -m 'it'\\''s; rm x'"),
            (&["A=b", "ls", "~", ""], "'A=b' ls '~' ''"),
            (&["bash", "-lc", "git diff | head"], "git diff | head"),
            (&["/bin/sh", "-c", "ls"], "ls"),
            (&["./bash", "-lc", "ls x"], "./bash -lc 'ls x'"),
            (&["bash", "-lc", "ls x", "y"], "bash -lc 'ls x' y"),
            (&["bash", "-x", "ls x"], "bash -x 'ls x'"),
        ];
        for (words, line) in cases {
            assert_eq!(line_of(&words.iter().map(|word| Cow::Borrowed(*word)).collect::<Vec<_>>()), line);
        }
    }
}
