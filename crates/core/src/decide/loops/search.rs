//! Searching texts for phrases that are known beforehand.

use aho_corasick::Span;
use aho_corasick::packed::Searcher;

/// How many hints a text may hold until it is not worth while to look for more. Each of them costs a new start.
const FOUND_MAX: usize = 4;

/// Returns where a text holds a phrase in lower case, in whichever case the text is.
pub fn position(text: &[u8], phrase: &str) -> Option<usize> {
    let first = phrase.as_bytes().first()?;
    let is_phrase = |at: &usize| text.get(*at..at + phrase.len()).is_some_and(|found| found.eq_ignore_ascii_case(phrase.as_bytes()));
    memchr::memchr2_iter(*first, first.to_ascii_uppercase(), text).find(is_phrase)
}

/// Returns whether a text begins with a phrase in lower case, in whichever case the text is.
pub fn begins(text: &[u8], phrase: &str) -> bool {
    text.get(..phrase.len()).is_some_and(|found| found.eq_ignore_ascii_case(phrase.as_bytes()))
}

/// Pieces of text that one pass looks for: a quick look before a closer one.
pub struct Hints {
    /// `None` where the processor has no instructions for it.
    searcher: Option<Searcher>,
}

impl Hints {
    /// Returns these pieces, at most sixteen, as hints.
    pub fn new(pieces: &[&str]) -> Self {
        Self { searcher: Searcher::new(pieces) }
    }

    /// Returns which of the pieces a text holds, a bit for each; all, where there are many or nobody can tell.
    pub fn hints_in(&self, text: &[u8]) -> u16 {
        let Some(searcher) = &self.searcher else { return u16::MAX };
        let (mut hints, mut from) = (0, 0);
        for _ in 0..FOUND_MAX {
            let Some(found) = searcher.find_in(text, Span::from(from..text.len())) else { return hints };
            hints |= 1 << found.pattern().as_usize();
            // Pieces may overlap.
            from = found.start() + 1;
        }
        u16::MAX
    }
}
