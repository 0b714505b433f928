//! Searching texts for phrases that are known beforehand.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Returns where a text holds a phrase in lower case, in whichever case the text is.
pub fn position(text: &[u8], phrase: &str) -> Option<usize> {
    let first = phrase.as_bytes().first()?;
    let is_phrase = |at: &usize| text.get(*at..at + phrase.len()).is_some_and(|found| found.eq_ignore_ascii_case(phrase.as_bytes()));
    memchr::memchr2_iter(*first, first.to_ascii_uppercase(), text).find(is_phrase)
}

/// Pieces of text that are looked for in every call, prepared once: preparing a search takes longer than most searches.
pub type Pieces<const N: usize> = LazyLock<[Finder<'static>; N]>;

/// Returns pieces of text ready to be looked for.
pub fn pieces<const N: usize>(pieces: [&'static str; N]) -> [Finder<'static>; N] {
    pieces.map(Finder::new)
}
