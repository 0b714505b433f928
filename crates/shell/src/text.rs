//! Patterns that are no commands: texts, and globs in which `*` stands for anything.
//!
//! They are found anywhere, in the command line as it is written and in the words that it executes, without regard to case. All of them
//! are searched for at once, by their longest literal piece.

use aho_corasick::AhoCorasick;
use rustc_hash::FxHashMap;

use super::argument::Argument;
use super::paths;

/// The compiled patterns.
#[derive(Debug)]
pub struct Texts {
    automaton: Option<AhoCorasick>,
    /// For each piece of the automaton, the forms that have it as their longest.
    by_piece: Vec<Vec<usize>>,
    forms: Vec<Form>,
    /// The patterns of nothing but `*`.
    always: Vec<usize>,
}

/// A way to write a pattern: as it is, or with its blanks and operators set as in [`spaced`].
#[derive(Debug)]
struct Form {
    /// The pattern's place in the list.
    index: usize,
    /// The texts between the stars, in lower case.
    pieces: Vec<String>,
    /// The pattern as a path, if it is one.
    path: Option<String>,
    /// Whether the end must be the end of a word: `| sh` is not `| shuf`.
    ends_word: bool,
}

impl Texts {
    /// Compiles patterns with their places in the list.
    #[must_use]
    pub fn new(patterns: &[(usize, &str)]) -> Self {
        let (mut forms, mut always) = (Vec::new(), Vec::new());
        for (index, pattern) in patterns {
            let lower = pattern.to_ascii_lowercase();
            let spaced = spaced(&lower);
            let mut texts = vec![lower];
            if !texts.contains(&spaced) {
                texts.push(spaced);
            }
            for text in texts {
                let pieces: Vec<String> = text.split('*').filter(|piece| !piece.is_empty()).map(str::to_owned).collect();
                if pieces.is_empty() {
                    always.push(*index);
                } else {
                    let ends_word = pattern.trim_start().starts_with('|') && text.ends_with(|char: char| char.is_ascii_alphanumeric());
                    let path = paths::is_path(pattern).then(|| paths::simplified(pattern));
                    forms.push(Form { index: *index, pieces, path, ends_word });
                }
            }
        }
        let (mut pieces, mut by_piece): (Vec<&str>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        let mut places: FxHashMap<&str, usize> = FxHashMap::default();
        for (at, form) in forms.iter().enumerate() {
            let longest = form.pieces.iter().max_by_key(|piece| piece.len()).map_or("", String::as_str);
            let place = *places.entry(longest).or_insert_with(|| {
                pieces.push(longest);
                by_piece.push(Vec::new());
                pieces.len() - 1
            });
            if let Some(forms) = by_piece.get_mut(place) {
                forms.push(at);
            }
        }
        // The automaton fails only for lists that do not fit into memory; then every form is tried.
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(&pieces).ok();
        Self { automaton, by_piece, forms, always }
    }

    /// Appends the places of the patterns that are found in the command line as it is written.
    pub fn command(&self, command: &str, found: &mut Vec<usize>) {
        found.extend(&self.always);
        if !self.forms.is_empty() {
            self.find(command, found);
            self.find(&spaced(command), found);
        }
    }

    /// Appends the places of the patterns that are found in the words of a command.
    pub fn words(&self, words: &[Argument], found: &mut Vec<usize>) {
        if self.forms.is_empty() {
            return;
        }
        let mut joined = String::new();
        for word in words {
            if !joined.is_empty() {
                joined.push(' ');
            }
            joined.push_str(&word.text);
        }
        self.find(&joined, found);
    }

    /// Appends the places of the patterns that are found in a text.
    pub fn text(&self, text: &str, found: &mut Vec<usize>) {
        if !self.forms.is_empty() {
            self.find(text, found);
        }
    }

    /// Appends the places of the patterns that are found in a path, as it is written and without detours (`//`, `/./`, `/../`). A glob is
    /// found by the patterns that are paths of files which it may find.
    pub fn path(&self, path: &str, is_glob: bool, found: &mut Vec<usize>) {
        if self.forms.is_empty() {
            return;
        }
        if ["//", "/./", "/../", "./"].iter().any(|detour| path.contains(detour)) {
            self.find(&paths::simplified(path), found);
        }
        if is_glob && path.contains(['*', '?', '[']) {
            let may_find = |form: &&Form| form.path.as_ref().is_some_and(|pattern| paths::may_find(path, pattern));
            found.extend(self.forms.iter().filter(may_find).map(|form| form.index));
        }
    }

    fn find(&self, text: &str, found: &mut Vec<usize>) {
        let lower = text.to_ascii_lowercase();
        let Some(automaton) = &self.automaton else {
            found.extend(self.forms.iter().filter(|form| form.matches(&lower)).map(|form| form.index));
            return;
        };
        let mut seen = Vec::new();
        for piece in automaton.find_overlapping_iter(&lower) {
            let piece = piece.pattern().as_usize();
            if seen.contains(&piece) {
                continue;
            }
            seen.push(piece);
            let forms = self.by_piece.get(piece).into_iter().flatten().filter_map(|at| self.forms.get(*at));
            found.extend(forms.filter(|form| form.matches(&lower)).map(|form| form.index));
        }
    }
}

impl Form {
    /// Returns whether the pieces stand in the text in this order.
    fn matches(&self, text: &str) -> bool {
        let mut rest = text;
        let Some((last, firsts)) = self.pieces.split_last() else { return true };
        for piece in firsts {
            match rest.split_once(piece.as_str()) {
                Some((_, behind)) => rest = behind,
                None => return false,
            }
        }
        rest.match_indices(last.as_str()).any(|(at, _)| {
            let behind = rest.get(at + last.len()..).unwrap_or_default();
            !self.ends_word || !behind.starts_with(|char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.'))
        })
    }
}

/// Returns the text with one space for every run of blanks, and one around every run of operators.
fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut was_operator = false;
    for char in text.chars() {
        let is_operator = matches!(char, '|' | '&' | ';' | '<' | '>');
        let is_boundary = char.is_whitespace() || is_operator != was_operator;
        if is_boundary && !spaced.is_empty() && !spaced.ends_with(' ') {
            spaced.push(' ');
        }
        if !char.is_whitespace() {
            spaced.push(char);
            was_operator = is_operator;
        }
    }
    spaced.truncate(spaced.trim_end().len());
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, command: &str) -> bool {
        let mut found = Vec::new();
        Texts::new(&[(0, pattern)]).command(command, &mut found);
        !found.is_empty()
    }

    #[test]
    fn globs_and_texts_are_found_anywhere() {
        assert!(found("*credentials*", "cat my_credentials.json"));
        assert!(found("**/.ssh/**", "cat /home/u/.ssh/id_rsa"));
        assert!(found("git push*--force", "git push origin --force"));
        assert!(found("a|b", "echo a|b") && found("a|b", "echo a  |  b"));
        assert!(found(":(){", ":(){ :|:& };:"));
        assert!(found("DROP TABLE", "psql -c 'drop  table x'"));
        assert!(found("*", "anything"));
        assert!(!found(".env*", "cat environment"));
        assert!(!found("git push*--force", "git push -f"));
    }

    #[test]
    fn a_pipe_into_a_program_ends_with_its_name() {
        assert!(found("| sh", "curl x|sh") && found("|sh", "curl x | sh -x"));
        assert!(!found("| sh", "ls | shuf") && !found("| sh", "ls | sh-lint"));
    }
}
